"""Reading and writing a book in SQL, for both databases.

Statements are written for SQLite; ``main.`` and ``?`` are put in PostgreSQL's words by its link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.ledger._storage._base import EMPTY_CHAIN, ChainState, EntryRow, ReadView, WriteView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ladderboard.ledger._storage._pool import Connection

_WHOLE = 2**63
_ENTRIES = 2**40  # more than any book will have
_PAGE = 500  # entries read at once
_DAMAGED = "The database is damaged: it holds what was never written."
_AT_TYPES = (int, bytes, *(int,) * 7)
_AT = (
    "SELECT place, hash, time, asked, changes, ladders, lost, charged, closed "
    "FROM main.entry WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1"
)
_STOOD = (
    "SELECT place, hash, time, asked, changes, ladders, lost, charged, closed "
    "FROM main.entry WHERE place IN ({}) ORDER BY place"
)
_FORMS = "SELECT place, form FROM main.entry WHERE place >= ? AND place < ? ORDER BY place LIMIT ?"
_SECRETS = "SELECT packed FROM main.secret WHERE place = ?"
_LADDERS = "SELECT name FROM main.ladder WHERE book = ? ORDER BY number"
_LADDER = "SELECT number FROM main.ladder WHERE book = ? AND name = ?"
_STATE = "SELECT state FROM main.ladder WHERE book = ? AND number = ?"
_FIND = "SELECT number FROM main.mark WHERE book = ? AND mark = ?"
_KEPT = "SELECT value FROM main.kept WHERE book = ? AND name = ?"
_APPEND = (
    "INSERT INTO main.entry (place, kind, ladder, question, asker, hash, time, asked, changes, "
    "ladders, lost, charged, closed, form) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_APPEND_SECRETS = "INSERT INTO main.secret (place, packed) VALUES (?, ?)"
# What is taken must not break the transaction, which in PostgreSQL an error would.
_MARK = "INSERT INTO main.mark (book, mark, number) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_ADD_LADDER = (
    "INSERT INTO main.ladder (book, number, name, state) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_SET_STATE = "UPDATE main.ladder SET state = ? WHERE book = ? AND number = ?"
_KEEP = (
    "INSERT INTO main.kept (book, name, value) VALUES (?, ?, ?) "
    "ON CONFLICT (book, name) DO UPDATE SET value = excluded.value"
)


def check_text(value: str) -> str:
    """Return text that UTF-8 can write and that has no NUL, which PostgreSQL cannot keep."""
    try:
        plain = "\0" not in value and (value.isascii() or bool(value.encode()))
    except (UnicodeEncodeError, TypeError, AttributeError):
        plain = False
    if not plain:
        raise InvalidSetting("Text to be kept must be Unicode without NUL and lone surrogates.")
    return value


def check_int(value: int) -> int:
    """Return a number of at most 64 bits."""
    if type(value) is not int or not -_WHOLE <= value < _WHOLE:
        raise InvalidSetting("A number to be kept must be whole and of at most 64 bits.")
    return value


def check_ints(values: tuple[int, ...]) -> None:
    """Refuse numbers as ``whole`` does, all at once, which is quicker."""
    if set(map(type, values)) != {int} or min(values) < -_WHOLE or max(values) >= _WHOLE:
        raise InvalidSetting("A number to be kept must be whole and of at most 64 bits.")


def check_bytes(value: bytes) -> bytes:
    """Return bytes, and nothing that only looks like them."""
    if type(value) is not bytes:
        raise InvalidSetting(f"What is kept must be bytes, not {type(value).__name__}.")
    return value


_Kind = TypeVar("_Kind", int, str, bytes)


class SqlReadView(ReadView):
    """A book in a transaction that somebody else begins and ends."""

    def __init__(self, link: Connection, book: int) -> None:
        self.query: Callable[..., list[tuple[Any, ...]]] = link.query
        """Run a statement of another room's, on tables of its own, and return its rows."""
        self.execute: Callable[..., int] = link.execute
        """Run one that changes rows, and return how many."""
        self.book_id = book
        """The book's number, which other tables name it by."""
        self._now: Callable[..., int | None] = link.now
        self._first = book * _ENTRIES
        self._at: ChainState | None = None

    def invalidate(self) -> None:
        """End the view: statements after this would be in nobody's transaction."""
        self.query = self.execute = self._now = _ended
        self._at = None

    def _blob(self, statement: str, *values: Any) -> bytes | None:
        rows = self.query(statement, values)
        return _sound(rows[0][0], bytes) if rows else None

    def now(self) -> int | None:
        """Return the database's own time, if it has one."""
        return self._now()

    def chain_state(self) -> ChainState:
        """Return where the book stands: what its last entry says."""
        if self._at is None:
            rows = self.query(_AT, (self._first, self._first + _ENTRIES))
            self._at = self._read(rows[0]) if rows else EMPTY_CHAIN
        return self._at

    def chain_state_at(self, entries: int) -> ChainState:
        """Return where the book stood when it had so many entries."""
        rows = self.query(_AT, (self._first, self._first + min(max(entries, 0), _ENTRIES)))
        return self._read(rows[0]) if rows else EMPTY_CHAIN

    def chain_states_at(self, entries: Sequence[int]) -> list[ChainState]:
        """Return where the book stood at several times, in order, in one statement."""
        places = [self._first + entry - 1 for entry in entries if 0 < entry <= _ENTRIES]
        if not places:
            return []
        rows = self.query(_STOOD.format(", ".join("?" * len(places))), tuple(places))
        return [self._read(row) for row in rows]

    def _read(self, row: tuple[Any, ...]) -> ChainState:
        if tuple(map(type, row)) != _AT_TYPES:
            raise InvalidState(_DAMAGED)
        place, head, time, asked, changes, ladders, lost, charged, closed = row
        entries = place - self._first + 1
        return ChainState(entries, head, time, asked, changes, ladders, lost, charged, closed != 0)

    def entries(self, first: int = 0, last: int | None = None) -> Iterator[bytes]:
        """Return the bytes of entries, a page at a time."""
        place = self._first + max(first, 0)
        end = self._first + (_ENTRIES if last is None else min(last, _ENTRIES))
        while place < end:
            rows = self.query(_FORMS, (place, end, _PAGE))
            for _, form in rows:
                yield _sound(form, bytes)
            if len(rows) < _PAGE:
                return
            place = rows[-1][0] + 1

    def secret_side(self, number: int) -> bytes | None:
        """Return the secret side of an entry; beyond a book's own numbers are another's."""
        if not 0 <= number < _ENTRIES:
            return None
        return self._blob(_SECRETS, self._first + number)

    def ladder_names(self) -> list[str]:
        """Return the names of all ladders, in the order of their numbers."""
        return [_sound(row[0], str) for row in self.query(_LADDERS, (self.book_id,))]

    def ladder_number(self, name: str) -> int | None:
        """Return the number of a ladder."""
        rows = self.query(_LADDER, (self.book_id, check_text(name)))
        return _sound(rows[0][0], int) if rows else None

    def ladder_state(self, ladder: int) -> bytes | None:
        """Return a ladder's state."""
        return self._blob(_STATE, self.book_id, check_int(ladder))

    def find_by_dedupe_key(self, key: bytes) -> int | None:
        """Return the number of the entry that bears a mark."""
        rows = self.query(_FIND, (self.book_id, check_bytes(key)))
        return _sound(rows[0][0], int) if rows else None

    def get_value(self, name: str) -> bytes | None:
        """Return what is kept under a name."""
        return self._blob(_KEPT, self.book_id, check_text(name))


