"""Copies of a book: moving one to another database, and continuing an old one.

Whoever holds the records holds all secrets, so they belong into a vault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState
from ladderboard.ledger._book import World
from ladderboard.ledger._chain import Entry, append, check, check_opening, follow, moved
from ladderboard.ledger._high_water import HighWater, Level, lacking
from ladderboard.ledger._ladders import Ladders
from ladderboard.ledger._storage import COPY, START, Row
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger._encryption import Seal
    from ladderboard.ledger._storage import At, SqlReading, SqlWriting, Storage
    from ladderboard.ledger._vault import RecordReader, RecordWriter
    from ladderboard.mechanisms import Mechanism

_CLOSED = (b"\0", b"\1")  # what a seal's work begins with; anything else was never secret
_PAGE = 500
_LADDERS = "SELECT number, name FROM main.ladder WHERE book = ? ORDER BY number"
_MARKS = "SELECT mark, number FROM main.mark WHERE book = ? AND mark > ? ORDER BY mark LIMIT ?"
_KEPT = "SELECT name FROM main.kept WHERE book = ? ORDER BY name"


def restore(
    storage: Storage,
    name: str,
    charge: int,
    *,
    water: HighWater | None = None,
    world: World | None = None,
    budget: int | None = None,
) -> At:
    """Charge what may have been asked since a copy was made, and say so in the chain.

    At least as many are charged as the mark shows to be missing. The certificate counts what is
    lost as answers of a ladder of its own, about which nothing is known. ``budget`` is that of
    now, where it was amended.
    """
    charge = _settings.integer("charge", charge, at_least=0)
    world = World() if world is None else world
    level = None if water is None else water.read_if_whole()
    with storage.writing(name) as book:
        at = book.at()
        missing = 0
        if level is not None and level.book == name:
            missing = lacking(level, at, book) or 0
        if charge < missing:
            raise InvalidSetting(
                f"Questions used since this copy was made: at least {missing}; charge so many, or "
                "more."
            )
        if budget is None:
            budget = int(Entry(next(iter(book.entries(0, 1)))).read()["rules"]["questions"])
        left = budget - at.asked - at.charged
        if charge > left:
            raise InvalidSetting(
                f"No more than {left} can be charged: that is how many questions are left."
            )
        book.adopt()
        now = append(
            book,
            name,
            at,
            "restored",
            world.clock(),
            {"charged": charge},
            lost=at.lost + 1,
            charged=at.charged + charge,
        )
    if water is not None:
        water.replace(Level.of(name, now))
    return now


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
