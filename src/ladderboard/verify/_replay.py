"""Check releases: by those before them, and by asking again with the opened secret sides.

Decoding every secret side would take much of the time of a check. Except for the draws, all parts
have a fixed size, so they are read with a ``struct``; the bytes between them must be the expected
ones.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.holdout import RecordProver
from ladderboard.ledger import (
    EMPTY_CHAIN,
    broken_entry,
    decode,
    encode,
    examples_in_sessions,
    release_from_entry,
    state_changes,
)
from ladderboard.mechanisms import (
    LadderChanges,
    Mechanism,
    Observation,
    Setup,
    VisibleChange,
    risk_from_losses,
)
from ladderboard.tape import Tape
from ladderboard.verify._chain import is_int, same_encoding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.holdout import Scorer
    from ladderboard.tape import Draws, Law

_COUNT = 8  # bytes of a length
_PRICE_TOLERANCE = 1e-9  # of a test, in nats


def _length_prefix(tag: bytes, size: int) -> bytes:
    return tag + size.to_bytes(_COUNT, "big")


_BYTES = _length_prefix(b"B", 32)
_TO_SALT = encode("salt") + _BYTES
_INTEGER_PREFIX = [_length_prefix(b"I", digits) for digits in range(33)]


class _Layout:
    """A fixed layout: parts of known sizes, each after known bytes."""

    def __init__(self, *parts: tuple[bytes, str]) -> None:
        self._between = tuple(between for between, _ in parts)
        form = "".join(f"{len(between)}s{part}" for between, part in parts)
        self._struct = struct.Struct(f">{form}")
        self.size = self._struct.size

    def read(self, encoded: bytes, start: int) -> tuple[Any, ...] | None:
        """Return the parts, starting at an offset; None if the bytes between them differ."""
        values = self._struct.unpack_from(encoded, start)
        return values[1::2] if values[::2] == self._between else None


_BEFORE_CONTENT = _length_prefix(b"M", 4) + encode("content")


def _head_layout(fields: int) -> _Layout:
    """Return the layout up to the draws, of a content with this many fields."""
    return _Layout(
        (_BEFORE_CONTENT + _length_prefix(b"M", fields) + encode("after") + _BYTES, "32s"),
        (encode("before") + _BYTES, "32s"),
        (encode("broken"), "1s"),
        (encode("draws"), "0s"),
    )


_SALTS = (
    (_TO_SALT, "32s"),
    (encode("submission") + _BYTES, "32s"),
    (encode("submission_salt") + _BYTES, "32s"),
)
_RISK = (encode("risk") + b"D", "d")
_ERROR = (encode("standard_error") + b"D", "d")
_NO_ERROR = (b"", "0s")
_NO_TRAINING, _TRAINING = (encode("training") + b"N", "0s"), (encode("training") + b"D", "d")
# The head and the tail of each form of a secret side, by what the mechanism needs.
_HEAD, _HEAD_WITH_ERROR = _head_layout(6), _head_layout(7)
_FORMS = (
    (_HEAD, _Layout(_RISK, _NO_ERROR, _NO_TRAINING, *_SALTS)),
    (_HEAD, _Layout(_RISK, _NO_ERROR, _TRAINING, *_SALTS)),
    (_HEAD_WITH_ERROR, _Layout(_RISK, _ERROR, _NO_TRAINING, *_SALTS)),
)
_CONTENT = len(_BEFORE_CONTENT)
_AFTER_CONTENT = _Layout(*_SALTS).size

_COMMITTED = _length_prefix(b"M", 2) + encode("content")
_SECRET = b"ladderboard:1:secret\n" + _COMMITTED
_SUBMISSION = b"ladderboard:1:submission\n" + _COMMITTED + _BYTES


class OpenedSecret(NamedTuple):
    """The secret side of a question: what decided its release, and the commitments to it."""

    risk: float
    standard_error: float | None
    training: float | None
    broken: bool
    draws: bytes
    """The encoded list of draws, not decoded: it is compared with the draws made again."""
    before: bytes
    after: bytes
    submission: bytes
    shown_secret: str
    shown_submission: str


def decode_opened_secret(encoded: bytes) -> OpenedSecret:
    """Decode an opened secret side; ``ValueError`` if it is malformed."""
    head, tail, end = _split_secret(encoded)
    after, before, broken, _ = head
    risk, error, training, salt, submission, submission_salt = tail
    error, training = None if error == b"" else error, None if training == b"" else training
    if broken not in {b"T", b"F"} or not (
        _is_canonical_number(risk)
        and (error is None or _is_canonical_number(error))
        and (training is None or _is_canonical_number(training))
    ):
        raise ValueError
    return OpenedSecret(
        risk,
        error,
        training,
        broken == b"T",
        encoded[_HEAD.size : end],
        before,
        after,
        submission,
        hashlib.sha256(_SECRET + encoded[_CONTENT:-_AFTER_CONTENT] + _TO_SALT + salt).hexdigest(),
        hashlib.sha256(_SUBMISSION + submission + _TO_SALT + submission_salt).hexdigest(),
    )


def _split_secret(encoded: bytes) -> tuple[tuple[Any, ...], tuple[Any, ...], int]:
    """Return the parts before and after the draws, and where the draws end."""
    for head_layout, tail_layout in _FORMS:
        end = len(encoded) - tail_layout.size
        tail = tail_layout.read(encoded, end) if end >= head_layout.size else None
        if tail is not None:
            head = head_layout.read(encoded, 0)
            if head is not None:
                return head, tail, end
    raise ValueError


def _is_canonical_number(number: float) -> bool:
    """Return whether a number is finite and not negative zero."""
    if 0 < number < math.inf:
        return True
    return -math.inf < number < 0 or (number == 0 and math.copysign(1, number) > 0)


def is_draws_encoding(encoded: bytes) -> bool:
    """Return whether bytes encode a list of draws, for mechanisms that cannot be replayed.

    >>> [is_draws_encoding(encode(draws)) for draws in ([3, 0.5], ["text"])]
    [True, False]
    """
    try:
        draws = decode(encoded)
    except ValueError:
        return False
    return type(draws) is list and all(type(draw) in {int, float, bytes} for draw in draws)


def encode_draws(draws: tuple[Any, ...]) -> bytes:
    """Return the canonical encoding of draws, with a fast path for integers.

    >>> encode_draws((3, -12)) == encode([3, -12]), encode_draws((0.5, 2)) == encode([0.5, 2])
    (True, True)
    """
    try:
        digits = [b"%d" % draw for draw in draws if type(draw) is int]
        if len(digits) == len(draws):
            return _length_prefix(b"L", len(draws)) + b"".join(
                [_INTEGER_PREFIX[len(text)] + text for text in digits]
            )
    except IndexError:  # a number with more digits than any law draws
        pass
    return encode(list(draws))


_INTEGER_START = _length_prefix(b"I", 0)[:-1]
_MOST_DIGITS = 32


def decode_integers(encoded: bytes, count: int) -> Draws | None:
    """Return this many integers of encoded draws; None if there are others, or too long ones.

    Much faster than ``decode``, and it also accepts some bytes that are not canonical.

    >>> decode_integers(encode([3, -12]), 2), decode_integers(encode([0.5, 2]), 2)
    ((3, -12), None)
    """
    _, *integers = encoded.split(_INTEGER_START)
    if len(integers) != count or len(encoded) > (count + 1) * (_MOST_DIGITS + _COUNT + 1):
        return None
    try:
        return tuple([int(digits[1:]) for digits in integers])  # after the last byte of the length
    except ValueError:
        return None


RecordedDraws = tuple[int, int, int, bytes, bytes]
"""The number of an entry; the ladder, question and context that its draws depend on; the draws."""

_BATCH = 128  # questions; a batch of them takes less than 20 kB
_OUTSTANDING_BATCHES = 3  # together less than a pipe holds, so that writing does not wait
_LONG = 20_000  # entries from which on a second process saves more time than its start takes
_RIGHT, _WRONG = b"y", b"n"
_RUN_HELPER = (
    "import sys; sys.path[:] = sys.argv[2:]; from ladderboard.verify._replay import help_to_draw; "
    "help_to_draw(int(sys.argv[1]))"
)


def count_cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return os.cpu_count() or 1 if affinity is None else len(affinity(0))


class DrawChecker:
    """Checks recorded draws; for a long bundle in a second process, if there is a core for it.

    That process answers only whether all draws of a batch are right. If not, if it is busy, could
    not start or has ended, this one checks the batch itself. So no error depends on the second
    process, and this one never waits for it.
    """

    def __init__(self, key: bytes, laws: tuple[Law, ...], entries: int = 0) -> None:
        self._tape, self._laws = Tape(key=key), laws
        self._batch: list[RecordedDraws] = []
        self._outstanding: deque[list[RecordedDraws]] = deque()
        self._helper: subprocess.Popen[bytes] | None = None
        self._answers = -1
        known = [law.dtype is np.int64 and type(law).__module__ == Tape.__module__ for law in laws]
        self._batches = bool(known) and all(known)
        if self._batches and entries >= _LONG and count_cores() > 1 and os.name == "posix":
            self._start_helper()
            self._send((key, laws))

    def _start_helper(self) -> None:
        path = [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100 - "" is where we are
        self._answers, answer_to = os.pipe()
        os.set_blocking(self._answers, False)
        try:
            self._helper = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-c", _RUN_HELPER, str(answer_to), *path],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(answer_to,),
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            )
        except OSError:
            self.close()
        finally:
            os.close(answer_to)

    def draw(self, recorded: RecordedDraws) -> Draws:
        """Return the draws of an entry; they are checked now, or later from what was recorded."""
        draws = decode_integers(recorded[-1], len(self._laws)) if self._batches else None
        if draws is None:
            return self._check(recorded)
        self._batch.append(recorded)
        if len(self._batch) == _BATCH:
            self._hand_over()
        return draws

    def finish(self) -> None:
        """Check what has not been checked, and end the second process."""
        self._read_answers()
        self.close()
        self._check_outstanding()
        self.check_batch(self._batch)
        self._batch = []

    def close(self) -> None:
        """End the second process."""
        helper, self._helper = self._helper, None
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1
        if helper is not None:
            helper.kill()
            helper.communicate()  # closes the pipe, and waits for its end

    def _hand_over(self) -> None:
        """Give a batch to the second process; check it here if that has enough to do."""
        batch, self._batch = self._batch, []
        self._read_answers()
        if self._helper is None or len(self._outstanding) == _OUTSTANDING_BATCHES:
            self.check_batch(batch)
        else:
            self._outstanding.append(batch)
            self._send(batch)

    def _send(self, message: object) -> None:
        if self._helper is not None and self._helper.stdin is not None:
            try:
                self._helper.stdin.write(pickle.dumps(message))
                self._helper.stdin.flush()
            except OSError:  # it has ended
                self.close()
                self._check_outstanding()

    def _read_answers(self) -> None:
        if self._helper is None:
            return
        try:
            answers = os.read(self._answers, _OUTSTANDING_BATCHES)
        except BlockingIOError:
            return
        if not answers:  # it has ended
            self.close()
            self._check_outstanding()
        for answer in answers:
            # A batch that is wrong stays, so that ``finish`` names its first wrong entry again.
            if answer != ord(_RIGHT):
                self.check_batch(self._outstanding[0])
            self._outstanding.popleft()

    def _check_outstanding(self) -> None:
        for batch in self._outstanding:
            self.check_batch(batch)
        self._outstanding.clear()

    def check_batch(self, batch: list[RecordedDraws]) -> None:
        """Check draws here, in order."""
        for recorded in batch:
            self._check(recorded)

    def _check(self, recorded: RecordedDraws) -> Draws:
        number, ladder, question, context, encoded = recorded
        draws = self._tape.draw(self._laws, ladder=ladder, question=question, context=context)
        if encode_draws(draws) != encoded:
            raise broken_entry(number, "its noise was not drawn from the key")
        return draws


def help_to_draw(answer_to: int) -> None:
    """Check batches of draws from standard input until it ends; answer to a file descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one handles it
    batches = sys.stdin.buffer
    checker = DrawChecker(*pickle.load(batches))  # noqa: S301 - from the process that started this
    while True:
        try:
            batch = pickle.load(batches)  # noqa: S301
        except EOFError:
            return
        try:
            checker.check_batch(batch)
        except BrokenLedger:
            os.write(answer_to, _WRONG)
        else:
            os.write(answer_to, _RIGHT)


