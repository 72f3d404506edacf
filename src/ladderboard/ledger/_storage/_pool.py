"""Connections to a database, the pool that holds them, and the locks of writers."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

from ladderboard.errors import InvalidState, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable

WRITER_TIMEOUT = 60.0  # seconds to wait for other writers
_NESTED_WRITE = "This thread is changing the book already; end that transaction first."
_FORK_TIMEOUT = 5.0  # seconds that a fork waits for other threads' transactions to end
_ACQUIRE_TIMEOUT = 30.0  # seconds to wait for another thread's connection
_POOL_NUMBERS = count()


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


class PoolExhausted(StorageFailed):
    """No connection can be opened now; the database may have reached its maximum."""


class Connection(ABC):
    """One connection, and the one transaction that may be open on it.

    Any error of the driver ends the connection: the transaction is rolled back, ``broken`` is True,
    and every further statement fails instead of running outside its transaction.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.broken = False
        self.owner = 0  # the thread that uses, opens or closes it; 0 if idle
        self.closing = False  # to be closed when its transaction ends

    @abstractmethod
    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    @abstractmethod
    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""

    @abstractmethod
    def begin(self, *, write: bool) -> None:
        """Begin a transaction."""

    @abstractmethod
    def find_book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
        """Return a book's number; with ``write``, lock the book against other writers.

        A ``fresh`` book was added in this transaction, which may still be rolled back.
        """

    @abstractmethod
    def check_before_write(self) -> None:
        """Refuse a database that was migrated since, or that may lose commits now."""

    def now(self) -> int | None:
        """Return the database server's time in whole seconds; None for a database in a file."""
        return None

    @abstractmethod
    def commit(self) -> None:
        """Commit, or raise ``StorageFailed``, which says whether the outcome is uncertain."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll back the transaction; never raises."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; never raises."""

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

    def cursor(self) -> _PoisonedConnection:
        """Return this object as the cursor."""
        return self

    def close(self) -> None:
        """Do nothing: the driver's connection was given up."""


