"""Transactions on a database of books, and reading and writing a book in SQL.

A database holds books: for each its chain, its ladders and other stored values. A view is valid
inside the ``with`` block of its transaction only. A number or name that is taken or missing, and
text that cannot be stored (with NUL in it), are refused with ``InvalidInput``: nothing was changed,
and the block may go on.

Statements are written for SQLite; ``PostgresConnection`` translates ``main.``, ``?`` and
``NULL AS now``, which is the time of its server.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Self, TypeVar

from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.ledger._storage._schema import migrate_module, module_format

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ladderboard.ledger._storage._pool import Connection, Pool, Prefetch
    from ladderboard.ledger._storage._schema import SchemaModule


_INT64_LIMIT = 2**63
_MAX_ENTRIES = 2**40  # more than any book will have
_PAGE = 500  # entries read at once
_KEY_TAKEN = "This key belongs to an entry already."
_DAMAGED = "The database is damaged: a column has a value that Ladderboard never writes."
_STATE_TYPES = (int, bytes, *(int,) * 7)
_STATE_START = -len(_STATE_TYPES) - 1  # in a row that ends with STATE_COLUMNS
_SELECT_STATE = (
    "SELECT place, hash, time, asked, changes, ladders, lost, charged, closed, NULL AS now "
    "FROM main.entry WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1"
)
STATE_COLUMNS = (
    "e.place, e.hash, e.time, e.asked, e.changes, e.ladders, e.lost, e.charged, e.closed, "
    "NULL AS now"
)
"""Columns for ``ReadView.query_with_state``, where ``STATE_JOIN`` is joined."""
STATE_JOIN = (
    "LEFT JOIN main.entry e ON e.place = (SELECT MAX(place) FROM main.entry "  # noqa: S608
    f"WHERE place >= b.book * {_MAX_ENTRIES} AND place < (b.book + 1) * {_MAX_ENTRIES})"
)
"""Joins the last entry of a book to a table ``b`` with a column ``book``."""
STATE_ENTRIES = f"COALESCE(e.place - b.book * {_MAX_ENTRIES} + 1, 0)"
"""How many entries a book has, where ``STATE_JOIN`` is joined."""
_SELECT_STATES = (
    "SELECT place, hash, time, asked, changes, ladders, lost, charged, closed "
    "FROM main.entry WHERE place IN ({}) ORDER BY place"
)
_SELECT_ENTRIES = (
    "SELECT place, form FROM main.entry WHERE place >= ? AND place < ? ORDER BY place LIMIT ?"
)
_SELECT_LAST_CHANGES = (
    "SELECT form FROM main.entry WHERE place IN ("
    "SELECT MAX(e.place) FROM main.entry e JOIN main.entry p ON p.place = e.place - 1 "
    "WHERE e.place >= ? AND e.place < ? AND p.place >= ? AND p.place < ? "
    "AND e.kind = 'question' AND e.changes > p.changes "
    "GROUP BY e.ladder) ORDER BY place"
)
_SELECT_SECRETS = "SELECT packed FROM main.secret WHERE place = ?"
_SELECT_LADDER_NAMES = "SELECT name FROM main.ladder WHERE book = ? ORDER BY number"
_SELECT_LADDER_NUMBER = "SELECT number FROM main.ladder WHERE book = ? AND name = ?"
_SELECT_LADDER_STATE = "SELECT state FROM main.ladder WHERE book = ? AND number = ?"
_SELECT_LADDER_CHANGES = "SELECT changes FROM main.ladder WHERE book = ? AND number = ?"
_SELECT_LARGEST_CHANGES = (
    "SELECT SUM(changes), MIN(changes) FROM (SELECT changes FROM main.ladder WHERE book = ? "
    "ORDER BY changes DESC LIMIT ?) AS largest"
)
_SELECT_BY_DEDUPE_KEY = "SELECT number FROM main.mark WHERE book = ? AND mark = ?"
_SELECT_STATE_BY_DEDUPE_KEY = _SELECT_STATE.replace(
    "SELECT ", f"SELECT ({_SELECT_BY_DEDUPE_KEY}), ", 1
)
_SELECT_VALUE = "SELECT value FROM main.kept WHERE book = ? AND name = ?"
_INSERT_ENTRY = (
    "INSERT INTO main.entry (place, kind, ladder, question, asker, hash, time, asked, changes, "
    "ladders, lost, charged, closed, form) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_SECRETS = "INSERT INTO main.secret (place, packed) VALUES (?, ?)"
# A name that is taken must not raise an error, which would end a PostgreSQL transaction.
_INSERT_DEDUPE_KEY = (
    "INSERT INTO main.mark (book, mark, number) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
)
_INSERT_LADDER = (
    "INSERT INTO main.ladder (book, number, name, state, changes) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
# One statement whether or not the ladder changed; an index of changes would be one more page to
# write if it did.
_UPDATE_LADDER = (
    "UPDATE main.ladder SET state = ?, changes = changes + ? WHERE book = ? AND number = ?"
)
_UPSERT_VALUE = (
    "INSERT INTO main.kept (book, name, value) VALUES (?, ?, ?) "
    "ON CONFLICT (book, name) DO UPDATE SET value = excluded.value"
)


COPY = "copy"  # name of the stored value that flags a copy which was not adopted yet


class ChainState(NamedTuple):
    """The current state of a book's chain: its length, its head and its counts.

    ``entries`` and ``head`` are the length of the chain and the hash of its last entry, ``time``
    is that entry's; ``asked`` is how many questions were answered, ``changes`` how many of them
    improved, ``ladders`` how many ladders were started; ``lost`` is how often an old copy was
    restored, and ``charged`` how many questions were charged for that without an answer here;
    ``closed`` says whether the book is closed.
    """

    entries: int
    head: bytes
    time: int
    asked: int
    changes: int
    ladders: int
    lost: int
    charged: int
    closed: bool


EMPTY_CHAIN = ChainState(0, bytes(32), 0, 0, 0, 0, 0, 0, closed=False)  # a book with nothing in it


class EntryRow(NamedTuple):
    """An entry as it is stored: its bytes, and columns to find it by.

    ``ladder``, ``question`` and ``asker`` are None for entries without these fields.
    """

    number: int
    kind: str
    encoded: bytes
    hash: bytes
    ladder: int | None = None
    question: int | None = None
    asker: str | None = None


def check_text(value: str) -> str:
    """Return text that UTF-8 can encode and that has no NUL, which PostgreSQL cannot store."""
    try:
        plain = "\0" not in value and (value.isascii() or bool(value.encode()))
    except (UnicodeEncodeError, TypeError, AttributeError):
        plain = False
    if not plain:
        raise InvalidSetting("Text to be stored must be Unicode without NUL and lone surrogates.")
    return value


def check_int(value: int) -> int:
    """Return a number of at most 64 bits."""
    if type(value) is not int or not -_INT64_LIMIT <= value < _INT64_LIMIT:
        raise InvalidSetting("A number to be stored must be an integer of at most 64 bits.")
    return value


def check_ints(values: tuple[int, ...]) -> None:
    """Check numbers as ``check_int`` does, all at once, which is faster."""
    if (
        set(map(type, values)) != {int}
        or min(values) < -_INT64_LIMIT
        or max(values) >= _INT64_LIMIT
    ):
        raise InvalidSetting("A number to be stored must be an integer of at most 64 bits.")


def check_bytes(value: bytes) -> bytes:
    """Return a value of exactly the type ``bytes``."""
    if type(value) is not bytes:
        raise InvalidSetting(f"A value to be stored must be bytes, not {type(value).__name__}.")
    return value


_Kind = TypeVar("_Kind", int, str, bytes)


class TableView:
    """The database in a transaction that belongs to no book, for the tables of other packages."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.reads_ahead = connection.reads_ahead
        """Whether ``ReadView.read_ahead`` saves messages to a server."""

    def invalidate(self) -> None:
        """End the view, so that no statement runs outside its transaction."""
        self._connection = _ENDED

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement of another package on its own tables, and return the rows."""
        return self._connection.query(statement, values)

    def query_prefetched(
        self, statement: str, values: tuple[Any, ...] = ()
    ) -> list[tuple[Any, ...]]:
        """As ``query``, for rows that this transaction has not changed; see ``Prefetch``."""
        return self._connection.query_prefetched(statement, values)

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement that changes rows, and return how many."""
        return self._connection.execute(statement, values)

    def execute_all(self, statements: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        """Run statements that change rows, each with its values, before the next one reads."""
        for statement, values in statements:
            self._connection.defer(statement, values)

    def now(self) -> int | None:
        """Return the database server's time; None if the database has no clock of its own."""
        return self._connection.now()


class ReadView(TableView):
    """A consistent view of a book, in a read transaction."""

    def __init__(
        self,
        connection: Connection,
        book: int,
        known_state: ChainState | None = None,
    ) -> None:
        super().__init__(connection)
        self.book_id = book
        """The book's number in the database, for references from other tables."""
        self._first = book * _MAX_ENTRIES
        self._chain_state = known_state
        self._server_time: int | None = None

    def invalidate(self) -> None:
        """End the view, so that no statement runs outside its transaction."""
        super().invalidate()
        self._chain_state = None

    @property
    def known_state(self) -> ChainState | None:
        """The state of the chain, if it was read or changed in this transaction."""
        return self._chain_state

    def _read_blob(self, statement: str, *values: Any) -> bytes | None:
        rows = self.query(statement, values)
        return _checked_type(rows[0][0], bytes) if rows else None

    def read_ahead(self, statements: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        """Run statements for ``query_prefetched``, and read the state, all in one message."""
        self._connection.read_ahead((state_statement(self.book_id), *statements))
        self.chain_state()

    def query_with_state(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Run a statement that also reads the state of the chain and the server's time.

        Its last columns are ``STATE_COLUMNS``. They are not returned but remembered, so that
        ``chain_state`` and ``now`` need no statement of their own.
        """
        rows = self.query(statement, values)
        if rows:
            *state, self._server_time = rows[0][_STATE_START:]
            empty = state[0] is None
            self._chain_state = EMPTY_CHAIN if empty else self._chain_state_from_row(tuple(state))
        return [row[:_STATE_START] for row in rows]

    def now(self) -> int | None:
        """Return the database server's time; None if the database has no clock of its own."""
        return self._connection.now() if self._server_time is None else self._server_time

    def chain_state(self) -> ChainState:
        """Return the state of the chain, which is stored with its last entry."""
        if self._chain_state is None:
            rows = self.query_prefetched(*state_statement(self.book_id))
            if rows:
                self._chain_state = self._chain_state_from_row(rows[0][:-1])
                self._server_time = rows[0][-1]
            else:
                self._chain_state = EMPTY_CHAIN
        return self._chain_state

    def chain_state_at(self, entries: int) -> ChainState:
        """Return the state of the chain when it had so many entries."""
        rows = self.query(
            _SELECT_STATE, (self._first, self._first + min(max(entries, 0), _MAX_ENTRIES))
        )
        return self._chain_state_from_row(rows[0][:-1]) if rows else EMPTY_CHAIN

    def chain_states_at(self, entries: Sequence[int]) -> list[ChainState]:
        """Return the states of the chain at several lengths, in order, with one statement."""
        places = [self._first + entry - 1 for entry in entries if 0 < entry <= _MAX_ENTRIES]
        if not places:
            return []
        rows = self.query(_SELECT_STATES.format(", ".join("?" * len(places))), tuple(places))
        return [self._chain_state_from_row(row) for row in rows]

    def _chain_state_from_row(self, row: tuple[Any, ...]) -> ChainState:
        if tuple(map(type, row)) != _STATE_TYPES:
            raise InvalidState(_DAMAGED)
        place, head, time, asked, changes, ladders, lost, charged, closed = row
        entries = place - self._first + 1
        return ChainState(entries, head, time, asked, changes, ladders, lost, charged, closed != 0)

    def entries(self, first: int = 0, last: int | None = None) -> Iterator[bytes]:
        """Return the bytes of entries, a page at a time."""
        place = self._first + max(first, 0)
        end = self._first + (_MAX_ENTRIES if last is None else min(last, _MAX_ENTRIES))
        while place < end:
            rows = self.query(_SELECT_ENTRIES, (place, end, _PAGE))
            for _, encoded in rows:
                yield _checked_type(encoded, bytes)
            if len(rows) < _PAGE:
                return
            place = rows[-1][0] + 1

    def last_changes(self, first: int, last: int) -> list[bytes]:
        """Return the last change of every ladder that changed in a range of entries.

        The range begins with ``first`` and ends before ``last``.
        """
        start = self._first + max(first, 0)
        end = self._first + min(max(last, 0), _MAX_ENTRIES)
        rows = self.query(_SELECT_LAST_CHANGES, (start, end, start - 1, end))
        return [_checked_type(row[0], bytes) for row in rows]

    def secret_side(self, number: int) -> bytes | None:
        """Return the secret side of an entry; larger numbers belong to other books."""
        if not 0 <= number < _MAX_ENTRIES:
            return None
        return self._read_blob(_SELECT_SECRETS, self._first + number)

    def ladder_names(self) -> list[str]:
        """Return the names of all ladders, in the order of their numbers."""
        return [
            _checked_type(row[0], str) for row in self.query(_SELECT_LADDER_NAMES, (self.book_id,))
        ]

    def ladder_number(self, name: str) -> int | None:
        """Return the number of a ladder."""
        rows = self.query(_SELECT_LADDER_NUMBER, (self.book_id, check_text(name)))
        return _checked_type(rows[0][0], int) if rows else None

    def ladder_state(self, ladder: int) -> bytes | None:
        """Return a ladder's state."""
        return self._read_blob(_SELECT_LADDER_STATE, self.book_id, check_int(ladder))

    def ladder_changes(self, ladder: int) -> int:
        """Return how often a ladder has changed."""
        rows = self.query(_SELECT_LADDER_CHANGES, (self.book_id, check_int(ladder)))
        if not rows:
            raise InvalidState(f"There is no ladder {ladder}.")
        return _checked_type(rows[0][0], int)

    def largest_ladder_changes(self, count: int) -> tuple[int, int]:
        """Return the sum and the smallest of the ``count`` largest numbers of changes."""
        ((total, smallest),) = self.query(
            _SELECT_LARGEST_CHANGES, (self.book_id, min(check_int(count), _MAX_ENTRIES))
        )
        # PostgreSQL sums whole numbers in a type without limits.
        return (0, 0) if total is None else (int(total), _checked_type(smallest, int))

    def find_by_dedupe_key(self, key: bytes) -> int | None:
        """Return the number of the entry with this key; None if there is none."""
        values = (self.book_id, check_bytes(key))
        if self._chain_state is None:  # mostly needed next: one statement reads both
            place = (self._first, self._first + _MAX_ENTRIES)
            rows = self.query_with_state(_SELECT_STATE_BY_DEDUPE_KEY, (*values, *place))
            number = rows[0][0] if rows else None
            return None if number is None else _checked_type(number, int)
        rows = self.query_prefetched(_SELECT_BY_DEDUPE_KEY, values)
        return _checked_type(rows[0][0], int) if rows else None

    def get_value(self, name: str) -> bytes | None:
        """Return a stored value; None if there is none."""
        return self._read_blob(_SELECT_VALUE, self.book_id, check_text(name))


def state_statement(book: int) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that reads the state of a book's chain, to be prefetched."""
    return _SELECT_STATE, (book * _MAX_ENTRIES, (book + 1) * _MAX_ENTRIES)


def question_statements(
    book: int, keys: Iterable[bytes], ladder: int | None
) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the statements that recording a question needs, to be prefetched."""
    statements: list[tuple[str, tuple[Any, ...]]] = [
        (_SELECT_BY_DEDUPE_KEY, (book, key)) for key in keys
    ]
    if ladder is not None:
        statements.append((_SELECT_LADDER_STATE, (book, ladder)))
    return statements


class WriteView(ReadView):
    """A view of a book, in a write transaction."""

    def __init__(
        self, connection: Connection, book: int, known_state: ChainState | None = None
    ) -> None:
        super().__init__(connection, book, known_state)
        # What this transaction has written; all else is as it was prefetched.
        self._added_keys: dict[bytes, int] = {}
        self._ladder_states: dict[int, bytes] = {}

    def drop_prefetched(self) -> None:
        """Forget what was prefetched, because any row may have changed."""
        self._connection.drop_prefetched()

    def find_by_dedupe_key(self, key: bytes) -> int | None:
        """Return the number of the entry with this key; None if there is none."""
        if key in self._added_keys:
            return self._added_keys[key]
        rows = self.query_prefetched(_SELECT_BY_DEDUPE_KEY, (self.book_id, check_bytes(key)))
        return _checked_type(rows[0][0], int) if rows else None

    @property
    def added_keys(self) -> Collection[bytes]:
        """The keys that this transaction has recorded."""
        return self._added_keys.keys()

    def has_added(self, key: bytes) -> bool:
        """Return whether this transaction has recorded a key."""
        return key in self._added_keys

    def ladder_state(self, ladder: int) -> bytes | None:
        """Return a ladder's state."""
        if ladder in self._ladder_states:
            return self._ladder_states[ladder]
        rows = self.query_prefetched(_SELECT_LADDER_STATE, (self.book_id, check_int(ladder)))
        return _checked_type(rows[0][0], bytes) if rows else None

    def append(self, row: EntryRow, chain_state: ChainState, secret: bytes | None = None) -> None:
        """Append an entry; its number is the primary key, so that two can never share one."""
        number, kind, encoded, head, ladder, question, asker = row
        before = self.chain_state()
        if (
            number != before.entries
            or chain_state.entries != number + 1
            or chain_state.head != head
        ):
            raise InvalidState(
                f"Entry {number} cannot be appended after {before.entries} entries, or "
                "its hash is not the head of the new chain state."
            )
        place = self._first + number
        counts = (*chain_state[2:8], int(chain_state.closed))
        check_ints((*counts, *[value for value in (ladder, question) if value is not None]))
        check_text(kind)
        if asker is not None:
            check_text(asker)
        for content in (head, encoded) if secret is None else (head, encoded, secret):
            check_bytes(content)
        values = (place, kind, ladder, question, asker, head, *counts, encoded)
        defer = self._connection.defer
        defer(_INSERT_ENTRY, values)
        if secret is not None:
            defer(_INSERT_SECRETS, (place, secret))
        self._chain_state = chain_state

    def add_dedupe_key(self, key: bytes, number: int, *, defer: bool = False) -> None:
        """Record a key of an entry; ``defer`` may refuse one that is taken as late as the commit.

        Then nothing of the transaction is committed.
        """
        values = (self.book_id, check_bytes(key), check_int(number))
        self._change_one(_INSERT_DEDUPE_KEY, values, _KEY_TAKEN, defer=defer)
        self._added_keys[key] = number

    def _change_one(
        self, statement: str, values: tuple[Any, ...], refusal: str, *, defer: bool
    ) -> None:
        if defer:
            self._connection.defer(statement, values, refusal)
        elif not self.execute(statement, values):
            raise InvalidState(refusal)

    def add_ladder(self, ladder: int, name: str, state: bytes, *, changes: int = 0) -> None:
        """Add a ladder; a number or a name that is taken is refused."""
        values = (self.book_id, check_int(ladder), check_text(name), check_bytes(state))
        if not self.execute(_INSERT_LADDER, (*values, check_int(changes))):
            raise InvalidState(f"There is a ladder {ladder} already, or one of this name.")
        self._ladder_states[ladder] = state

    def set_ladder_state(
        self, ladder: int, state: bytes, *, changed: bool = False, defer: bool = False
    ) -> None:
        """Replace a ladder's state, and count a change; ``defer`` as for ``add_dedupe_key``."""
        values = (check_bytes(state), int(changed), self.book_id, check_int(ladder))
        self._change_one(_UPDATE_LADDER, values, f"There is no ladder {ladder}.", defer=defer)
        self._ladder_states[ladder] = state

    def set_value(self, name: str, value: bytes) -> None:
        """Store a value under a name."""
        self.execute(_UPSERT_VALUE, (self.book_id, check_text(name), check_bytes(value)))

    def clear_copy_flag(self) -> None:
        """Treat a copy as the book itself from now on; see ``Storage.is_copy``."""
        self.set_value(COPY, b"")


class _EndedConnection:
    """Replaces the connection of a view whose block has ended."""

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidState("The block of this view has ended; begin another one.")


_ENDED: Any = _EndedConnection()


def _checked_type(value: Any, kind: type[_Kind]) -> _Kind:
    """Return a value from the database if it has the type that was stored; refuse others."""
    if type(value) is not kind:
        raise InvalidState(_DAMAGED)
    return value


_INSERT_BOOK = "INSERT INTO main.book (name) VALUES (?) ON CONFLICT DO NOTHING"
_SELECT_BOOKS = "SELECT name FROM main.book ORDER BY id"
_NO_BOOK = ""  # what a writer of other packages' tables locks in this process


class _TableTransaction(AbstractContextManager[TableView]):
    """A transaction on the tables of other packages, which belongs to no book.

    A write transaction is committed at the end of the block, and rolled back on an exception.
    """

    def __init__(self, pool: Pool, *, write: bool) -> None:
        self._pool = pool
        self._write = write

    def __enter__(self) -> TableView:
        pool, write = self._pool, self._write
        # The lock of this process, even if the block ends in a forked one.
        self._writer_lock = pool.writer_lock
        if write:
            self._writer_lock.acquire(_NO_BOOK)
        try:
            self._connection = connection = pool.acquire()
        except BaseException:
            if write:
                self._writer_lock.release(_NO_BOOK)
            raise
        try:
            connection.begin(write=write)
            if write:
                connection.check_before_write()
        except BaseException:
            self._release(undo=True)
            raise
        self._view = TableView(connection)
        return self._view

    def __exit__(self, kind: object, *_: object) -> None:
        self._view.invalidate()
        undo = kind is not None or not self._write
        try:
            if not undo:
                self._connection.commit()
        except BaseException:
            self._release(undo=True)
            raise
        self._release(undo=undo)

    def _release(self, *, undo: bool) -> None:
        if undo:
            self._connection.rollback()
        self._pool.release(self._connection)
        if self._write:
            self._writer_lock.release(_NO_BOOK)


class _ReadTransaction(AbstractContextManager[ReadView]):
    """A read transaction; a class, because a generator would cost more than a statement."""

    def __init__(self, pool: Pool, book: str) -> None:
        self._pool = pool
        self._book = check_text(book)

    def __enter__(self) -> ReadView:
        self._connection = connection = self._pool.acquire()
        try:
            connection.begin(write=False)
            self._view = view = ReadView(
                connection, _find_book(connection, self._book, write=False)
            )
            view.chain_state()  # the view is of this moment, not of its first use
        except BaseException:
            connection.rollback()
            self._pool.release(connection)
            raise
        return view

    def __exit__(self, *_: object) -> None:
        self._view.invalidate()
        self._connection.rollback()
        self._pool.release(self._connection)


class _LatestRead(AbstractContextManager[ReadView]):
    """Reading without a transaction, which saves two statements; each sees the latest commit."""

    def __init__(self, pool: Pool, book: str) -> None:
        self._pool = pool
        self._book = check_text(book)

    def __enter__(self) -> ReadView:
        self._connection = connection = self._pool.acquire_alone()
        try:
            number = _find_book(connection, self._book, write=False)
            self._view = view = ReadView(connection, number)
        except BaseException:
            self._pool.release(connection)
            raise
        return view

    def __exit__(self, *_: object) -> None:
        self._view.invalidate()
        self._pool.release(self._connection)


class _WriteTransaction(AbstractContextManager[WriteView]):
    """A write transaction: committed at the end of the block, rolled back on an exception."""

    def __init__(
        self, pool: Pool, book: str, *, add: bool = False, prefetch: Prefetch | None = None
    ) -> None:
        self._pool = pool
        self._book = check_text(book)
        self._add = add
        self._prefetch = prefetch

    def __enter__(self) -> WriteView:
        pool, book = self._pool, self._book
        # The lock of this process, even if the block ends in a forked one.
        self._writer_lock = pool.writer_lock
        self._writer_lock.acquire(book)
        try:
            self._connection = connection = pool.acquire()
        except BaseException:
            self._writer_lock.release(book)
            raise
        try:
            connection.begin(write=True)
            if self._add and not connection.execute(_INSERT_BOOK, (book,)):
                raise InvalidState(f"There is a book {book!r:.80} already.")
            if not self._add:
                connection.prefetch(book, self._reads)
            number = _find_book(connection, book, write=True, fresh=self._add)
        except BaseException:
            self._release(undo=True)
            raise
        self._view = WriteView(connection, number, connection.known_states.get(number))
        return self._view

    def _reads(self, book: int) -> list[tuple[str, tuple[Any, ...]]]:
        further = () if self._prefetch is None else self._prefetch(book)
        return [state_statement(book), *further]

    def __exit__(self, kind: object, *_: object) -> None:
        view, connection = self._view, self._connection
        state = view.known_state
        view.invalidate()
        try:
            if kind is None:
                connection.commit()
                if state is not None:
                    connection.remember_state(view.book_id, state)
        except BaseException:
            self._release(undo=True)
            raise
        self._release(undo=kind is not None)

    def _release(self, *, undo: bool) -> None:
        if undo:
            self._connection.rollback()
        self._pool.release(self._connection)
        self._writer_lock.release(self._book)


def _find_book(connection: Connection, book: str, *, write: bool, fresh: bool = False) -> int:
    number = connection.find_book(book, write=write, fresh=fresh)
    if number is None:
        raise InvalidState(f"There is no book {book!r:.80} here.")
    return number


class Storage:
    """A database that stores books, and tables of other packages beside them.

    There is one write transaction at a time per book. What it did is durable when the ``with``
    block ends, and is rolled back if the block raises. A failure of the database raises
    ``StorageFailed``. Its ``uncertain`` is True if a commit was sent but not confirmed: it may have
    happened or not, and the caller must look.
    """

    reads_ahead: ClassVar[bool] = False
    """Whether ``read_ahead`` saves messages to a server."""
    _pool: Pool
    _type_names: Mapping[str, str]

    def _tables(self, connection: Connection) -> set[str]:
        """Return the names of all tables."""
        raise NotImplementedError

    def _begin_exclusive(self, connection: Connection) -> None:
        """Begin a transaction during which no other process can create tables."""
        connection.begin(write=True)

    def limit_read_wait(self, seconds: float) -> None:
        """Limit how long a read waits for a database that does not respond.

        For servers, whose clients can ask again. It has no effect on a database in a file.
        """

    def erase_deleted(self, *, at_most: int | None = None) -> bool:
        """Remove what was deleted from the files of the database; return whether it is gone.

        A database on a server does that by itself, in its own time. ``at_most`` is the size in
        bytes of a file from which on this takes too long.
        """
        return False

    def ensure_schema(self, module: SchemaModule) -> None:
        """Create another package's tables, or migrate them to their latest format."""
        connection = self._pool.acquire()
        try:
            if self._module_format(connection, module) == len(module.migrations):
                return
            self._begin_exclusive(connection)
            version = self._module_format(
                connection, module
            )  # another process may have migrated them
            if 0 < version < len(module.migrations):
                self._copy_before_migration(connection, version, module.name)
            migrate_module(connection, module, version, self._type_names)
            connection.commit()
        finally:
            connection.rollback()
            self._pool.release(connection)

    def _module_format(self, connection: Connection, module: SchemaModule) -> int:
        return module_format(
            connection,
            module,
            self._tables(connection),
            lambda name: self._copies(connection, name),
        )

    def _copy_before_migration(
        self, connection: Connection, version: int, module_name: str = ""
    ) -> None:
        """Copy everything before a migration, in a transaction during which no other one writes."""
        raise NotImplementedError

    def _copies(self, connection: Connection, module_name: str = "") -> Iterable[str]:
        """Return the names of the copies that were made before migrations."""
        raise NotImplementedError

    def books(self) -> list[str]:
        """Return the ids of all books."""
        connection = self._pool.acquire()
        try:
            connection.begin(write=False)
            return [row[0] for row in connection.query(_SELECT_BOOKS)]
        finally:
            connection.rollback()
            self._pool.release(connection)

    def add_book(self, book: str) -> AbstractContextManager[WriteView]:
        """Add an empty book; it exists once the block has ended."""
        return _WriteTransaction(self._pool, book, add=True)

    def read_transaction(self, book: str) -> AbstractContextManager[ReadView]:
        """Begin to read a book, as it is now."""
        return _ReadTransaction(self._pool, book)

    def read_latest(self, book: str) -> AbstractContextManager[ReadView]:
        """Begin to read a book without a transaction: each statement sees the latest commit."""
        return _LatestRead(self._pool, book)

    def write_transaction(
        self, book: str, prefetch: Prefetch | None = None
    ) -> AbstractContextManager[WriteView]:
        """Begin to change a book; other writers of it wait.

        ``prefetch`` gets the book's number and returns statements that the block will need. A
        database on a server runs them with the lock, for ``TableView.query_prefetched``.
        """
        return _WriteTransaction(self._pool, book, prefetch=prefetch)

    def read_tables(self) -> AbstractContextManager[TableView]:
        """Begin to read tables of other packages, as they are now."""
        return _TableTransaction(self._pool, write=False)

    def read_ahead(
        self, statements: Iterable[tuple[str, tuple[Any, ...]]]
    ) -> AbstractContextManager[None]:
        """Run statements in one message to a server.

        In the block, ``query_tables`` and ``read_latest`` of this thread use their rows.
        """
        del statements
        return nullcontext()

    def query_tables(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement that reads tables of other packages, and return the rows."""
        connection = self._pool.acquire_alone()
        try:
            return connection.query_prefetched(statement, values)
        finally:
            self._pool.release(connection)

    def write_tables(self) -> AbstractContextManager[TableView]:
        """Begin to change rows of other packages that belong to no book."""
        return _TableTransaction(self._pool, write=True)

    def is_copy(self, book: str) -> bool:
        """Return whether the book came out of a backup and was not adopted since.

        Questions that were answered after the backup are missing from the copy.
        """
        with self.read_transaction(book) as view:
            return bool(view.get_value(COPY))

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
