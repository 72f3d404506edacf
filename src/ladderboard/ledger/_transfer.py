"""A book on its way to another database: opened on the way out, closed by another seal on arrival.

Whoever holds the records holds all secrets, so they belong into a vault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.ledger._chain import append, follow
from ladderboard.ledger._check import check, check_opening, moved
from ladderboard.ledger._entry import Entry
from ladderboard.ledger._ladders import Ladders
from ladderboard.ledger._storage import COPY, START, Row
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger._records import RecordReader, RecordWriter
    from ladderboard.ledger._seal import Seal
    from ladderboard.ledger._sql import SqlReading, SqlWriting
    from ladderboard.ledger._storage import At
    from ladderboard.ledger._world import World
    from ladderboard.mechanisms import Mechanism

__all__ = ["check_book", "note_restored", "put_book", "take_book"]

_CLOSED = (b"\0", b"\1")  # what a seal's work begins with; anything else was never secret
_PAGE = 500
_LADDERS = "SELECT number, name FROM main.ladder WHERE book = ? ORDER BY number"
_MARKS = "SELECT mark, number FROM main.mark WHERE book = ? AND mark > ? ORDER BY mark LIMIT ?"
_KEPT = "SELECT name FROM main.kept WHERE book = ? ORDER BY name"


def take_book(view: SqlReading, seal: Seal, records: RecordWriter) -> None:
    """Write everything of a book, a row at a time, as it is in one view."""
    for number, form in enumerate(view.entries()):
        packed = view.secret(number)
        place = f"secret {number}"
        records.put("entry", [form, None if packed is None else seal.open(place, packed)])
    for number, name in view.run(_LADDERS, (view.number,)):
        state = _there(view.state(number))
        records.put("ladder", [number, name, seal.open(f"state {number}", state)])
    last = b""
    while rows := view.run(_MARKS, (view.number, last, _PAGE)):
        for mark, number in rows:
            records.put("mark", [mark, number])
        last = rows[-1][0]
    for (name,) in view.run(_KEPT, (view.number,)):
        kept = _there(view.kept(name))
        if name != COPY:
            closed = kept[:1] in _CLOSED
            content = seal.open(f"kept {name}", kept) if closed else kept
            records.put("kept", [name, content, closed])


def put_book(view: SqlWriting, name: str, seal: Seal, records: RecordReader) -> At:
    """Put what ``take_book`` wrote into an empty book, and return where it stands.

    The chain is followed here; ``check_book`` does the rest.
    """
    at = START
    secrets: list[bytes | None] = []

    def forms() -> Iterator[bytes]:
        for form, secret in records.section("entry"):
            secrets.append(secret)
            yield form

    for entry, fields in follow(forms(), name):
        secret = secrets.pop()
        at = at._replace(
            entries=at.entries + 1, head=entry.hash, time=fields["time"], **moved(at, fields)
        )
        number = at.entries - 1
        places = (fields.get("ladder"), fields.get("question"), fields.get("asker"))
        row = Row(number, fields["kind"], entry.form, entry.hash, *places)
        closed = None if secret is None else seal.close(f"secret {number}", secret)
        view.append(row, at, closed)
    for number, ladder, state in records.section("ladder"):
        view.add_ladder(number, ladder, seal.close(f"state {number}", state))
    for mark, number in records.section("mark"):
        if not 0 <= number < at.entries:
            raise BrokenLedger(f"A mark belongs to entry {number}, which is not there.")
        view.mark(mark, number)
    for kept, value, closed in records.section("kept"):
        if kept == COPY or (not closed and value[:1] in _CLOSED):
            raise BrokenLedger("Something is kept that no ledger keeps.")
        view.keep(kept, seal.close(f"kept {kept}", value) if closed else value)
    return at


def check_book(
    view: SqlReading, name: str, seal: Seal, *, mechanism: Mechanism | None = None
) -> int:
    """Recompute everything as ``Book.check`` does, in a transaction that is not committed yet."""
    first = next(iter(view.entries(0, 1)), None)
    if first is None:
        raise BrokenLedger("The ledger has no entry.")
    opening = Entry(first).read()
    held: dict[str, Any] = {}
    for each in ("key", "salt of the key", "salt of the holdout", "marking"):
        held[each] = seal.open(f"kept {each}", _there(view.kept(each)))
    if opening["kind"] != "opened":
        raise BrokenLedger("The ledger does not begin with what was committed to.")
    check_opening(opening, held["key"], held["salt of the key"])
    mechanism = mechanism_of(opening["mechanism"]) if mechanism is None else mechanism
    ladders = Ladders(mechanism, opening["n"], Tape(key=held["key"]), seal)
    if len(view.ladders()) != view.at().ladders:
        raise BrokenLedger("There are ladders that no entry has started.")
    return check(view, name, ladders, seal)


def note_restored(view: SqlWriting, name: str, at: At, world: World) -> At:
    """Say in the chain that this is a copy, and that nobody knows what was asked since."""
    shared = view.now() if world.real else None
    time = world.clock() if shared is None else shared
    return append(view, name, at, "restored", time, {"charged": 0}, lost=at.lost + 1)


def _there(held: bytes | None) -> bytes:
    if held is None:
        raise InvalidState("A part of the secret side is missing.")
    return held