class Pool:
    """The connections of one storage in one process: one for each transaction at a time.

    Each transaction has its own connection, so threads never share one, and a transaction inside
    another one's loop on the same thread has its own view. ``writer_lock`` is the lock of the
    process's writers.

    Fork safety: a child process must neither use nor close its parent's connections. SQLite also
    keeps a table of file locks per process, and a child would inherit entries for locks that it
    does not hold. For such a database, a fork waits for the transactions of other threads and
    closes all connections; ``mark_unusable`` refuses the file in a child that inherits one. So a
    connection counts as open from before it is opened until after it is closed.

    One lock protects the pool's lists. A fork holds it, so the child gets a consistent copy. It is
    never held while a connection is opened or closed, except by a fork.
    """

    def __init__(
        self,
        make: Callable[[], Connection],
        writer_lock: Callable[[], WriterLock],
        *,
        mark_unusable: Callable[[], None] | None = None,
    ) -> None:
        self._make = make
        self._make_writer_lock = writer_lock
        self._mark_unusable = mark_unusable
        self._reset()
        number = next(_POOL_NUMBERS)
        _POOLS[number] = weakref.ref(self, lambda _: _POOLS.pop(number, None))

    def _reset(self) -> None:
        self._connections: set[Connection] = set()
        self._free: list[Connection] = []
        self._opening: list[int] = []  # threads that are opening a connection
        self._forking: list[int] = []  # threads that are forking, or about to
        self._waiting = 0  # threads that wait for another thread's connection
        self._lock = threading.RLock()  # a signal handler may re-enter
        self._changed = threading.Condition(self._lock)  # notified only while a thread waits
        self.writer_lock = self._make_writer_lock()

    def acquire(self) -> Connection:
        """Return an idle or new connection; if the database allows no more, wait for one."""
        deadline = time.monotonic() + _ACQUIRE_TIMEOUT
        while True:
            try:
                return self._open_or_reuse()
            except PoolExhausted:
                if not self._wait(deadline):
                    raise

    def _open_or_reuse(self) -> Connection:
        me = threading.get_ident()
        with self._lock:
            if self._forking:
                self._changed.wait_for(lambda: self._may_begin(me))
            if self._free:
                connection = self._free.pop()
                connection.owner = me
                return connection
            opening = self._opening
            opening.append(me)
        try:
            connection = self._make()
            connection.owner = me
            with self._lock:
                _OPEN_CONNECTIONS.add(connection)
                self._connections.add(connection)
        finally:
            with self._lock:
                opening.remove(me)
                self._notify()
        return connection

    def _wait(self, deadline: float) -> bool:
        """Wait for another thread to finish; return whether a connection may be free now."""
        me = threading.get_ident()
        with self._lock:
            busy = {
                connection for connection in self._connections if connection.owner not in {0, me}
            }
            if not busy:
                return bool(self._free)
            self._waiting += 1
            try:
                return self._changed.wait_for(
                    lambda: bool(self._free) or not busy <= self._connections,
                    max(deadline - time.monotonic(), 0),
                )
            finally:
                self._waiting -= 1

    def _may_begin(self, me: int) -> bool:
        """Return whether this thread may begin a transaction.

        It may if no fork is pending, or if the fork is its own or waits for it.
        """
        return (
            not self._forking
            or me in self._forking
            or any(connection.owner == me for connection in self._connections)
        )

    def release(self, connection: Connection) -> None:
        """Take a connection back, or close it if it is broken or to be closed."""
        with self._lock:
            if connection in self._connections and not connection.broken and not connection.closing:
                connection.owner = 0
                self._free.append(connection)
                self._notify()
                return
        self._close_connection(
            connection
        )  # also a connection of the parent process, which is given up

    def close(self) -> None:
        """Close all idle connections now, and the others when their transactions end."""
        with self._lock:
            for connection in self._connections:
                connection.closing = True
        while (idle := self._take_idle_to_close()) is not None:
            self._close_connection(idle)

    def _take_idle_to_close(self) -> Connection | None:
        with self._lock:
            for index, connection in enumerate(self._free):
                if connection.closing:
                    connection.owner = threading.get_ident()
                    return self._free.pop(index)
        return None

    def _close_connection(self, connection: Connection) -> None:
        """Close a connection, then forget it, in this order: a fork in between must know it."""
        connection.close()
        with self._lock:
            self._connections.discard(connection)
            _OPEN_CONNECTIONS.discard(connection)
            self._notify()

    def _notify(self) -> None:
        if self._forking or self._waiting:
            self._changed.notify_all()

    def __del__(self) -> None:
        """Close the connections that are still open, before the driver warns of them."""
        with suppress(Exception):
            self.close()

    def before_fork(self, deadline: float) -> None:
        """Stop new transactions, wait for those of other threads, and close idle connections."""
        if self._mark_unusable is None:
            return
        me = threading.get_ident()
        self._lock.acquire()  # until after the fork
        self._forking.append(me)
        self._changed.wait_for(lambda: self._is_idle(me), max(deadline - time.monotonic(), 0))
        while self._free:
            connection = self._free.pop()
            connection.owner = me
            self._close_connection(connection)

    def _is_idle(self, me: int) -> bool:
        """Return whether no other thread uses, opens or closes a connection."""
        return all(connection.owner in {0, me} for connection in self._connections) and all(
            thread == me for thread in self._opening
        )

    def after_fork(self) -> None:
        """Allow transactions again, in the parent."""
        me = threading.get_ident()
        if me in self._forking:
            self._forking.remove(me)
            self._changed.notify_all()
            self._lock.release()

    def in_child(self) -> None:
        """Start with an empty pool, in the child."""
        if self._opening and self._mark_unusable is not None:
            self._mark_unusable()
        self._reset()


class _Forks(threading.local):
    """The fork calls in progress on a thread, with the pools kept alive meanwhile."""

    def __init__(self) -> None:
        self.pools: list[list[Pool]] = []


_POOLS: dict[int, weakref.ref[Pool]] = {}  # oldest first: forks lock in the same order
_OPEN_CONNECTIONS: set[Connection] = set()  # including those of pools that were garbage-collected
_FORKS = _Forks()


def _live_pools() -> list[Pool]:
    pools = [ref() for ref in list(_POOLS.values())]  # a copy: other threads may add pools
    return [pool for pool in pools if pool is not None]


def _before_fork() -> None:
    deadline = time.monotonic() + _FORK_TIMEOUT
    pools = _live_pools()
    _FORKS.pools.append(pools)
    for pool in pools:
        pool.before_fork(deadline)


def _after_fork_in_parent() -> None:
    if _FORKS.pools:
        for pool in _FORKS.pools.pop():
            pool.after_fork()


def _after_fork_in_child() -> None:
    for connection in _OPEN_CONNECTIONS:
        connection.abandon()
    _OPEN_CONNECTIONS.clear()
    forking_pools = _FORKS.pools.pop() if _FORKS.pools else []
    for pool in {*forking_pools, *_live_pools()}:
        pool.in_child()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
