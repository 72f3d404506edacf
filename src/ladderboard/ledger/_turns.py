"""Whose turn it is to write, among the threads of one process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from ladderboard.errors import InvalidState, StorageFailed

__all__ = ["PATIENCE", "OneByBook", "OneByOne", "Turns"]

PATIENCE = 60.0  # seconds to wait for others who write


class Turns(ABC):
    """A thread that already writes must not wait for itself."""

    @abstractmethod
    def enter(self, book: str) -> None:
        """Wait for the turn to change a book."""

    @abstractmethod
    def leave(self, book: str) -> None:
        """Let the next one write; nothing if the turn was another process's."""


class OneByOne(Turns):
    """One writer at a time, as in SQLite, which would let threads poll for their turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    def enter(self, book: str) -> None:
        """Wait for the turn to change anything."""
        me = threading.get_ident()
        if self._owner == me:
            raise InvalidState(_TWICE)
        if not self._lock.acquire(False) and not self._lock.acquire(timeout=PATIENCE):
            raise StorageFailed(f"Others have been writing for more than {PATIENCE:.0f} seconds.")
        self._owner = me

    def leave(self, book: str) -> None:
        """Let the next one write."""
        if self._owner == threading.get_ident():
            self._owner = 0
            self._lock.release()


class OneByBook(Turns):
    """The database queues those who want the same book."""

    def __init__(self) -> None:
        self._writers: set[tuple[int, str]] = set()

    def enter(self, book: str) -> None:
        """Refuse a second block on the same book and thread."""
        writer = (threading.get_ident(), book)
        if writer in self._writers:
            raise InvalidState(_TWICE)
        self._writers.add(writer)

    def leave(self, book: str) -> None:
        """Forget the block."""
        self._writers.discard((threading.get_ident(), book))


_TWICE = "This thread is changing the book already; end that block first."
