"""The hash chain of a book, receipts of its entries, and the ladders whose state it records."""

from __future__ import annotations

import hashlib
import json
import struct
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenLedger, InvalidSetting, LadderboardError
from ladderboard.ledger._commitments import COMMITTED_FIELDS, Commitment, SecretSide
from ladderboard.ledger._encoding import PREFIX, MapEncoder, decode, digest, encode, pad, unpad
from ladderboard.ledger._gate import GATE_STATE, GateSecret, GateState
from ladderboard.ledger._storage import EMPTY_CHAIN, EntryRow
from ladderboard.mechanisms import LadderChanges, Release, VisibleChange, changes_of_others

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from ladderboard.ledger._commitments import Encryption
    from ladderboard.ledger._storage import ChainState, ReadView, WriteView
    from ladderboard.mechanisms import Mechanism, Session
    from ladderboard.tape import Tape


_BLOCK = 256
_DOUBLE = len(encode(0.0))
_MUTABLE_FIELDS = ("question", "closed", "state")
_ENCODER = MapEncoder(*_MUTABLE_FIELDS)


def examples_in_sessions(n: int, rules: Mapping[str, Any]) -> int:
    """Return the number of examples that sessions count with: the effective one with weights."""
    return int(rules["worth"]) if rules.get("weighted") else n


def encode_state(session: Session) -> bytes:
    """Encode the part of a session that changes; mechanism, n and tape belong to the book."""
    state = session.mutable_state
    return _ENCODER.encode(state["question"], state["closed"], state["state"])


def decode_state(encoded: bytes) -> dict[str, Any]:
    """Return the fields that ``encode_state`` wrote, or raise ``BrokenLedger``."""
    try:
        fields = decode(encoded)
        return {field: fields[field] for field in _MUTABLE_FIELDS}
    except (KeyError, TypeError, ValueError):
        raise _damaged_state() from None


def digest_state(encoded: bytes) -> bytes:
    """Return the digest of an encoded state, the same as ``digest("state", ...)``."""
    return hashlib.sha256(PREFIX + b"state\n" + encoded).digest()


def pad_state(encoded: bytes, losses: int) -> bytes:
    """Pad an encoded state to a constant size that can hold this many losses."""
    return pad(encoded, _BLOCK + losses * _DOUBLE)


def unpad_state(padded: bytes) -> bytes:
    """Return the encoded state, or raise ``BrokenLedger``."""
    try:
        return unpad(padded)
    except ValueError:
        raise _damaged_state() from None


def _damaged_state() -> BrokenLedger:
    return BrokenLedger("A ladder's state cannot be read; it was damaged.")


class _CachedSession(NamedTuple):
    """A session after a question, with the ladder's state after it."""

    stored: bytes
    digest: bytes
    session: Session


