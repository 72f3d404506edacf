"""A connection to a database, in the hands of one thread at a time."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from ladderboard.errors import StorageFailed

__all__ = ["Link", "NoWay", "keep_for_good"]


class NoWay(StorageFailed):
    """No link can be opened now: there may be as many as the database allows."""


class Link(ABC):
    """One connection, and the one transaction that may be open on it.

    Whatever a driver raises ends the link: the transaction is undone, ``broken`` is True, and
    every further statement fails, so that none is ever run outside its transaction.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.broken = False
        self.owner = 0  # the thread that uses, opens or closes it
        self.retired = False  # to be closed when its block ends

    @abstractmethod
    def run(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    @abstractmethod
    def change(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""

    @abstractmethod
    def begin(self, *, write: bool) -> None:
        """Begin a transaction."""

    @abstractmethod
    def book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
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
    def undo(self) -> None:
        """Undo what was done since the beginning; never raises."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; never raises."""

    def abandon(self) -> None:
        """Leave the connection to the process that this one was forked from.

        To use it would mix two processes' words, and to close it would take back the other's locks
        or end the other's session.
        """
        keep_for_good(self.connection)
        self.shut()

    def shut(self) -> None:
        """Let nothing more run here; the driver's connection is out of reach from now on."""
        self.broken = True
        self.connection = _Shut()


def keep_for_good(thing: object) -> None:
    """Let a thing never be finalised, not even when the interpreter ends: one reference more."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class _Shut:
    """In a connection's place: a check before every statement would cost more."""

    in_transaction = False

    def execute(self, *_: object) -> NoReturn:
        """Refuse."""
        raise StorageFailed(
            "This block cannot go on: an error or a fork came into it. Nothing of it stands."
        )

    def cursor(self) -> _Shut:
        """Return the same for a cursor."""
        return self

    def close(self) -> None:
        """Do nothing: there is nothing of ours to close."""
