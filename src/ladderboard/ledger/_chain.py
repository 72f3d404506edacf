"""The hash chain: its entries, appending to it, following it and checking it."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenLedger, LadderboardError
from ladderboard.ledger._commitments import DECIDED, Commitment, SecretSide
from ladderboard.ledger._encoding import digest
from ladderboard.ledger._ladders import digest_state, encode_state
from ladderboard.ledger._storage import EMPTY_CHAIN, EntryRow
from ladderboard.mechanisms import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ladderboard.ledger._encryption import Encryption
    from ladderboard.ledger._ladders import LadderSessions
    from ladderboard.ledger._storage import ChainState, ReadView, WriteView
    from ladderboard.mechanisms import Session

FORMAT = 1
NO_PREVIOUS = bytes(32)  # what the first entry calls its predecessor
_PREFIX = b"ladderboard:1:entry\n"
_WRITER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_COMMON = ("format", "book", "number", "kind", "time", "previous")


@dataclass(frozen=True)
class Entry:
    """One entry, as its bytes; everything else is read from them.

    The bytes are ASCII JSON. They are kept and hashed as they were written, so nobody has to agree
    on how to write JSON, only on how to read it.
    """

    form: bytes

    @classmethod
    def make(
        cls, *, book: str, number: int, kind: str, time: int, previous: bytes, **more: Any
    ) -> Entry:
        """Write an entry; ``more`` are the fields of its kind."""
        fields = {
            "format": FORMAT,
            "book": book,
            "number": number,
            "kind": kind,
            "time": time,
            "previous": previous.hex(),
            **more,
        }
        return cls(_WRITER.encode(fields).encode("ascii"))

    @cached_property
    def hash(self) -> bytes:
        """The SHA-256 of the bytes, with their length before them."""
        return hashlib.sha256(_PREFIX + struct.pack(">Q", len(self.form)) + self.form).digest()

    def read(self) -> dict[str, Any]:
        """Return the fields, or raise ``BrokenLedger`` where the bytes are no entry."""
        try:
            fields = parse_strict_json(self.form.decode("ascii"))
            if any(name not in fields for name in _COMMON):
                raise ValueError("fields are missing")
        except (RecursionError, ValueError):
            raise BrokenLedger("An entry of the ledger cannot be read; it was damaged.") from None
        if fields["format"] != FORMAT:
            raise BrokenLedger(
                f"An entry has format {fields['format']!r:.20}; this version reads {FORMAT}."
            )
        return fields


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a field that is written twice: readers would not agree on it."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is written twice")
    return fields


def _not_json(name: str) -> None:
    """Refuse NaN and infinities, which Python reads and JSON does not know."""
    raise ValueError(f"{name} is no JSON")


_decode_nested = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_not_json).raw_decode
_decode_flat = json.JSONDecoder(parse_constant=_not_json).raw_decode


def parse_strict_json(text: str) -> dict[str, Any]:
    """Return a JSON object that fills a text from end to end, in which no name comes twice.

    >>> parse_strict_json('{"a":1}')
    {'a': 1}
    """
    fields, end = _decode_flat(text)
    if end != len(text) or type(fields) is not dict:
        raise ValueError("it is no JSON object")
    # Each name has its colon. Where there are no more colons than names, no name was lost.
    return fields if text.count(":") == len(fields) else _decode_nested(text)[0]


class ChainHead(NamedTuple):
    """The last entry: how many there are, and its hash. Whoever keeps it can tell a rewrite."""

    entries: int
    hash: bytes


def append_entry(
    book: WriteView,
    name: str,
    at: ChainState,
    kind: str,
    fields: dict[str, Any],
    *,
    time: int,
    secret: bytes | None = None,
    **moved: Any,
) -> ChainState:
    """Append an entry, and return where the book stands after it. Time never runs backwards."""
    time = max(time, at.time)
    entry = Entry.make(
        book=name, number=at.entries, kind=kind, time=time, previous=at.head, **fields
    )
    own = entry.hash
    now = at._replace(entries=at.entries + 1, head=own, time=time, **moved)
    places = (fields.get("ladder"), fields.get("question"), fields.get("asker"))
    book.append(EntryRow(at.entries, kind, entry.form, own, *places), now, secret)
    return now


def iter_checked_entries(
    forms: Iterable[bytes], book: str | None = None
) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Read entries in their order and check that each follows from the last.

    Raises ``BrokenLedger`` that names the first entry that does not.
    """
    previous, last = NO_PREVIOUS, 0
    for number, form in enumerate(forms):
        entry = Entry(form)
        try:
            fields = entry.read()
        except BrokenLedger as broken:
            raise BrokenLedger(f"Entry {number}: {broken}", entry=number) from None
        book = fields["book"] if book is None else book
        wrong = _wrong(fields, book, number, previous, last)
        if wrong:
            raise broken_entry(number, wrong)
        previous, last = entry.hash, fields["time"]
        yield entry, fields