class LadderSessions:
    """The sessions of a book's ladders, read from and written to its storage."""

    def __init__(self, mechanism: Mechanism, n: int, tape: Tape, encryption: Encryption) -> None:
        self._mechanism, self._n, self._tape, self._encryption = mechanism, n, tape, encryption
        self.shared_ladders = mechanism.shared_ladders
        """How many other ladders count on a ladder; see ``Mechanism``."""
        self._initial_state = self.start(0).state
        # The session of the last question on each ladder, with the state it was stored in.
        self._cached_sessions: dict[int, _CachedSession] = {}
        # The head of the chain after the last of them, and the ladders whose sessions are current
        # then: a ladder changes only together with an entry.
        self._last_head, self._current_ladders = b"", set[int]()

    @property
    def can_replay(self) -> bool:
        """Whether a question can be replayed without the losses of examples."""
        return self._mechanism.needs != "losses"

    def start(self, ladder: int) -> Session:
        """Return a session on a new ladder."""
        return self._mechanism.start(n=self._n, tape=self._tape, ladder=ladder)

    def add(self, book: WriteView, ladder: int, name: str) -> None:
        """Store a new ladder."""
        book.add_ladder(ladder, name, self._encrypt_state(ladder, encode_state(self.start(ladder))))

    def encoded_state(self, book: ReadView, ladder: int) -> bytes:
        """Return the encoded state of a ladder."""
        return self._decrypt_state(self._read_stored(book, ladder), ladder)

    def resume(self, book: ReadView, ladder: int) -> Session:
        """Return a new session in the current state of a ladder."""
        return self._resume_from(self.encoded_state(book, ladder), ladder)

    def resume_for_update(self, book: WriteView, ladder: int) -> tuple[bytes, Session]:
        """Return the digest of a ladder's state and a session in it, for a writer to advance.

        This takes the session out of the cache, because its next state may not be committed. There
        is one writer at a time, so no other one can advance the ladder meanwhile.
        """
        cached = self._cached_sessions.pop(ladder, None)
        if self._last_head != book.chain_state().head:
            self._current_ladders.clear()
        if cached is not None and ladder in self._current_ladders:
            return cached.digest, cached.session
        stored = self._read_stored(book, ladder)
        if cached is not None and cached.stored == stored:
            return cached.digest, cached.session
        encoded = self._decrypt_state(stored, ladder)
        return digest_state(encoded), self._resume_from(encoded, ladder)

    def store(
        self,
        book: WriteView,
        ladder: int,
        encoded: bytes,
        state_digest: bytes,
        session: Session,
        *,
        changed: bool,
    ) -> None:
        """Store the new state of a session after the entry of its question; cache the session."""
        stored = self._encrypt_state(ladder, encoded)
        book.set_ladder_state(ladder, stored, changed=changed, defer=True)
        self._cached_sessions[ladder] = _CachedSession(stored, state_digest, session)
        self._last_head = book.chain_state().head
        self._current_ladders.add(ladder)

    def changes_of_others(self, book: ReadView, ladder: int) -> int:
        """Return the changes of other ladders that count on a ladder, which must be started.

        If all ladders count, the sum is in the chain state; otherwise one statement reads a row for
        each ladder. The cost does not grow with the number of questions.
        """
        count = self.shared_ladders + 1
        if count == 1:
            return 0
        chain_state = book.chain_state()
        largest = (
            (chain_state.changes, 0)
            if count >= chain_state.ladders
            else book.largest_ladder_changes(count)
        )
        return changes_of_others(book.ladder_changes(ladder), *largest)

    def _encrypt_state(self, ladder: int, encoded: bytes) -> bytes:
        """Pad and encrypt a state, to one size whether or not it holds the leader's losses.

        Otherwise the size would reveal a secret change.
        """
        return self._encryption.encrypt(
            f"state {ladder}", pad_state(encoded, 0 if self.can_replay else self._n)
        )

    def _read_stored(self, book: ReadView, ladder: int) -> bytes:
        stored = book.ladder_state(ladder)
        if stored is None:
            raise InvalidSetting("There is no such ladder.")
        return stored

    def _decrypt_state(self, stored: bytes, ladder: int) -> bytes:
        return unpad_state(self._encryption.decrypt(f"state {ladder}", stored))

    def _resume_from(self, encoded: bytes, ladder: int) -> Session:
        state = {**self._initial_state, **decode_state(encoded), "ladder": ladder}
        return self._mechanism.resume(state, self._tape)


FORMAT = 1
GATE_KINDS = ("promoted", "look")
NO_PREVIOUS = bytes(32)  # what the first entry calls its predecessor
_PREFIX = b"ladderboard:1:entry\n"
_JSON_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_COMMON_FIELDS = ("format", "book", "number", "kind", "time", "previous")


@dataclass(frozen=True)
class Entry:
    """One entry, as its bytes; everything else is read from them.

    The bytes are ASCII JSON, stored and hashed as they were written, so that verifying a chain
    does not depend on how a program formats JSON.
    """

    encoded: bytes

    @classmethod
    def make(
        cls, *, book: str, number: int, kind: str, time: int, previous: bytes, **kind_fields: Any
    ) -> Entry:
        """Return a new entry; ``kind_fields`` are the fields of its kind."""
        return cls(
            _encode_entry(
                kind_fields, book=book, number=number, kind=kind, time=time, previous=previous
            )
        )

    @cached_property
    def hash(self) -> bytes:
        """The SHA-256 of the bytes, with their length before them."""
        return _hash_entry(self.encoded)

    def read(self) -> dict[str, Any]:
        """Return the fields, or raise ``BrokenLedger`` if the bytes are not an entry."""
        try:
            fields = parse_strict_json(self.encoded.decode("ascii"))
            if any(name not in fields for name in _COMMON_FIELDS):
                raise ValueError("fields are missing")
        except (RecursionError, ValueError):
            raise BrokenLedger("An entry of the ledger cannot be read; it was damaged.") from None
        if fields["format"] != FORMAT:
            raise BrokenLedger(
                f"An entry has format {fields['format']!r:.20}; this version reads {FORMAT}."
            )
        return fields


