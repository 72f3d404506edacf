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

WRITER_TIMEOUT = 60.0  # seconds to wait for others who write
_TWICE = "This thread is changing the book already; end that block first."
_CALM = 5.0  # seconds that a fork waits for the blocks of other threads to end
_CROWDED = 30.0  # seconds to wait for a link of another thread's where no more can be opened
_NUMBERS = count()


class WriterLock(ABC):
    """A thread that already writes must not wait for itself."""

    @abstractmethod
    def acquire(self, book: str) -> None:
        """Wait for the turn to change a book."""

    @abstractmethod
    def release(self, book: str) -> None:
        """Let the next one write; nothing if the turn was another process's."""


class GlobalWriterLock(WriterLock):
    """One writer at a time, as in SQLite, which would let threads poll for their turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    def acquire(self, book: str) -> None:
        """Wait for the turn to change anything."""
        me = threading.get_ident()
        if self._owner == me:
            raise InvalidState(_TWICE)
        if not self._lock.acquire(False) and not self._lock.acquire(timeout=WRITER_TIMEOUT):
            raise StorageFailed(
                f"Others have been writing for more than {WRITER_TIMEOUT:.0f} seconds."
            )
        self._owner = me

    def release(self, book: str) -> None:
        """Let the next one write."""
        if self._owner == threading.get_ident():
            self._owner = 0
            self._lock.release()


class PerBookLock(WriterLock):
    """The database queues those who want the same book."""

    def __init__(self) -> None:
        self._writers: set[tuple[int, str]] = set()

    def acquire(self, book: str) -> None:
        """Refuse a second block on the same book and thread."""
        writer = (threading.get_ident(), book)
        if writer in self._writers:
            raise InvalidState(_TWICE)
        self._writers.add(writer)

    def release(self, book: str) -> None:
        """Forget the block."""
        self._writers.discard((threading.get_ident(), book))


class PoolExhausted(StorageFailed):
    """No link can be opened now: there may be as many as the database allows."""


class Connection(ABC):
    """One connection, and the one transaction that may be open on it.

    Whatever a driver raises ends the link: the transaction is undone, ``broken`` is True, and
    every further statement fails, so that none is ever run outside its transaction.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.broken = False
        self.owner = 0  # the thread that uses, opens or closes it
        self.closing = False  # to be closed when its block ends

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
        """Return a book's number, and where it is to be changed, keep all others from that.

        A ``fresh`` one was added in this very transaction, which may yet be undone.
        """

    def now(self) -> int | None:
        """Return the database's time in whole seconds, where machines may share it."""
        return None

    @abstractmethod
    def commit(self) -> None:
        """Commit what was done, or raise ``StorageFailed`` that says whether it may stand."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo what was done since the beginning; never raises."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; never raises."""

    def abandon(self) -> None:
        """Leave the connection to the process that this one was forked from.

        To use it would mix two processes' words, and to close it would take back the other's locks
        or end the other's session.
        """
        leak_reference(self.connection)
        self.poison()

    def poison(self) -> None:
        """Let nothing more run here; the driver's connection is out of reach from now on."""
        self.broken = True
        self.connection = _PoisonedConnection()


def leak_reference(thing: object) -> None:
    """Let a thing never be finalised, not even when the interpreter ends: one reference more."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class _PoisonedConnection:
    """In a connection's place: a check before every statement would cost more."""

    in_transaction = False

    def execute(self, *_: object) -> NoReturn:
        """Refuse."""
        raise StorageFailed(
            "This block cannot go on: an error or a fork came into it. Nothing of it stands."
        )

    def cursor(self) -> _PoisonedConnection:
        """Return the same for a cursor."""
        return self

    def close(self) -> None:
        """Do nothing: there is nothing of ours to close."""


