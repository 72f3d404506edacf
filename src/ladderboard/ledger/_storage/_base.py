"""The contract of a storage: what every database must do for a ledger, and no more.

A storage knows books, and of a book its chain, its ladders and what is kept apart from them. It
decides nothing. One ``writing`` at a time goes on for a book, and what it did is durable when the
``with`` block ends without an exception, and has not happened at all otherwise. A view is of use
inside its block only.

What is taken, missing or not to be kept (a number, a name, text with NUL in it) is refused with
``InvalidInput``: nothing changed, and the block may go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

COPY = "copy"  # kept under this name: whether the book is a copy that nobody has adopted


class ChainState(NamedTuple):
    """Where a book stands: what its chain adds up to.

    ``entries`` and ``head`` are the length of the chain and the hash of its last entry, ``time``
    that entry's; ``asked`` is how many questions were answered, ``changes`` how many of them were
    seen to improve, ``ladders`` how many ladders were started; ``lost`` is how often an old copy
    was put back, and ``charged`` how many questions were charged for that without an answer here;
    ``closed`` says whether there is an end to it.
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

    ``ladder``, ``question`` and ``asker`` are None for entries that have none.
    """

    number: int
    kind: str
    form: bytes
    hash: bytes
    ladder: int | None = None
    question: int | None = None
    asker: str | None = None


class ReadView(ABC):
    """One consistent view of a book."""

    @abstractmethod
    def chain_state(self) -> ChainState:
        """Return where the book stands."""

    def now(self) -> int | None:
        """Return the time that holds for all who use the database; None if each has their own."""
        return None

    @abstractmethod
    def entries(self, first: int = 0, last: int | None = None) -> Iterator[bytes]:
        """Return the bytes of entries in their order, from ``first`` to before ``last``."""

    @abstractmethod
    def secret_side(self, number: int) -> bytes | None:
        """Return the secret side of an entry."""

    @abstractmethod
    def ladder_names(self) -> list[str]:
        """Return the names of all ladders, in the order of their numbers."""

    def ladder_number(self, name: str) -> int | None:
        """Return the number of a ladder."""
        names = self.ladder_names()
        return names.index(name) if name in names else None

    @abstractmethod
    def ladder_state(self, ladder: int) -> bytes | None:
        """Return a ladder's state."""

    @abstractmethod
    def find_by_dedupe_key(self, key: bytes) -> int | None:
        """Return the number of the entry that bears a mark."""

    @abstractmethod
    def get_value(self, name: str) -> bytes | None:
        """Return what is kept under a name."""


class WriteView(ReadView):
    """One view of a book that may change it."""

    @abstractmethod
    def append(self, row: EntryRow, at: ChainState, secret: bytes | None = None) -> None:
        """Append an entry, with its secret side, after which the book stands ``at``.

        Its number is the next one, and ``at`` counts it and has its hash for a head.
        """

    @abstractmethod
    def add_dedupe_key(self, key: bytes, number: int) -> None:
        """Let an entry bear a mark: that of a submission, or of a key to retry with.

        A mark that is borne already is refused.
        """

    @abstractmethod
    def add_ladder(self, ladder: int, name: str, state: bytes) -> None:
        """Add a ladder; a number or a name that is taken is refused."""

    @abstractmethod
    def set_ladder_state(self, ladder: int, state: bytes) -> None:
        """Replace a ladder's state; a ladder that is not there is refused."""

    @abstractmethod
    def set_value(self, name: str, value: bytes) -> None:
        """Keep something under a name, in place of what was kept there."""

    def clear_copy_flag(self) -> None:
        """Let a copy be the book itself from now on; see ``Storage.is_copy``."""
        self.set_value(COPY, b"")


class Storage(ABC):
    """A database that holds books.

    Whatever the database cannot do is raised as ``StorageFailed``. Where a commit was sent and no
    answer came, ``uncertain`` is True: what was done may stand or not, and is to be looked up.
    """

    @abstractmethod
    def books(self) -> list[str]:
        """Return the ids of all books, oldest first."""

    @abstractmethod
    def add_book(self, book: str) -> AbstractContextManager[WriteView]:
        """Add a book, with nothing in it; it is there when the block ends."""

    @abstractmethod
    def read_transaction(self, book: str) -> AbstractContextManager[ReadView]:
        """Read a book, as it stands now."""

    @abstractmethod
    def write_transaction(self, book: str) -> AbstractContextManager[WriteView]:
        """Change a book; others who want to wait until the block ends."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database; the next use takes hold of it again."""

    def is_copy(self, book: str) -> bool:
        """Tell whether the book came out of a backup and was not adopted since.

        Questions may have been answered after the backup was made, which the copy cannot know of.
        """
        with self.read_transaction(book) as view:
            return bool(view.get_value(COPY))