def _make_json_encoder() -> Callable[[dict[str, Any]], str]:
    """Return ``_JSON_ENCODER.encode``, without what that prepares anew for each object."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # not CPython
        return _JSON_ENCODER.encode
    # In this order: no check for cycles, no default, escapes, no indent, separators, then keys are
    # not sorted and not skipped, and NaN is refused.
    escaped = json.encoder.encode_basestring_ascii
    write = make(None, _JSON_ENCODER.default, escaped, None, ":", ",", False, False, False)
    return lambda fields: "".join(write(fields, 0))


_encode_json = _make_json_encoder()


def _encode_entry(
    kind_fields: dict[str, Any], *, book: str, number: int, kind: str, time: int, previous: bytes
) -> bytes:
    fields = {
        "format": FORMAT,
        "book": book,
        "number": number,
        "kind": kind,
        "time": time,
        "previous": previous.hex(),
        **kind_fields,
    }
    return _encode_json(fields).encode("ascii")


def _hash_entry(encoded: bytes) -> bytes:
    return hashlib.sha256(_PREFIX + struct.pack(">Q", len(encoded)) + encoded).digest()


def _refuse_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that occurs twice: readers would not agree on its value."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is written twice")
    return fields


def _refuse_constant(name: str) -> None:
    """Refuse NaN and infinities, which Python reads but JSON does not have."""
    raise ValueError(f"{name} is not JSON")


_decode_nested = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicate_names, parse_constant=_refuse_constant
).raw_decode
_decode_flat = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


def parse_strict_json(text: str) -> dict[str, Any]:
    """Return the JSON object that is the whole text; refuse a name that occurs twice.

    >>> parse_strict_json('{"a":1}')
    {'a': 1}
    """
    fields, end = _decode_flat(text)
    if end != len(text) or type(fields) is not dict:
        raise ValueError("it is not a JSON object")
    # Each name has its colon. If there are no more colons than names, no name was dropped.
    return fields if text.count(":") == len(fields) else _decode_nested(text)[0]


class ChainHead(NamedTuple):
    """How many entries there are, and the hash of the last; a saved one reveals a rewrite."""

    entries: int
    hash: bytes


def append_entry(
    book: WriteView,
    name: str,
    chain_state: ChainState,
    kind: str,
    fields: dict[str, Any],
    *,
    time: int,
    secret: bytes | None = None,
    **state_changes: Any,
) -> ChainState:
    """Append an entry, and return the chain state after it. Time never runs backwards."""
    time = max(time, chain_state.time)
    number = chain_state.entries
    encoded = _encode_entry(
        fields, book=name, number=number, kind=kind, time=time, previous=chain_state.head
    )
    entry_hash = _hash_entry(encoded)
    new_state = chain_state._replace(
        entries=number + 1, head=entry_hash, time=time, **state_changes
    )
    columns = (fields.get("ladder"), fields.get("question"), fields.get("asker"))
    book.append(EntryRow(number, kind, encoded, entry_hash, *columns), new_state, secret)
    return new_state


def iter_checked_entries(
    encoded_entries: Iterable[bytes], book: str | None = None
) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Read entries in their order and check that each follows from the last.

    Raises ``BrokenLedger``, which names the first entry that does not.
    """
    previous, last_time = NO_PREVIOUS, 0
    for number, encoded in enumerate(encoded_entries):
        entry = Entry(encoded)
        try:
            fields = entry.read()
        except BrokenLedger as broken:
            raise BrokenLedger(f"Entry {number}: {broken}", entry=number) from None
        book = fields["book"] if book is None else book
        problem = _find_problem(fields, book, number, previous, last_time)
        if problem:
            raise broken_entry(number, problem)
        previous, last_time = entry.hash, fields["time"]
        yield entry, fields


def broken_entry(number: int, problem: str) -> BrokenLedger:
    """Return the error that names an entry and its problem."""
    message = f"Entry {number} of the ledger was changed: {problem}."
    return BrokenLedger(message, entry=number)


def _find_problem(
    fields: dict[str, Any], book: str, number: int, previous: bytes, last_time: int
) -> str:
    if fields["book"] != book:
        return "it belongs to another book"
    if type(fields["number"]) is not int or fields["number"] != number:
        return f"it is numbered {fields['number']!r:.20}"
    if fields["previous"] != previous.hex():
        return "it does not follow the entry before it"
    if type(fields["time"]) is not int or fields["time"] < last_time:
        return "its time is before that of the entry before it"
    return ""