class Pool:
    """The links of one storage in one process: as many as there are blocks at once.

    A block has a link to itself, so threads never share one, and a block inside another's loop on
    the same thread has its own view. ``writer_lock`` is that of the process's writers.

    A child process uses no link of its parent's. It does not close any either, and cannot always
    just leave them alone: SQLite remembers per process who holds which lock on a file, and a child
    would remember locks that it does not have. For such a database ``mark_unusable`` gives it up in
    a child, and a fork waits for the blocks of other threads and closes all links first. So a link
    counts as open from before it is opened until after it is closed.

    One lock is around the books that are kept here, and a fork holds it: what it sees is what the
    child gets. It is never held while a link is opened or closed, except by a fork.
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
        number = next(_NUMBERS)
        _POOLS[number] = weakref.ref(self, lambda _: _POOLS.pop(number, None))

    def _reset(self) -> None:
        self._all: set[Connection] = set()
        self._free: list[Connection] = []
        self._opening: list[int] = []  # threads that open a link
        self._forking: list[int] = []  # threads that fork, or are about to
        self._wanting = 0  # threads that wait for a link of another's
        self._lock = threading.RLock()  # a signal's handler may come back here
        self._changed = threading.Condition(self._lock)  # told only while someone waits
        self.writer_lock = self._make_writer_lock()

    def acquire(self) -> Connection:
        """Return a link that nobody uses; where the database allows no more, wait for one."""
        deadline = time.monotonic() + _CROWDED
        while True:
            try:
                return self._take()
            except PoolExhausted:
                if not self._wait(deadline):
                    raise

    def _take(self) -> Connection:
        me = threading.get_ident()
        with self._lock:
            if self._forking:
                self._changed.wait_for(lambda: self._may_begin(me))
            if self._free:
                link = self._free.pop()
                link.owner = me
                return link
            opening = self._opening
            opening.append(me)
        try:
            link = self._make()
            link.owner = me
            with self._lock:
                _OPEN.add(link)
                self._all.add(link)
        finally:
            with self._lock:
                opening.remove(me)
                self._tell()
        return link

    def _wait(self, deadline: float) -> bool:
        """Wait for another thread's block to end; tell whether there was one to wait for."""
        me = threading.get_ident()
        with self._lock:
            busy = {link for link in self._all if link.owner not in {0, me}}
            if not busy:
                return bool(self._free)
            self._wanting += 1
            try:
                return self._changed.wait_for(
                    lambda: bool(self._free) or not busy <= self._all,
                    max(deadline - time.monotonic(), 0),
                )
            finally:
                self._wanting -= 1

    def _may_begin(self, me: int) -> bool:
        """Tell whether no fork is near, or one that is this thread's or waits for its block."""
        return (
            not self._forking or me in self._forking or any(link.owner == me for link in self._all)
        )

    def release(self, link: Connection) -> None:
        """Take a link back, or close it if it is broken or retired."""
        with self._lock:
            if link in self._all and not link.broken and not link.closing:
                link.owner = 0
                self._free.append(link)
                self._tell()
                return
        self._end(link)  # also one of the process that this one was forked from, which is shut

    def close(self) -> None:
        """Close all links that are not in use; the others when their blocks end."""
        with self._lock:
            for link in self._all:
                link.closing = True
        while (idle := self._take_retired()) is not None:
            self._end(idle)

    def _take_retired(self) -> Connection | None:
        with self._lock:
            for at, link in enumerate(self._free):
                if link.closing:
                    link.owner = threading.get_ident()
                    return self._free.pop(at)
        return None

    def _end(self, link: Connection) -> None:
        """Close a link, then forget it: a fork in between must know of it."""
        link.close()
        with self._lock:
            self._all.discard(link)
            _OPEN.discard(link)
            self._tell()

    def _tell(self) -> None:
        if self._forking or self._wanting:
            self._changed.notify_all()

    def __del__(self) -> None:
        """Close what nobody has closed, before the driver complains."""
        with suppress(Exception):
            self.close()

    def before_fork(self, deadline: float) -> None:
        """Let nothing begin; wait for what other threads have begun; close what is idle."""
        if self._mark_unusable is None:
            return
        me = threading.get_ident()
        self._lock.acquire()  # until after the fork
        self._forking.append(me)
        self._changed.wait_for(lambda: self._is_calm(me), max(deadline - time.monotonic(), 0))
        while self._free:
            link = self._free.pop()
            link.owner = me
            self._end(link)

    def _is_calm(self, me: int) -> bool:
        """Tell whether no other thread uses, opens or closes a link."""
        return all(link.owner in {0, me} for link in self._all) and all(
            thread == me for thread in self._opening
        )

    def after_fork(self) -> None:
        """Go on as before, in the parent."""
        me = threading.get_ident()
        if me in self._forking:
            self._forking.remove(me)
            self._changed.notify_all()
            self._lock.release()

    def in_child(self) -> None:
        """Start anew, without touching what the parent uses."""
        if self._opening and self._mark_unusable is not None:
            self._mark_unusable()
        self._reset()


class _Forks(threading.local):
    """The forks that a thread is in, usually one: pools that must live until it is over."""

    def __init__(self) -> None:
        self.pools: list[list[Pool]] = []


_POOLS: dict[int, weakref.ref[Pool]] = {}  # oldest first, so that two forks lock in one order
_OPEN: set[Connection] = set()  # a pool that is garbage may still have some, and nobody finds it
_FORKS = _Forks()


def _pools() -> list[Pool]:
    found = [ref() for ref in list(_POOLS.values())]  # at once: other threads make more
    return [pool for pool in found if pool is not None]


def _before() -> None:
    deadline = time.monotonic() + _CALM
    pools = _pools()
    _FORKS.pools.append(pools)
    for pool in pools:
        pool.before_fork(deadline)


def _after() -> None:
    if _FORKS.pools:
        for pool in _FORKS.pools.pop():
            pool.after_fork()


def _in_child() -> None:
    for link in _OPEN:
        link.abandon()
    _OPEN.clear()
    held = _FORKS.pools.pop() if _FORKS.pools else []
    for pool in {*held, *_pools()}:
        pool.in_child()


if hasattr(os, "register_at_fork"):  # where processes fork at all
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
