"""Stores: where the submitted files are kept.

A file is kept for good when the row that names its place is, and not otherwise. So each goes
through three steps: it is prepared before the transaction, committed in it, and abandoned if the
submission is refused after all. A crash between them leaves what :meth:`Store.sweep` removes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["HOUR", "Prepared", "Store", "Tables", "checked"]

HOUR = 3600.0
_ID = re.compile("[0-9a-f]{8,128}")


class Tables(Protocol):
    """A view of a book in a database that speaks SQL."""

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    def change(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""


class Prepared(ABC):
    """A file on its way into a store; ``place`` is what the row must hold to find it again."""

    place: str

    @abstractmethod
    def commit(self, view: Tables) -> None:
        """Do what belongs into the transaction of the row."""

    @abstractmethod
    def abandon(self) -> None:
        """Remove what was prepared; the row will not be. Never raises."""


class Store(ABC):
    """Where submitted files are kept, by an id of hex digits."""

    @abstractmethod
    def prepare(self, id: str, body: bytes | Path) -> Prepared:  # noqa: A002 - what it is
        """Do what must be done before the transaction of the row begins."""

    @abstractmethod
    def get(self, place: str) -> BinaryIO:
        """Open a file that is kept, to be read and closed; ``InvalidState`` if it is not there."""

    @abstractmethod
    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def sweep(self, known: Callable[[str], bool], *, older: float = HOUR) -> int:
        """Remove what a crash left, and return how many.

        ``known`` tells of a place whether a row names it. What is younger than ``older`` seconds
        is let be: its row may be on the way.
        """


def checked(id: str) -> str:  # noqa: A002 - what it is
    """Return an id that can be part of a path.

    >>> checked("../../etc/passwd")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: An id must be 8 to 128 hex digits; got '../../etc/passwd'.
    """
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise InvalidSetting(f"An id must be 8 to 128 hex digits; got {id!r:.80}.")
    return id