def release_from_entry(fields: dict[str, Any]) -> Release:
    """Return the release that an entry records."""
    return Release(
        fields["value"],
        fields["score"],
        fields["improved"],
        fields["question"],
        fields.get("error_class"),
        fields.get("proven"),
    )


def read_changes(
    view: ReadView, known: int, chain_state: ChainState, answers: int = 1
) -> tuple[VisibleChange, ...]:
    """Return the changes after the first ``known`` ones, up to a state of the chain.

    ``answers`` is how many metrics answer each question that is counted.
    """
    changes, first = [], 0
    for count in range(known + 1, chain_state.changes + 1):
        # The first entry after which there are this many changes is the change itself.
        number = bisect_left(
            range(chain_state.entries),
            count,
            lo=first,
            key=lambda number: view.chain_state_at(number + 1).changes,
        )
        fields = Entry(next(view.entries(number, number + 1))).read()
        asked = view.chain_state_at(number + 1).asked
        question = (asked - 1) * answers + fields.get("metric", 0) + 1
        released = fields["value"], fields["ladder"], fields.get("error_class")
        changes.append(VisibleChange(question, *released))
        first = number + 1
    return tuple(changes)


def check_opening(opening: dict[str, Any], key: bytes, salt: bytes) -> None:
    """Check the first entry's commitments, as far as the key and its salt allow."""
    if Commitment("key", hashlib.sha256(key).digest(), salt).hash.hex() != opening["key"]:
        raise BrokenLedger("The noise key is not the one that was committed to.")
    committed_fields = {field: opening[field] for field in COMMITTED_FIELDS}
    if digest("opening", committed_fields).hex() != opening["commitment"]:
        raise BrokenLedger("The commitment does not match the first entry.")


def verify_chain(book: ReadView, name: str, ladders: LadderSessions, encryption: Encryption) -> int:
    """Follow the chain, decrypt every secret side and replay every question; return how many.

    A mechanism that needs the losses of examples, which are not stored, cannot be replayed. Then
    only its sequence of states is checked, and the result is 0. Of a gate's looks commitments and
    states are checked, not their verdicts.
    """
    gate, questions = GateState(), 0
    sessions: list[Session] = []
    ladder_changes = LadderChanges(ladders.shared_ladders)
    ladder_digests: list[bytes] = []
    chain_state = EMPTY_CHAIN
    for number, (entry, fields) in enumerate(iter_checked_entries(book.entries(), name)):
        changes = state_changes(chain_state, fields)
        chain_state = chain_state._replace(
            entries=number + 1, head=entry.hash, time=fields["time"], **changes
        )
        if fields["kind"] == "ladder":
            sessions.append(ladders.start(fields["ladder"]))
            ladder_changes.start_ladder()
            ladder_digests.append(digest_state(encode_state(sessions[-1])))
        elif fields["kind"] == "question":
            secret = SecretSide.unpack(_decrypt_secret(book, number, encryption))
            ladder = fields["ladder"]
            questions += 1
            _check_hashes(number, fields, secret, ladder_digests[ladder])
            ladder_digests[ladder] = secret.after
            if ladders.can_replay:
                others = ladder_changes.of_others(ladder)
                _replay_question(number, fields, secret, sessions[ladder], others)
            ladder_changes.count(ladder, changed=fields["improved"])
        elif fields["kind"] in GATE_KINDS:
            gate = _follow_gate(number, fields, _decrypt_secret(book, number, encryption), gate)
    if chain_state != book.chain_state():
        raise BrokenLedger("The stored chain state does not match the last entry.")
    for ladder, last_digest in enumerate(ladder_digests):
        if digest_state(ladders.encoded_state(book, ladder)) != last_digest or book.ladder_changes(
            ladder
        ) != ladder_changes.of(ladder):
            raise BrokenLedger(f"The state of ladder {ladder} does not follow from its questions.")
    _check_gate_state(book, encryption, gate)
    return questions if ladders.can_replay else 0


def _check_gate_state(book: ReadView, encryption: Encryption, gate: GateState) -> None:
    stored = book.get_value(GATE_STATE)
    stored_state = (
        GateState()
        if stored is None
        else GateState.decode(encryption.decrypt(f"kept {GATE_STATE}", stored))
    )
    if stored_state != gate:
        raise BrokenLedger("The state of the gate does not follow from its looks.")


