"""The interface of a storage: what a database must do for a ledger.

A storage holds books: for each its chain, its ladders and other stored values.
There is one write transaction at a time per book. What it did is durable when the ``with`` block
ends, and is rolled back if the block raises. A view is valid inside its block only.

A number or name that is taken or missing, and text that cannot be stored (with NUL in it), are
refused with ``InvalidInput``: nothing was changed, and the block may go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

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


class ReadView(ABC):
    """A consistent view of a book, for reading."""

    @abstractmethod
    def chain_state(self) -> ChainState:
        """Return the state of the chain."""

    def now(self) -> int | None:
        """Return the database server's time; None if the database has no clock of its own."""
        return None

    @abstractmethod
    def entries(self, first: int = 0, last: int | None = None) -> Iterator[bytes]:
        """Return the bytes of the entries from ``first`` up to, not including, ``last``."""

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
        """Return the number of the entry with this key; None if there is none."""

    @abstractmethod
    def get_value(self, name: str) -> bytes | None:
        """Return a stored value; None if there is none."""


class WriteView(ReadView):
    """A view of a book, for reading and writing."""

    @abstractmethod
    def append(self, row: EntryRow, chain_state: ChainState, secret: bytes | None = None) -> None:
        """Append an entry with its secret side; ``chain_state`` is the state after it.

        The entry has the next number; ``chain_state`` counts it and has its hash as head.
        """

    @abstractmethod
    def add_dedupe_key(self, key: bytes, number: int) -> None:
        """Record the key of an entry's submission, or of its idempotency key.

        A key that is recorded already is refused.
        """

    @abstractmethod
    def add_ladder(self, ladder: int, name: str, state: bytes) -> None:
        """Add a ladder; a number or a name that is taken is refused."""

    @abstractmethod
    def set_ladder_state(self, ladder: int, state: bytes) -> None:
        """Replace a ladder's state; a missing ladder is refused."""

    @abstractmethod
    def set_value(self, name: str, value: bytes) -> None:
        """Store a value under a name, replacing an earlier one."""

    def clear_copy_flag(self) -> None:
        """Treat a copy as the book itself from now on; see ``Storage.is_copy``."""
        self.set_value(COPY, b"")


class Storage(ABC):
    """A database that stores books.

    A failure of the database raises ``StorageFailed``. Its ``uncertain`` is True if a commit was
    sent but not confirmed: it may have happened or not, and the caller must look.
    """

    @abstractmethod
    def books(self) -> list[str]:
        """Return the ids of all books, oldest first."""

    @abstractmethod
    def add_book(self, book: str) -> AbstractContextManager[WriteView]:
        """Add an empty book; it exists once the block has ended."""

    @abstractmethod
    def read_transaction(self, book: str) -> AbstractContextManager[ReadView]:
        """Begin to read a book, as it is now."""

    @abstractmethod
    def write_transaction(self, book: str) -> AbstractContextManager[WriteView]:
        """Begin to change a book; other writers of it wait until the block ends."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; the next use opens new ones."""

    def is_copy(self, book: str) -> bool:
        """Return whether the book came out of a backup and was not adopted since.

        Questions that were answered after the backup are missing from the copy.
        """
        with self.read_transaction(book) as view:
            return bool(view.get_value(COPY))