# The constant beginning of the bytes that a state's digest is made of.
_STATE = b"ladderboard:1:state\nM" + (3).to_bytes(8, "big") + encode("closed") + encode(False)
_STATE += encode("question") + b"I"
_TO_STATE = encode("state")


class PossibleReleaseChecker:
    """Checks that releases are possible after those before them, for mechanisms that can tell.

    Such as a growing ladder, whose public values decide on which grid the next value lies.
    """

    def __init__(self, mechanism: Mechanism | None, opening: dict[str, Any]) -> None:
        self._mechanism = mechanism
        examples = examples_in_sessions(opening["n"], opening["rules"])
        if not is_int(examples, at_least=1):
            raise broken_entry(0, "its number of examples n is not a positive integer")
        self._setup = Setup(examples, 0.0, 1.0)
        self._changes = LadderChanges(0 if mechanism is None else mechanism.shared_ladders)
        # Most mechanisms do not override it, and a question's release need not be made for them.
        follow = Mechanism.follow_release if mechanism is None else type(mechanism).follow_release
        self._follows = follow is not Mechanism.follow_release
        self._states: list[Any] = []
        self._tests_records = "proven" in opening["rules"]

    def check_entry(self, number: int, fields: dict[str, Any]) -> None:
        """Check the release of a question, whose types were checked before."""
        if fields["kind"] == "ladder":
            self._states.append(None)
            self._changes.start_ladder()
        elif fields["kind"] == "question":
            self._check_proven(number, fields)
            if self._mechanism is not None:
                self._check_question(self._mechanism, number, fields)
            self._changes.count(fields["ladder"], changed=fields["improved"])

    def _check_question(self, mechanism: Mechanism, number: int, fields: dict[str, Any]) -> None:
        ladder = fields["ladder"]
        if ("error_class" in fields) is not (mechanism.needs == "standard_error"):
            raise broken_entry(number, "it lacks a class of its standard error, or has one")
        if not self._follows:
            return
        try:
            self._states[ladder] = mechanism.follow_release(
                self._setup,
                self._states[ladder],
                release_from_entry(fields),
                self._changes.of_others(ladder),
            )
        except InvalidState as error:
            raise broken_entry(number, str(error)) from None

    def _check_proven(self, number: int, fields: dict[str, Any]) -> None:
        """Check that every record but the first of its ladder says whether it was proven."""
        tested = fields["improved"] and self._changes.of(fields["ladder"]) > 0
        if ("proven" in fields) is not self._tests_records:
            raise broken_entry(number, "it lacks the field proven, or has it without the rule")
        if self._tests_records and type(fields["proven"]) is not (bool if tested else type(None)):
            raise broken_entry(number, "its field proven is not true or false, or not null")


