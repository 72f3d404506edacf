"""Ask every question again from its opened secret side.

Decoding the secret sides would take much of the time of a check. But for the draws everything in
them is where it always is, so it is taken from there; what stands between must be what we write.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.ledger import broken_entry, decode, encode
from ladderboard.mechanisms import Observation, Setup, risk_from_losses
from ladderboard.tape import Tape
from ladderboard.verify._strict import is_whole, same

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism

_COUNT = 8  # bytes of a length


def _sized(tag: bytes, size: int) -> bytes:
    return tag + size.to_bytes(_COUNT, "big")


_BYTES = _sized(b"B", 32)
_TO_SALT = encode("salt") + _BYTES
_WHOLE = [_sized(b"I", digits) for digits in range(33)]


class _Layout:
    """Parts that have one length each, and what stands before each of them."""

    def __init__(self, *parts: tuple[bytes, str]) -> None:
        self._between = tuple(between for between, _ in parts)
        form = "".join(f"{len(between)}s{part}" for between, part in parts)
        self._struct = struct.Struct(f">{form}")
        self.size = self._struct.size

    def read(self, form: bytes, start: int) -> tuple[Any, ...] | None:
        """Return the parts from a place on; None where something else stands between them."""
        found = self._struct.unpack_from(form, start)
        return found[1::2] if found[::2] == self._between else None


_BEFORE_CONTENT = _sized(b"M", 4) + encode("content")
_HEAD = _Layout(
    (_BEFORE_CONTENT + _sized(b"M", 6) + encode("after") + _BYTES, "32s"),
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
_TAIL = _Layout(_RISK, (encode("training") + b"N", "0s"), *_SALTS)
_TRAINED = _Layout(_RISK, (encode("training") + b"D", "d"), *_SALTS)
_CONTENT = len(_BEFORE_CONTENT)
_AFTER_CONTENT = _Layout(*_SALTS).size

_COMMITTED = _sized(b"M", 2) + encode("content")
_SECRET = b"ladderboard:1:secret\n" + _COMMITTED
_SUBMISSION = b"ladderboard:1:submission\n" + _COMMITTED + _BYTES


class Opened(NamedTuple):
    """What decided a release, and what the entry shows of it if it is the truth."""

    risk: float
    training: float | None
    broken: bool
    draws: bytes
    """The canonical form of the list of draws, if it is one: whoever draws again compares it."""
    before: bytes
    after: bytes
    submission: bytes
    shown_secret: str
    shown_submission: str


def read_opened(form: bytes) -> Opened:
    """Return what a form holds; ``ValueError`` where it is not one that we write."""
    if len(form) < _HEAD.size + _TRAINED.size:
        raise ValueError
    head = _HEAD.read(form, 0)
    end, tail = len(form) - _TAIL.size, _TAIL.read(form, len(form) - _TAIL.size)
    if tail is None:
        end, tail = len(form) - _TRAINED.size, _TRAINED.read(form, len(form) - _TRAINED.size)
    if head is None or tail is None:
        raise ValueError
    after, before, broken, _ = head
    risk, training, salt, submission, other = tail
    training = None if training == b"" else training
    if broken not in {b"T", b"F"} or not (_is_plain(risk) and _is_plain(training)):
        raise ValueError
    return Opened(
        risk,
        training,
        broken == b"T",
        form[_HEAD.size : end],
        before,
        after,
        submission,
        hashlib.sha256(_SECRET + form[_CONTENT:-_AFTER_CONTENT] + _TO_SALT + salt).hexdigest(),
        hashlib.sha256(_SUBMISSION + submission + _TO_SALT + other).hexdigest(),
    )


def _is_plain(number: float | None) -> bool:
    """Return whether a number is finite and no negative zero, or there is none."""
    if number is None or 0 < number < math.inf:
        return True
    return -math.inf < number < 0 or (number == 0 and math.copysign(1, number) > 0)


def are_draws(form: bytes) -> bool:
    """Return whether a form is one of draws, where nobody can draw again and compare.

    >>> are_draws(encode([3, 0.5])), are_draws(encode(["text"])), are_draws(b"L")
    (True, False, False)
    """
    try:
        draws = decode(form)
    except ValueError:
        return False
    return type(draws) is list and all(type(each) in {int, float, bytes} for each in draws)


def form_of(draws: tuple[Any, ...]) -> bytes:
    """Return the canonical form of draws. Most are whole numbers, for which this is quicker.

    >>> form_of((3, -12)) == encode([3, -12]), form_of((0.5, 2)) == encode([0.5, 2])
    (True, True)
    """
    try:
        digits = [b"%d" % each for each in draws if type(each) is int]
        if len(digits) == len(draws):
            return _sized(b"L", len(draws)) + b"".join([_WHOLE[len(own)] + own for own in digits])
    except IndexError:  # a number with more digits than any law draws
        pass
    return encode(list(draws))


# What a state's digest is made of, but for the question's number and the mechanism's own part.
_STATE = b"ladderboard:1:state\nM" + (3).to_bytes(8, "big") + encode("closed") + encode(False)
_STATE += encode("question") + b"I"
_TO_STATE = encode("state")


class _Ladder:
    """Where a ladder stands: the mechanism's state and its form, and the digest that was opened."""

    __slots__ = ("form", "lost", "state", "stood")

    def __init__(self) -> None:
        self.state: Any = None
        self.form = b""
        self.stood: bytes | None = None
        self.lost = False
        """Whether a question could not be asked again, so that the state is not known."""


