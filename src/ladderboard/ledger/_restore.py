"""Copies of a book: moving one to another database, and continuing an old one.

Whoever holds the records holds all secrets, so they belong into a vault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState
from ladderboard.ledger._book import LedgerEnvironment
from ladderboard.ledger._chain import (
    Entry,
    append_entry,
    check_opening,
    iter_checked_entries,
    state_changes,
    verify_chain,
)
from ladderboard.ledger._high_water import HighWaterMark, Position, missing_questions
from ladderboard.ledger._ladders import LadderSessions
from ladderboard.ledger._storage import COPY, EMPTY_CHAIN, EntryRow
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger._encryption import Encryption
    from ladderboard.ledger._storage import ChainState, SqlReadView, SqlWriteView, Storage
    from ladderboard.ledger._vault import RecordReader, RecordWriter
    from ladderboard.mechanisms import Mechanism

_CLOSED = (b"\0", b"\1")  # what a encryption's work begins with; anything else was never secret
_PAGE = 500
_LADDERS = "SELECT number, name FROM main.ladder WHERE book = ? ORDER BY number"
_MARKS = "SELECT mark, number FROM main.mark WHERE book = ? AND mark > ? ORDER BY mark LIMIT ?"
_KEPT = "SELECT name FROM main.kept WHERE book = ? ORDER BY name"


def adopt_copy(
    storage: Storage,
    name: str,
    charge: int,
    *,
    high_water: HighWaterMark | None = None,
    environment: LedgerEnvironment | None = None,
    budget: int | None = None,
) -> ChainState:
    """Charge what may have been asked since a copy was made, and say so in the chain.

    At least as many are charged as the mark shows to be missing. The certificate counts what is
    lost as answers of a ladder of its own, about which nothing is known. ``budget`` is that of
    now, where it was amended.
    """
    charge = _settings.integer("charge", charge, at_least=0)
    environment = LedgerEnvironment() if environment is None else environment
    level = None if high_water is None else high_water.read_if_intact()
    with storage.write_transaction(name) as book:
        at = book.chain_state()
        missing = 0
        if level is not None and level.book == name:
            missing = missing_questions(level, at, book) or 0
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
        book.clear_copy_flag()
        now = append_entry(
            book,
            name,
            at,
            "restored",
            {"charged": charge},
            time=environment.clock(),
            lost=at.lost + 1,
            charged=at.charged + charge,
        )
    if high_water is not None:
        high_water.replace(Position.from_state(name, now))
    return now


def export_book(view: SqlReadView, encryption: Encryption, records: RecordWriter) -> None:
    """Write everything of a book, a row at a time, as it is in one view."""
    for number, form in enumerate(view.entries()):
        packed = view.secret_side(number)
        place = f"secret {number}"
        records.write_record(
            "entry", [form, None if packed is None else encryption.decrypt(place, packed)]
        )
    for number, name in view.query(_LADDERS, (view.book_id,)):
        state = _there(view.ladder_state(number))
        records.write_record("ladder", [number, name, encryption.decrypt(f"state {number}", state)])
    last = b""
    while rows := view.query(_MARKS, (view.book_id, last, _PAGE)):
        for mark, number in rows:
            records.write_record("mark", [mark, number])
        last = rows[-1][0]
    for (name,) in view.query(_KEPT, (view.book_id,)):
        kept = _there(view.get_value(name))
        if name != COPY:
            closed = kept[:1] in _CLOSED
            content = encryption.decrypt(f"kept {name}", kept) if closed else kept
            records.write_record("kept", [name, content, closed])


def import_book(
    view: SqlWriteView, name: str, encryption: Encryption, records: RecordReader
) -> ChainState:
    """Put what ``export_book`` wrote into an empty book, and return where it stands.

    The chain is followed here; ``check_book`` does the rest.
    """
    at = EMPTY_CHAIN
    secrets: list[bytes | None] = []

    def forms() -> Iterator[bytes]:
        for form, secret in records.read_section("entry"):
            secrets.append(secret)
            yield form

    for entry, fields in iter_checked_entries(forms(), name):
        secret = secrets.pop()
        at = at._replace(
            entries=at.entries + 1,
            head=entry.hash,
            time=fields["time"],
            **state_changes(at, fields),
        )
        number = at.entries - 1
        places = (fields.get("ladder"), fields.get("question"), fields.get("asker"))
        row = EntryRow(number, fields["kind"], entry.form, entry.hash, *places)
        closed = None if secret is None else encryption.encrypt(f"secret {number}", secret)
        view.append(row, at, closed)
    for number, ladder, state in records.read_section("ladder"):
        view.add_ladder(number, ladder, encryption.encrypt(f"state {number}", state))
    for mark, number in records.read_section("mark"):
        if not 0 <= number < at.entries:
            raise BrokenLedger(f"A mark belongs to entry {number}, which is not there.")
        view.add_dedupe_key(mark, number)
    for kept, value, closed in records.read_section("kept"):
        if kept == COPY or (not closed and value[:1] in _CLOSED):
            raise BrokenLedger("Something is kept that no ledger keeps.")
        view.set_value(kept, encryption.encrypt(f"kept {kept}", value) if closed else value)
    return at


def check_book(
    view: SqlReadView, name: str, encryption: Encryption, *, mechanism: Mechanism | None = None
) -> int:
    """Recompute everything as ``Book.check`` does, in a transaction that is not committed yet."""
    first = next(iter(view.entries(0, 1)), None)
    if first is None:
        raise BrokenLedger("The ledger has no entry.")
    opening = Entry(first).read()
    held: dict[str, Any] = {}
    for each in ("key", "salt of the key", "salt of the holdout", "marking"):
        held[each] = encryption.decrypt(f"kept {each}", _there(view.get_value(each)))
    if opening["kind"] != "opened":
        raise BrokenLedger("The ledger does not begin with what was committed to.")
    check_opening(opening, held["key"], held["salt of the key"])
    mechanism = mechanism_of(opening["mechanism"]) if mechanism is None else mechanism
    ladders = LadderSessions(mechanism, opening["n"], Tape(key=held["key"]), encryption)
    if len(view.ladder_names()) != view.chain_state().ladders:
        raise BrokenLedger("There are ladders that no entry has started.")
    return verify_chain(view, name, ladders, encryption)


def append_restored_entry(
    view: SqlWriteView, name: str, at: ChainState, environment: LedgerEnvironment
) -> ChainState:
    """Say in the chain that this is a copy, and that nobody knows what was asked since."""
    shared = view.now() if environment.uses_system_clock else None
    time = environment.clock() if shared is None else shared
    return append_entry(view, name, at, "restored", {"charged": 0}, time=time, lost=at.lost + 1)


def _there(held: bytes | None) -> bytes:
    if held is None:
        raise InvalidState("A part of the secret side is missing.")
    return held
