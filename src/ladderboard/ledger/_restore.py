"""Copies of a book: moving one to another database, and continuing an old one.

The exported records contain all secrets, so write them to a vault.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState
from ladderboard.ledger._book_transaction import LedgerEnvironment
from ladderboard.ledger._chain import (
    Entry,
    LadderSessions,
    append_entry,
    check_opening,
    examples_in_sessions,
    iter_checked_entries,
    state_changes,
    verify_chain,
)
from ladderboard.ledger._high_water import HighWaterMark, Position, missing_questions
from ladderboard.ledger._storage import COPY, EMPTY_CHAIN, EntryRow
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger._commitments import Encryption
    from ladderboard.ledger._storage import ChainState, ReadView, Storage, WriteView
    from ladderboard.ledger._vault import RecordReader, RecordWriter
    from ladderboard.mechanisms import Mechanism

# The first byte of what ``Encryption.encrypt`` returns; other values were never secret.
_ENCRYPTION_BYTES = (b"\0", b"\1")
_PAGE = 500
_LADDERS = "SELECT number, name FROM main.ladder WHERE book = ? ORDER BY number"
_DEDUPE_KEYS = (
    "SELECT mark, number FROM main.mark WHERE book = ? AND mark > ? ORDER BY mark LIMIT ?"
)
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
    """Continue an old copy: charge the questions that are missing from it, as an entry.

    ``charge`` must be at least what the high-water mark shows to be missing. The certificate counts
    the lost answers as those of a further ladder about which nothing is known. ``budget`` is the
    current one, if it was amended.
    """
    charge = _settings.integer("charge", charge, at_least=0)
    environment = LedgerEnvironment() if environment is None else environment
    position = None if high_water is None else high_water.read_if_intact()
    with storage.write_transaction(name) as book:
        chain_state = book.chain_state()
        missing = 0
        if position is not None and position.book == name:
            missing = missing_questions(position, chain_state, book) or 0
        if charge < missing:
            raise InvalidSetting(
                f"Questions used since this copy was made: at least {missing:,}. Charge that many, "
                "or more."
            )
        if budget is None:
            budget = int(Entry(next(iter(book.entries(0, 1)))).read()["rules"]["questions"])
        questions_left = budget - chain_state.asked - chain_state.charged
        if charge > questions_left:
            raise InvalidSetting(f"Questions left: {questions_left:,}. Charge at most that many.")
        book.clear_copy_flag()
        new_state = append_entry(
            book,
            name,
            chain_state,
            "restored",
            {"charged": charge},
            time=environment.clock(),
            lost=chain_state.lost + 1,
            charged=chain_state.charged + charge,
        )
    if high_water is not None:
        high_water.replace(Position.from_state(name, new_state))
    return new_state


def export_book(view: ReadView, encryption: Encryption, records: RecordWriter) -> None:
    """Write everything of a book, decrypted, one row per record, from one consistent view."""
    for number, encoded in enumerate(view.entries()):
        packed = view.secret_side(number)
        context = f"secret {number}"
        records.write_record(
            "entry", [encoded, None if packed is None else encryption.decrypt(context, packed)]
        )
    for number, name in view.query(_LADDERS, (view.book_id,)):
        state = _require(view.ladder_state(number))
        records.write_record("ladder", [number, name, encryption.decrypt(f"state {number}", state)])
    last = b""
    while rows := view.query(_DEDUPE_KEYS, (view.book_id, last, _PAGE)):
        for dedupe_key, number in rows:
            records.write_record("mark", [dedupe_key, number])
        last = rows[-1][0]
    for (name,) in view.query(_KEPT, (view.book_id,)):
        stored = _require(view.get_value(name))
        if name != COPY:
            encrypted = stored[:1] in _ENCRYPTION_BYTES
            content = encryption.decrypt(f"kept {name}", stored) if encrypted else stored
            records.write_record("kept", [name, content, encrypted])


def import_book(
    view: WriteView, name: str, encryption: Encryption, records: RecordReader
) -> ChainState:
    """Read what ``export_book`` wrote into an empty book, and return its chain state.

    This checks the chain of hashes only; call ``check_book`` for the rest.
    """
    chain_state = EMPTY_CHAIN
    secrets: list[bytes | None] = []
    changes: Counter[int] = Counter()

    def encoded_entries() -> Iterator[bytes]:
        for encoded, secret in records.read_section("entry"):
            secrets.append(secret)
            yield encoded

    for entry, fields in iter_checked_entries(encoded_entries(), name):
        secret = secrets.pop()
        if fields["kind"] == "question" and fields["improved"]:
            changes[fields["ladder"]] += 1
        chain_state = chain_state._replace(
            entries=chain_state.entries + 1,
            head=entry.hash,
            time=fields["time"],
            **state_changes(chain_state, fields),
        )
        number = chain_state.entries - 1
        columns = (fields.get("ladder"), fields.get("question"), fields.get("asker"))
        row = EntryRow(number, fields["kind"], entry.encoded, entry.hash, *columns)
        closed = None if secret is None else encryption.encrypt(f"secret {number}", secret)
        view.append(row, chain_state, closed)
    for number, ladder, state in records.read_section("ladder"):
        encrypted = encryption.encrypt(f"state {number}", state)
        view.add_ladder(number, ladder, encrypted, changes=changes[number])
    for dedupe_key, number in records.read_section("mark"):
        if not 0 <= number < chain_state.entries:
            raise BrokenLedger(
                f"A key of a submission belongs to entry {number}, which is missing."
            )
        view.add_dedupe_key(dedupe_key, number)
    for value_name, value, closed in records.read_section("kept"):
        if value_name == COPY or (not closed and value[:1] in _ENCRYPTION_BYTES):
            raise BrokenLedger("The dump has a stored value that no ledger has.")
        view.set_value(
            value_name, encryption.encrypt(f"kept {value_name}", value) if closed else value
        )
    return chain_state


def check_book(
    view: ReadView, name: str, encryption: Encryption, *, mechanism: Mechanism | None = None
) -> int:
    """Recompute everything as ``Book.check`` does, in the caller's open transaction."""
    first_entry = next(iter(view.entries(0, 1)), None)
    if first_entry is None:
        raise BrokenLedger("The ledger has no entry.")
    opening = Entry(first_entry).read()
    secret_values: dict[str, Any] = {}
    for value_name in ("key", "salt of the key", "salt of the holdout", "marking"):
        secret_values[value_name] = encryption.decrypt(
            f"kept {value_name}", _require(view.get_value(value_name))
        )
    if opening["kind"] != "opened":
        raise BrokenLedger("The ledger does not begin with what was committed to.")
    check_opening(opening, secret_values["key"], secret_values["salt of the key"])
    mechanism = mechanism_of(opening["mechanism"]) if mechanism is None else mechanism
    examples = examples_in_sessions(opening["n"], opening["rules"])
    ladders = LadderSessions(mechanism, examples, Tape(key=secret_values["key"]), encryption)
    if len(view.ladder_names()) != view.chain_state().ladders:
        raise BrokenLedger("There are ladders without an entry that starts them.")
    return verify_chain(view, name, ladders, encryption)


def append_restored_entry(
    view: WriteView, name: str, chain_state: ChainState, environment: LedgerEnvironment
) -> ChainState:
    """Append the entry that marks this book as a copy; later questions may be missing from it."""
    database_time = view.now() if environment.uses_system_clock else None
    time = environment.clock() if database_time is None else database_time
    return append_entry(
        view, name, chain_state, "restored", {"charged": 0}, time=time, lost=chain_state.lost + 1
    )


def _require(stored: bytes | None) -> bytes:
    if stored is None:
        raise InvalidState("A value of the secret side is missing.")
    return stored