class Replay:
    """The ladders of a book; it counts the releases that hold.

    Without a mechanism, which may be the owner's own, draws and releases are taken on trust.
    """

    def __init__(self, mechanism: Mechanism | None, n: int, key: bytes) -> None:
        if not is_whole(n, at_least=1):
            raise broken_entry(0, "it does not say of how many examples a risk is the mean")
        self._mechanism, self._setup, self._tape = mechanism, Setup(n, 0.0, 1.0), Tape(key=key)
        self._laws = () if mechanism is None else mechanism.laws
        if mechanism is not None:
            mechanism.check(self._setup)
        self._ladders: list[_Ladder] = []
        self.releases = self.draws = 0

    @property
    def needs(self) -> str | None:
        """What the mechanism looks at; None where it is not known."""
        return None if self._mechanism is None else self._mechanism.needs

    def start(self) -> None:
        """Start the next ladder."""
        ladder, mechanism, number = _Ladder(), self._mechanism, len(self._ladders)
        self._ladders.append(ladder)
        if mechanism is not None:
            draws = self._tape.draw(self._laws, ladder=number, question=0)
            ladder.state = mechanism.begin(self._setup, draws)
            ladder.form = encode(mechanism.dump_state(ladder.state))
            ladder.stood = _digest(0, ladder.form)

    def question(
        self,
        number: int,
        fields: dict[str, Any],
        opened: Opened,
        losses: NDArray[Any] | None,
    ) -> None:
        """Ask a question again, as far as that can be done."""
        if opened.shown_submission != fields["submission"]:
            raise broken_entry(number, "its submission is not what was committed to")
        if opened.shown_secret != fields["secret"]:
            raise broken_entry(number, "its secret side is not what was committed to")
        mechanism, ladder = self._mechanism, self._ladders[fields["ladder"]]
        if ladder.stood != opened.before and ladder.stood is not None:
            raise broken_entry(number, "its ladder stood elsewhere before it")
        ladder.stood = opened.after
        if mechanism is None:
            if not are_draws(opened.draws):
                raise broken_entry(number, "its draws are none")
            return
        draws = self._tape.draw(
            self._laws,
            ladder=fields["ladder"],
            question=fields["question"],
            context=opened.submission,
        )
        if form_of(draws) != opened.draws:
            raise broken_entry(number, "its noise was not drawn from the key")
        self.draws += 1
        if mechanism.needs == "losses" and (losses is None or ladder.lost):
            ladder.lost = True  # what it looks at besides the risk is not there
        else:
            self._ask(mechanism, ladder, fields, opened, losses, draws)

    def _ask(  # noqa: PLR0917 - all that decides a release
        self,
        mechanism: Mechanism,
        ladder: _Ladder,
        fields: dict[str, Any],
        opened: Opened,
        losses: NDArray[Any] | None,
        draws: tuple[Any, ...],
    ) -> None:
        number, risk = fields["number"], opened.risk
        if not 0 <= risk <= 1:
            raise broken_entry(number, "its risk is not between 0 and 1")
        if (opened.training is not None) is not mechanism.needs_training:
            raise broken_entry(number, "it lacks a training loss, or has one that nobody looks at")
        if mechanism.needs == "losses" and losses is not None:
            risk = risk_from_losses(self._setup, losses)
        else:
            losses = None
        step = mechanism.advance(
            self._setup, ladder.state, Observation(risk, losses, opened.training), draws
        )
        # Of their own types: the walk has seen to that.
        if step[1:] != (fields["value"], fields["score"], fields["improved"]):
            raise broken_entry(number, "its release does not follow from its risk and noise")
        # Most questions move nothing but their number; states that hold arrays are not compared.
        if losses is not None or step.state != ladder.state:
            ladder.form = encode(mechanism.dump_state(step.state))
        ladder.state = step.state
        if _digest(fields["question"], ladder.form) != opened.after:
            raise broken_entry(number, "its ladder stood elsewhere after it")
        self.releases += 1

    def close(self, number: int, fields: dict[str, Any]) -> None:
        """See that what was told of every ladder at the end is where it stood."""
        if self._mechanism is None:
            return
        for at, (ladder, told) in enumerate(zip(self._ladders, fields["values"], strict=True)):
            if not ladder.lost and not same(self._mechanism.close(ladder.state), told):
                raise broken_entry(number, f"its value of ladder {at} is not where that stood")


def _digest(question: int, form: bytes) -> bytes:
    """Return the digest of where a ladder is after a question."""
    own = b"%d" % question
    size = len(own).to_bytes(8, "big")
    return hashlib.sha256(_STATE + size + own + _TO_STATE + form).digest()