def broken_entry(number: int, how: str) -> BrokenLedger:
    """Return the error that names an entry, and how it differs."""
    said = f"Entry {number} of the ledger is not as it was written: {how}."
    return BrokenLedger(said, entry=number)


def _wrong(fields: dict[str, Any], book: str, number: int, previous: bytes, last: int) -> str:
    if fields["book"] != book:
        return "it belongs to another book"
    if type(fields["number"]) is not int or fields["number"] != number:
        return f"it is numbered {fields['number']!r:.20}"
    if fields["previous"] != previous.hex():
        return "it does not follow the entry before it"
    if type(fields["time"]) is not int or fields["time"] < last:
        return "its time is before that of the last"
    return ""


def release_from_entry(fields: dict[str, Any]) -> Release:
    """Return the release that an entry tells."""
    return Release(fields["value"], fields["score"], fields["improved"], fields["question"])


def check_opening(opening: dict[str, Any], key: bytes, salt: bytes) -> None:
    """Recompute what the first entry commits to, as far as the key and its salt go."""
    if Commitment("key", hashlib.sha256(key).digest(), salt).hash.hex() != opening["key"]:
        raise BrokenLedger("The noise key is not the one that was committed to.")
    decided = {each: opening[each] for each in DECIDED}
    if digest("opening", decided).hex() != opening["commitment"]:
        raise BrokenLedger("The commitment is not that of what the first entry says.")


def verify_chain(book: ReadView, name: str, ladders: LadderSessions, encryption: Encryption) -> int:
    """Follow the chain, open every secret side, ask every question again; return how many.

    Of a mechanism that looks at the losses of examples, which are not kept, no question can be
    asked again; it is seen that its states follow each other, and the return is 0.
    """
    sessions: list[Session] = []
    stood: list[bytes] = []
    at = EMPTY_CHAIN
    for number, (entry, fields) in enumerate(iter_checked_entries(book.entries(), name)):
        changed = state_changes(at, fields)
        at = at._replace(entries=number + 1, head=entry.hash, time=fields["time"], **changed)
        if fields["kind"] == "ladder":
            sessions.append(ladders.start(fields["ladder"]))
            stood.append(digest_state(encode_state(sessions[-1])))
        elif fields["kind"] == "question":
            packed = book.secret_side(number)
            if packed is None:
                raise broken_entry(number, "its secret side is missing")
            secret = SecretSide.unpack(encryption.decrypt(f"secret {number}", packed))
            ladder = fields["ladder"]
            _check_hashes(number, fields, secret, stood[ladder])
            stood[ladder] = secret.after
            if ladders.replay:
                _ask_again(number, fields, secret, sessions[ladder])
    if at != book.chain_state():
        raise BrokenLedger("The ledger's last entry is not where the book says it stands.")
    for ladder, last in enumerate(stood):
        if digest_state(ladders.form(book, ladder)) != last:
            raise BrokenLedger(f"The state of ladder {ladder} does not follow from its questions.")
    return at.asked if ladders.replay else 0


def state_changes(at: ChainState, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what an entry moves."""
    kind = fields["kind"]
    if kind == "question":
        return {"asked": at.asked + 1, "changes": at.changes + fields["improved"]}
    if kind == "ladder":
        return {"ladders": at.ladders + 1}
    if kind == "restored":
        return {"lost": at.lost + 1, "charged": at.charged + fields["charged"]}
    if kind == "resumed":
        return {"charged": at.charged + fields["charged"]}
    return {"closed": True} if kind == "closed" else {}


def _check_hashes(number: int, fields: dict[str, Any], secret: SecretSide, stood: bytes) -> None:
    for shown, commitment in (
        ("secret", secret.commitment),
        ("submission", secret.submission_commitment),
    ):
        if commitment.hash.hex() != fields[shown]:
            raise broken_entry(number, f"its {shown} is not what was committed to")
    if secret.before != stood:
        raise broken_entry(number, "its ladder stood elsewhere before it")


def _ask_again(number: int, fields: dict[str, Any], secret: SecretSide, session: Session) -> None:
    try:
        given = {} if secret.training is None else {"training": secret.training}
        release = session.ask(risk=secret.risk, context=secret.submission, **given)
    except LadderboardError as error:
        raise broken_entry(number, f"it cannot be asked again ({error})") from None
    if session.draws != secret.draws:
        raise broken_entry(number, "its noise was not drawn from the key")
    if release != release_from_entry(fields):
        raise broken_entry(number, "its release does not follow from its risk and noise")
    if digest_state(encode_state(session)) != secret.after:
        raise broken_entry(number, "its ladder stood elsewhere after it")