class RecordChecker:
    """Tests every record again, with the price that all entries before it decide.

    ``marks`` counts the records that were tested when they were made, ``tested`` those tested here.
    """

    def __init__(self, mechanism: Mechanism, opening: dict[str, Any]) -> None:
        self._mechanism, self._opening = mechanism, opening
        self._chain_state = EMPTY_CHAIN
        self._changes: list[VisibleChange] = []
        self._records: dict[int, NDArray[Any] | None] = {}
        self.marks = self.tested = 0

    def follow_entry(self, fields: dict[str, Any]) -> None:
        """Count an entry; its types were checked before."""
        changes = state_changes(self._chain_state, fields)
        self._chain_state = self._chain_state._replace(**changes)

    def check_question(
        self, fields: dict[str, Any], losses: NDArray[Any] | None, scorer: Scorer | None
    ) -> None:
        """Test a record with the losses of its submission, if those of the one before are known."""
        ladder = fields["ladder"]
        if fields["improved"]:
            if ladder in self._records:
                self.marks += 1
                before = self._records[ladder]
                if before is not None and losses is not None and scorer is not None:
                    self._test(fields, before, losses, scorer)
            self._records[ladder] = losses
        self.follow_entry(fields)
        if fields["improved"]:
            released = fields["value"], ladder, fields.get("error_class")
            self._changes.append(VisibleChange(self._chain_state.asked, *released))

    def _test(
        self,
        fields: dict[str, Any],
        before: NDArray[Any],
        losses: NDArray[Any],
        scorer: Scorer,
    ) -> None:
        prover = RecordProver.of(self._mechanism, self._opening, scorer)
        nats = prover.nats(tuple(self._changes), self._chain_state)
        # Another machine may round the last bits of a sum of logarithms in another way.
        prices = {nats - _PRICE_TOLERANCE, nats, nats + _PRICE_TOLERANCE}
        if fields["proven"] not in {prover.is_proven(before, losses, price) for price in prices}:
            raise broken_entry(
                fields["number"], "its field proven does not follow from the two submissions"
            )
        self.tested += 1


