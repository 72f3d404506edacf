"""Connections to a database, the locks of writers, and the pool of an SQLite file."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol

from ladderboard.errors import InvalidState, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Statement = tuple[str, tuple[Any, ...]]
    Prefetch = Callable[[int], Iterable[Statement]]
    """Returns the statements to read with a book's lock, each with its values, by its number."""

WRITER_TIMEOUT = 60.0  # seconds to wait for other writers
_NESTED_WRITE = "This thread is changing the book already; end that transaction first."
_MAX_KNOWN_STATES = 1_000  # books whose last state a connection remembers
_FORK_TIMEOUT = 5.0  # seconds that a fork waits for other threads' transactions to end


class WriterLock(ABC):
    """The lock of the writers in one process; it refuses a thread that holds it already."""

    @abstractmethod
    def acquire(self, book: str) -> None:
        """Wait until this thread may change a book."""

    @abstractmethod
    def release(self, book: str) -> None:
        """Let the next thread write; do nothing if another process acquired the lock."""


class GlobalWriterLock(WriterLock):
    """One writer at a time for all books, for SQLite, whose own lock makes threads poll."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    def acquire(self, book: str) -> None:
        """Wait until this thread may write."""
        me = threading.get_ident()
        if self._owner == me:
            raise InvalidState(_NESTED_WRITE)
        if not self._lock.acquire(False) and not self._lock.acquire(timeout=WRITER_TIMEOUT):
            raise StorageFailed(
                f"Timed out after {WRITER_TIMEOUT:.0f} seconds waiting for the write lock."
            )
        self._owner = me

    def release(self, book: str) -> None:
        """Let the next thread write."""
        if self._owner == threading.get_ident():
            self._owner = 0
            self._lock.release()


class PerBookLock(WriterLock):
    """For PostgreSQL, which queues the writers of a book; refuses only nested transactions."""

    def __init__(self) -> None:
        self._writers: set[tuple[int, str]] = set()

    def acquire(self, book: str) -> None:
        """Refuse a second transaction of this thread on the same book."""
        writer = (threading.get_ident(), book)
        if writer in self._writers:
            raise InvalidState(_NESTED_WRITE)
        self._writers.add(writer)

    def release(self, book: str) -> None:
        """Forget the transaction."""
        self._writers.discard((threading.get_ident(), book))


class Deferred(NamedTuple):
    """A statement that changes ``rows`` rows, and what to say if one of them did not change."""

    statement: str
    values: tuple[Any, ...]
    none_changed: str | None
    rows: int = 1


_MAX_DEFERRED = 4096  # statements that wait in memory; a batch of submissions has fewer
_MAX_ROWS = 8  # of one statement: a server prepares it for each number of rows
_INSERT = re.compile(r"(INSERT INTO .* VALUES )(\([?, ]+\))( ON CONFLICT DO NOTHING)?")
_UPDATE = re.compile(r"UPDATE \S+ SET (\w+ = \?(?:, \w+ = \?)*) WHERE [^?]*\?.*")


@lru_cache(maxsize=1024)
def _insert_rows(statement: str, rows: int) -> str:
    """Return a statement that inserts one row, for several."""
    head, row, tail = _INSERT.fullmatch(statement).groups("")  # type: ignore[union-attr]
    return f"{head}{', '.join([row] * rows)}{tail}"


@lru_cache(maxsize=1024)
def _key_start(statement: str) -> int | None:
    """Return where the key begins in the values of an update that only sets columns.

    0 for a statement that inserts a row; None for any other.
    """
    update = _UPDATE.fullmatch(statement)
    if update is not None:
        return update[1].count("?")
    return None if _INSERT.fullmatch(statement) is None else 0


def combine_deferred(deferred: list[Deferred]) -> list[Deferred]:
    """Return fewer statements that do the same, each with its number of rows.

    Rows of one table are inserted together, before the other statements, and only the last update
    of several that set the same columns of one row is kept.

    >>> insert, update = "INSERT INTO a VALUES (?, ?)", "UPDATE b SET c = ? WHERE d = ?"
    >>> rows = [Deferred(insert, (1, 2), None), Deferred(update, (3, 9), None)]
    >>> rows += [Deferred(insert, (4, 5), None), Deferred(update, (6, 9), None)]
    >>> for combined in combine_deferred(rows):
    ...     print(*combined[:2])
    INSERT INTO a VALUES (?, ?), (?, ?) (1, 2, 4, 5)
    UPDATE b SET c = ? WHERE d = ? (6, 9)
    """
    if len({item.statement for item in deferred}) == len(deferred):
        return deferred
    inserts: dict[str, list[Deferred]] = {}
    others: dict[Any, Deferred] = {}
    for item in deferred:
        start = _key_start(item.statement)
        if start == 0:
            inserts.setdefault(item.statement, []).append(item)
        elif start is None:
            others[len(others), None] = item
        else:
            key = item.statement, item.values[start:]
            others.pop(key, None)
            others[key] = item
    combined: list[Deferred] = []
    for statement, items in inserts.items():
        for first in range(0, len(items), _MAX_ROWS):
            rows = items[first : first + _MAX_ROWS]
            if len(rows) > 1:
                values = tuple(chain.from_iterable(row.values for row in rows))
                row_statement = _insert_rows(statement, len(rows))
                rows = [Deferred(row_statement, values, rows[0].none_changed, len(rows))]
            combined += rows
    return [*combined, *others.values()]


class Connection(ABC):
    """One connection, and the one transaction that may be open on it.

    Any error of the driver ends the connection: the transaction is rolled back, ``broken`` is True,
    and every further statement fails instead of running outside its transaction.
    """

    reads_ahead: ClassVar[bool] = False
    """Whether statements that are sent together save messages to a server."""
    detects_commits: ClassVar[bool] = False
    """Whether ``begin`` clears ``known_states`` if another connection has committed since."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.broken = False
        self.known_states: dict[int, Any] = {}
        """Chain states that need no reading in the current write transaction, by book."""
        self.prefetched: dict[tuple[str, tuple[Any, ...]], list[tuple[Any, ...]]] = {}
        self._deferred: list[Deferred] = []

    @abstractmethod
    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    @abstractmethod
    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""

    def defer(
        self, statement: str, values: tuple[Any, ...], none_changed: str | None = None
    ) -> None:
        """Run a statement before the next one that is not deferred, or at the commit.

        Rows to insert come first, so they must not be of a table that is also updated here.
        ``none_changed`` is what to say if it changes no row; None if that is no error.
        """
        if self.broken:
            self.execute(statement, values)  # refuses
        self._deferred.append(Deferred(statement, values, none_changed))
        if len(self._deferred) >= _MAX_DEFERRED:
            self._run_deferred()

    @abstractmethod
    def _run_deferred(self) -> None:
        """Run the deferred statements, if there are any."""

    @abstractmethod
    def begin(self, *, write: bool) -> None:
        """Begin a transaction."""

    @abstractmethod
    def begin_alone(self) -> None:
        """Prepare to read without a transaction: each statement sees the latest commit."""

    @abstractmethod
    def find_book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
        """Return a book's number; with ``write``, lock the book against other writers.

        A ``fresh`` book was added in this transaction, which may still be rolled back.
        """

    def prefetch(self, book: str, reads: Prefetch) -> None:
        """Run statements as soon as the book is locked, if this saves messages to a server."""
        del book, reads

    def read_ahead(self, statements: Iterable[Statement]) -> None:
        """Run statements in one message to a server, for ``query_prefetched``."""
        del statements

    def query_prefetched(
        self, statement: str, values: tuple[Any, ...] = ()
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, as it was prefetched if it was.

        The caller makes sure that this transaction has not changed these rows since.
        """
        rows = self.prefetched.get((statement, values)) if self.prefetched else None
        return self.query(statement, values) if rows is None else rows

    def drop_prefetched(self) -> None:
        """Forget what was prefetched, because any row may have changed."""
        self.prefetched = {}

    @abstractmethod
    def check_before_write(self) -> None:
        """Refuse a database that was migrated since, or that may lose commits now."""

    def remember_state(self, book: int, chain_state: Any) -> None:
        """Remember the chain state that was just committed, if others' commits are detected."""
        if self.detects_commits:
            if len(self.known_states) >= _MAX_KNOWN_STATES:
                self.known_states.clear()
            self.known_states[book] = chain_state

    def now(self) -> int | None:
        """Return the database server's time in whole seconds; None for a database in a file."""
        return None

    def rewrite(self) -> bool:
        """Write the file anew without deleted content; return whether there is one to write."""
        return False

    @abstractmethod
    def commit(self) -> None:
        """Commit, or raise ``StorageFailed``, which says whether the outcome is uncertain."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll back the transaction; never raises."""

    def close(self) -> None:
        """Close the connection; never raises."""
        with suppress(Exception):
            self.connection.close()

    def abandon(self) -> None:
        """Leave the connection to the process that this one was forked from.

        Using it would mix the statements of two processes, and closing it would release the
        parent's locks or end its session.
        """
        leak_reference(self.connection)
        self.poison()

    def poison(self) -> None:
        """Make every further statement fail; the driver's connection is no longer reachable."""
        self.broken = True
        self.connection = _PoisonedConnection()


def leak_reference(target: object) -> None:
    """Add a reference, so that an object is never finalised, not even at interpreter exit."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(target))


class _PoisonedConnection:
    """Replaces a broken connection, which is cheaper than a check before every statement."""

    in_transaction = False

    def execute(self, *_: object) -> NoReturn:
        """Refuse."""
        raise StorageFailed(
            "This transaction cannot go on after an error or a fork; it was rolled back."
        )

    def run(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        self.execute()

    def cursor(self) -> _PoisonedConnection:
        """Return this object as the cursor."""
        return self

    def close(self) -> None:
        """Do nothing: the driver's connection was given up."""


class Pool(Protocol):
    """The connections of one storage in one process: one for each transaction at a time.

    Threads never share a connection, and a transaction inside another one's loop on the same thread
    has its own view. A forked process opens new connections and never uses its parent's.
    """

    writer_lock: WriterLock

    def acquire(self) -> Connection:
        """Return an idle or new connection."""

    def release(self, connection: Connection) -> None:
        """Take a connection back."""

    def acquire_alone(self) -> Connection:
        """Return a connection to read without a transaction."""
        connection = self.acquire()
        try:
            connection.begin_alone()
        except BaseException:
            self.release(connection)
            raise
        return connection

    def close(self) -> None:
        """Close all idle connections now, and the others when their transactions end."""


class SqlitePool(Pool):
    """The connections to one file.

    SQLite keeps a table of file locks per process. A forked child inherits the table, but not the
    locks, so it must not open a file that was open at the fork. A fork therefore waits for the
    transactions of other threads and closes all idle connections. If a transaction is open all the
    same, ``mark_unusable`` refuses the file in the child.
    """

    def __init__(self, make: Callable[[], Connection], mark_unusable: Callable[[], None]) -> None:
        self._make = make
        self.mark_unusable = mark_unusable
        self.reset()
        _FORKS.add_pool(self)

    def reset(self) -> None:
        """Start without connections and locks, as in a forked child."""
        self._free: list[Connection] = []
        self._busy: dict[Connection, _User] = {}
        self._to_close: set[Connection] = set()  # busy ones, to be closed when they are released
        self.writer_lock: WriterLock = GlobalWriterLock()

    def acquire(self) -> Connection:
        """Return an idle or new connection."""
        with _FORKS.lock:
            user = _FORKS.enter(self)
            connection = self._free.pop() if self._free else None
        try:
            connection = connection or self._make()
        except BaseException:
            _FORKS.leave(user)
            raise
        self._busy[connection] = user
        return connection

    def release(self, connection: Connection) -> None:
        """Take a connection back, or close it if it is broken or the pool was closed."""
        if connection not in self._busy:  # of the parent process
            return
        keep = not connection.broken and connection not in self._to_close
        if not keep:
            connection.close()
            self._to_close.discard(connection)
        with _FORKS.lock:
            if keep:
                self._free.append(connection)
            _FORKS.remove(self._busy.pop(connection))

    def close(self) -> None:
        """Close all idle connections now, and the others when their transactions end."""
        with _FORKS.lock:
            user = _FORKS.enter(self)
            self._to_close.update(self._busy)
            idle, self._free = self._free, []
        for connection in idle:
            connection.close()
        _FORKS.leave(user)

    def close_idle(self) -> None:
        """Close all idle connections; the caller holds the lock."""
        while self._free:
            self._free.pop().close()

    def abandon(self) -> None:
        """Leave the open connections to the parent process, in a forked child."""
        for connection in self._busy:
            connection.abandon()
        self.reset()

    def __del__(self) -> None:
        """Close the connections that are still open, before the driver warns of them."""
        with suppress(Exception):
            self.close()


_User = tuple[int, SqlitePool]
"""A thread that opens, uses or closes a file, and the file's pool."""


class _Forks:
    """Keeps forks and open SQLite files apart. One lock protects the lists of all pools."""

    def __init__(self) -> None:
        self._pools: weakref.WeakSet[SqlitePool] = weakref.WeakSet()
        self._reset()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(
                before=self._before, after_in_parent=self._in_parent, after_in_child=self._in_child
            )

    def _reset(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)  # its own methods take longer
        self._users: list[_User] = []
        self._forking: list[int] = []  # threads that are forking, or about to

    def add_pool(self, pool: SqlitePool) -> None:
        """Include a pool in all forks from now on."""
        with self.lock:
            self._pools.add(pool)

    def enter(self, pool: SqlitePool) -> _User:
        """Register this thread as a user; the caller holds the lock.

        It waits for a pending fork, unless the fork is its own or waits for it.
        """
        me = threading.get_ident()
        if self._forking:
            self.changed.wait_for(
                lambda: (
                    not self._forking
                    or me in self._forking
                    or any(thread == me for thread, _ in self._users)
                )
            )
        user = (me, pool)
        self._users.append(user)
        return user

    def leave(self, user: _User) -> None:
        """Undo ``enter``."""
        with self.lock:
            self.remove(user)

    def remove(self, user: _User) -> None:
        """Undo ``enter``; the caller holds the lock."""
        self._users.remove(user)
        if self._forking:
            self.changed.notify_all()

    def _before(self) -> None:
        """Stop new transactions, wait for those of other threads, and close idle connections."""
        me = threading.get_ident()
        self.changed.acquire()  # until after the fork
        self._forking.append(me)
        self.changed.wait_for(lambda: all(thread == me for thread, _ in self._users), _FORK_TIMEOUT)
        for pool in self._pools:
            pool.close_idle()

    def _in_parent(self) -> None:
        self._forking.remove(threading.get_ident())
        self.changed.notify_all()
        self.changed.release()

    def _in_child(self) -> None:
        for _, pool in self._users:
            pool.mark_unusable()
        for pool in self._pools:
            pool.abandon()
        self._reset()


_FORKS = _Forks()