def _decrypt_secret(book: ReadView, number: int, encryption: Encryption) -> bytes:
    packed = book.secret_side(number)
    if packed is None:
        raise broken_entry(number, "its secret side is missing")
    return encryption.decrypt(f"secret {number}", packed)


def _follow_gate(number: int, fields: dict[str, Any], packed: bytes, gate: GateState) -> GateState:
    secret = GateSecret.unpack(packed)
    mismatch = secret.find_mismatch(fields)
    if mismatch:
        raise broken_entry(number, mismatch)
    if fields["kind"] == "promoted":
        return gate.after_promotion(secret.submission)
    return gate.after_look(fields)


def state_changes(chain_state: ChainState, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of the chain state that an entry changes, with their new values."""
    kind = fields["kind"]
    if kind == "question":
        counted = "metric" not in fields  # otherwise it belongs to the question before it
        changes = chain_state.changes + fields["improved"]
        return {"asked": chain_state.asked + counted, "changes": changes}
    if kind == "look":
        return {"asked": chain_state.asked + 1}
    if kind == "ladder":
        return {"ladders": chain_state.ladders + 1}
    if kind == "restored":
        return {"lost": chain_state.lost + 1, "charged": chain_state.charged + fields["charged"]}
    if kind == "resumed":
        return {"charged": chain_state.charged + fields["charged"]}
    return {"closed": True} if kind == "closed" else {}


def _check_hashes(
    number: int, fields: dict[str, Any], secret: SecretSide, state_digest: bytes
) -> None:
    for field, commitment in (
        ("secret", secret.commitment),
        ("submission", secret.submission_commitment),
    ):
        if commitment.hash.hex() != fields[field]:
            raise broken_entry(number, f"its {field} is not what was committed to")
    if secret.before != state_digest:
        raise broken_entry(number, "the ladder's state before this question does not match")


def _replay_question(
    number: int, fields: dict[str, Any], secret: SecretSide, session: Session, others: int
) -> None:
    try:
        release = session.ask(
            risk=secret.risk,
            training=secret.training,
            standard_error=secret.standard_error,
            others=others,
            context=secret.submission,
        )
    except LadderboardError as error:
        raise broken_entry(number, f"it cannot be asked again ({error})") from None
    if session.draws != secret.draws:
        raise broken_entry(number, "its noise was not drawn from the key")
    if release._replace(proven=fields.get("proven")) != release_from_entry(fields):
        raise broken_entry(number, "its release does not follow from its risk and noise")
    if digest_state(encode_state(session)) != secret.after:
        raise broken_entry(number, "the ladder's state after this question does not match")


_FORMAT = 1  # of receipts


class Receipt(NamedTuple):
    """Proves that a submission was answered, and that the ledger up to it was not rewritten.

    Parameters
    ----------
    book
        The id of the chain.
    entry
        The entry's number; None if it would reveal how often others asked.
    hash
        The entry's hash.
    submission, salt
        The digest of the aligned predictions, and the salt with which the entry commits to it.
    """

    book: str
    entry: int | None
    hash: bytes
    submission: bytes
    salt: bytes

    def redacted(self) -> Receipt:
        """Return the receipt without the entry's number, which shows how often others asked.

        The hash stays. The entry and every one before it contain a salted hash whose salt is
        secret, so their contents cannot be guessed from it.
        """
        return self._replace(entry=None)

    def describe(self) -> dict[str, Any]:
        """Return all fields as JSON values.

        >>> Receipt("example", 3, b"h" * 32, b"m" * 32, bytes(32)).describe()["submission"][:8]
        '6d6d6d6d'
        """
        return {
            "format": _FORMAT,
            "book": self.book,
            "entry": self.entry,
            "hash": self.hash.hex(),
            "submission": self.submission.hex(),
            "salt": self.salt.hex(),
        }


def read_receipt(view: ReadView, book: str, number: int, encryption: Encryption) -> Receipt:
    """Return the receipt of a question that was answered before."""
    packed = view.secret_side(number)
    if packed is None:
        raise BrokenLedger(f"Entry {number} of the ledger has no secret side, so no receipt.")
    secret = SecretSide.unpack(encryption.decrypt(f"secret {number}", packed))
    encoded = next(iter(view.entries(number, number + 1)))
    return Receipt(book, number, Entry(encoded).hash, secret.submission, secret.submission_salt)