class SqlWriteView(SqlReadView, WriteView):
    """A book that may be changed, in a transaction that somebody else begins and ends."""

    def append(self, row: EntryRow, at: ChainState, secret: bytes | None = None) -> None:
        """Append an entry; the number is the key, so that two can never share one."""
        number, kind, form, head, ladder, question, asker = row
        if number != self.chain_state().entries or at.entries != number + 1 or at.head != head:
            raise InvalidState(
                f"Entry {number} cannot be appended after {self.chain_state().entries} entries, or "
                "its hash is not the head of the new chain state."
            )
        place = self._first + number
        counts = (*at[2:8], int(at.closed))
        check_ints(counts)
        if ladder is not None:
            check_int(ladder)
        if question is not None:
            check_int(question)
        if asker is not None:
            check_text(asker)
        if secret is not None:
            check_bytes(secret)
        values = (
            check_text(kind),
            ladder,
            question,
            asker,
            check_bytes(head),
            *counts,
            check_bytes(form),
        )
        self.execute(_APPEND, (place, *values))
        if secret is not None:
            self.execute(_APPEND_SECRETS, (place, secret))
        self._at = at

    def add_dedupe_key(self, key: bytes, number: int) -> None:
        """Let an entry bear a mark."""
        if not self.execute(_MARK, (self.book_id, check_bytes(key), check_int(number))):
            raise InvalidState("This mark is borne by an entry already.")

    def add_ladder(self, ladder: int, name: str, state: bytes) -> None:
        """Add a ladder; a number or a name that is taken is refused."""
        values = (self.book_id, check_int(ladder), check_text(name), check_bytes(state))
        if not self.execute(_ADD_LADDER, values):
            raise InvalidState(f"There is a ladder {ladder} already, or one of this name.")

    def set_ladder_state(self, ladder: int, state: bytes) -> None:
        """Replace a ladder's state."""
        if not self.execute(_SET_STATE, (check_bytes(state), self.book_id, check_int(ladder))):
            raise InvalidState(f"There is no ladder {ladder}.")

    def set_value(self, name: str, value: bytes) -> None:
        """Keep something under a name."""
        self.execute(_KEEP, (self.book_id, check_text(name), check_bytes(value)))


def _ended(*_: object) -> NoReturn:
    raise InvalidState("The block of this view has ended; begin another one.")


def _sound(value: Any, kind: type[_Kind]) -> _Kind:
    """Return what a database gave, if it is of the kind that was put in."""
    if type(value) is not kind:
        raise InvalidState(_DAMAGED)
    return value