class _ReplayedLadder:
    """A ladder: the mechanism's state, its encoding, and the digest after the last question."""

    __slots__ = ("digest", "encoded_state", "state", "unknown")

    def __init__(self) -> None:
        self.state: Any = None
        self.encoded_state = b""
        self.digest: bytes | None = None
        self.unknown = False
        """Whether the state is unknown because a question could not be asked again."""


class Replay:
    """Replays the questions of all ladders, and counts the releases that are right.

    Without a mechanism (a custom one that was not given) draws and releases are not checked.
    """

    def __init__(self, mechanism: Mechanism | None, n: int, key: bytes, entries: int) -> None:
        if not is_int(n, at_least=1):
            raise broken_entry(0, "its number of examples n is not a positive integer")
        self._mechanism, self._setup, self._tape = mechanism, Setup(n, 0.0, 1.0), Tape(key=key)
        self._laws = () if mechanism is None else mechanism.laws
        self.draw_checker = DrawChecker(key, self._laws, entries)
        if mechanism is not None:
            mechanism.check(self._setup)
        self._ladders: list[_ReplayedLadder] = []
        self._changes = LadderChanges(0 if mechanism is None else mechanism.shared_ladders)
        self.releases = self.draws = 0

    @property
    def needs(self) -> str | None:
        """What the mechanism needs, ``risk`` or ``losses``; None for an unknown mechanism."""
        return None if self._mechanism is None else self._mechanism.needs

    def start_ladder(self) -> None:
        """Start the next ladder."""
        ladder, mechanism, number = _ReplayedLadder(), self._mechanism, len(self._ladders)
        self._ladders.append(ladder)
        self._changes.start_ladder()
        if mechanism is not None:
            draws = self._tape.draw(self._laws, ladder=number, question=0)
            ladder.state = mechanism.begin(self._setup, draws)
            ladder.encoded_state = encode(mechanism.dump_state(ladder.state))
            ladder.digest = _digest_state(0, ladder.encoded_state)

    def check_question(
        self,
        number: int,
        fields: dict[str, Any],
        opened: OpenedSecret,
        losses: NDArray[Any] | None,
    ) -> None:
        """Ask a question again, as far as possible, and compare the release."""
        if opened.shown_submission != fields["submission"]:
            raise broken_entry(number, "its submission is not what was committed to")
        if opened.shown_secret != fields["secret"]:
            raise broken_entry(number, "its secret side is not what was committed to")
        mechanism, ladder = self._mechanism, self._ladders[fields["ladder"]]
        if ladder.digest != opened.before and ladder.digest is not None:
            raise broken_entry(number, "its ladder was in another state before it")
        ladder.digest = opened.after
        if mechanism is None:
            if not is_draws_encoding(opened.draws):
                raise broken_entry(number, "its draws are malformed")
            return
        draws = self.draw_checker.draw(
            (number, fields["ladder"], fields["question"], opened.submission, opened.draws)
        )
        self.draws += 1
        if mechanism.needs == "losses" and (losses is None or ladder.unknown):
            ladder.unknown = True  # the losses of examples are not there
        else:
            self._recompute_release(
                mechanism, ladder, fields, opened=opened, losses=losses, draws=draws
            )
        self._changes.count(fields["ladder"], changed=fields["improved"])

    def _recompute_release(
        self,
        mechanism: Mechanism,
        ladder: _ReplayedLadder,
        fields: dict[str, Any],
        *,
        opened: OpenedSecret,
        losses: NDArray[Any] | None,
        draws: tuple[Any, ...],
    ) -> None:
        number, risk = fields["number"], opened.risk
        if not 0 <= risk <= 1:
            raise broken_entry(number, "its risk is not between 0 and 1")
        if (opened.training is not None) is not mechanism.needs_training:
            raise broken_entry(
                number, "it lacks a training loss, or has one that the mechanism does not use"
            )
        if (opened.standard_error is not None) is not (mechanism.needs == "standard_error"):
            raise broken_entry(
                number, "it lacks a standard error, or has one that the mechanism does not use"
            )
        if mechanism.needs == "losses" and losses is not None:
            risk = risk_from_losses(self._setup, losses)
        else:
            losses = None
        others = self._changes.of_others(fields["ladder"])
        observation = Observation(risk, losses, opened.training, opened.standard_error, others)
        step = mechanism.advance(self._setup, ladder.state, observation, draws)
        # HistoryChecker has checked the types of these fields.
        release = (
            fields["value"], fields["score"], fields["improved"], fields.get("error_class")
        )  # fmt: skip
        if step[1:] != release:
            raise broken_entry(number, "its release does not follow from its risk and noise")
        # Most questions change only their number. States that hold arrays cannot be compared.
        if losses is not None or step.state != ladder.state:
            ladder.encoded_state = encode(mechanism.dump_state(step.state))
        ladder.state = step.state
        if _digest_state(fields["question"], ladder.encoded_state) != opened.after:
            raise broken_entry(number, "its ladder was in another state after it")
        self.releases += 1

    def check_close(self, number: int, fields: dict[str, Any]) -> None:
        """Check the value of every ladder in the closing entry."""
        if self._mechanism is None:
            return
        for index, (ladder, value) in enumerate(zip(self._ladders, fields["values"], strict=True)):
            if not ladder.unknown and not same_encoding(self._mechanism.close(ladder.state), value):
                raise broken_entry(number, f"its value of ladder {index} is wrong")


def _digest_state(question: int, encoded: bytes) -> bytes:
    """Return the digest of a ladder's state after a question."""
    digits = b"%d" % question
    size = len(digits).to_bytes(8, "big")
    return hashlib.sha256(_STATE + size + digits + _TO_STATE + encoded).digest()
