"""Transactions on one book, and the storage that begins and ends them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self

from ladderboard.errors import InvalidState
from ladderboard.ledger._storage._base import Storage
from ladderboard.ledger._storage._schema import migrate_module, module_format
from ladderboard.ledger._storage._sql import SqlReadView, SqlWriteView, check_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ladderboard.ledger._storage._pool import Connection, Pool
    from ladderboard.ledger._storage._schema import SchemaModule

_ADD = "INSERT INTO main.book (name) VALUES (?) ON CONFLICT DO NOTHING"
_BOOKS = "SELECT name FROM main.book ORDER BY id"


class _ReadingBlock(AbstractContextManager[SqlReadView]):
    """A view that is undone at its end; a class, as a generator costs more than a statement."""

    def __init__(self, pool: Pool, book: str) -> None:
        self._pool = pool
        self._book = check_text(book)

    def __enter__(self) -> SqlReadView:
        self._link = link = self._pool.acquire()
        try:
            link.begin(write=False)
            self._view = view = SqlReadView(link, _find(link, self._book, write=False))
            view.chain_state()  # the view is of now, not of when it is first looked at
        except BaseException:
            link.rollback()
            self._pool.release(link)
            raise
        return view

    def __exit__(self, *_: object) -> None:
        self._view.invalidate()
        self._link.rollback()
        self._pool.release(self._link)


class _WritingBlock(AbstractContextManager[SqlWriteView]):
    """A view that is committed at its end, or undone if that is an exception."""

    def __init__(self, pool: Pool, book: str, *, add: bool = False) -> None:
        self._pool = pool
        self._book = check_text(book)
        self._add = add

    def __enter__(self) -> SqlWriteView:
        pool, book = self._pool, self._book
        self._writer_lock = (
            pool.writer_lock
        )  # those of this process, even if the block ends in a forked one
        self._writer_lock.acquire(book)
        try:
            self._link = link = pool.acquire()
        except BaseException:
            self._writer_lock.release(book)
            raise
        try:
            link.begin(write=True)
            if self._add and not link.execute(_ADD, (book,)):
                raise InvalidState(f"There is a book {book!r:.80} already.")
            number = _find(link, book, write=True, fresh=self._add)
        except BaseException:
            self._leave(undo=True)
            raise
        self._view = SqlWriteView(link, number)
        return self._view

    def __exit__(self, kind: object, *_: object) -> None:
        self._view.invalidate()
        try:
            if kind is None:
                self._link.commit()
        except BaseException:
            self._leave(undo=True)
            raise
        self._leave(undo=kind is not None)

    def _leave(self, *, undo: bool) -> None:
        if undo:
            self._link.rollback()
        self._pool.release(self._link)
        self._writer_lock.release(self._book)


def _find(link: Connection, book: str, *, write: bool, fresh: bool = False) -> int:
    number = link.find_book(book, write=write, fresh=fresh)
    if number is None:
        raise InvalidState(f"There is no book {book!r:.80} here.")
    return number


class SqlStorage(Storage):
    """A storage in a database that speaks SQL."""

    _pool: Pool
    _words: Mapping[str, str]

    def _tables(self, link: Connection) -> set[str]:
        """Return the names of all tables."""
        raise NotImplementedError

    def _alone(self, link: Connection) -> None:
        """Begin a transaction in which nobody else makes tables."""
        link.begin(write=True)

    def limit_read_wait(self, seconds: float) -> None:
        """Let nobody who only reads wait longer for a database that says nothing.

        For servers, whose clients can ask again. A file answers at once, or never.
        """

    def ensure_schema(self, part: SchemaModule) -> None:
        """Let the database have a room's own tables, in the room's latest format."""
        link = self._pool.acquire()
        try:
            if self._part_format(link, part) == len(part.migrations):
                return
            self._alone(link)
            version = self._part_format(link, part)  # others may have been here
            if 0 < version < len(part.migrations):
                self._keep_copy(link, version, part.name)
            migrate_module(link, part, version, self._words)
            link.commit()
        finally:
            link.rollback()
            self._pool.release(link)

    def _part_format(self, link: Connection, part: SchemaModule) -> int:
        return module_format(link, part, self._tables(link), lambda name: self._copies(link, name))

    def _keep_copy(self, link: Connection, version: int, part: str = "") -> None:
        """Copy everything before a step is taken, in a transaction in which nobody else writes."""
        raise NotImplementedError

    def _copies(self, link: Connection, part: str = "") -> Iterable[str]:
        """Return the names of the copies that were made before steps."""
        raise NotImplementedError

    def books(self) -> list[str]:
        """Return the ids of all books."""
        link = self._pool.acquire()
        try:
            link.begin(write=False)
            return [row[0] for row in link.query(_BOOKS)]
        finally:
            link.rollback()
            self._pool.release(link)

    def add_book(self, book: str) -> AbstractContextManager[SqlWriteView]:
        """Add a book; it is there when the block ends."""
        return _WritingBlock(self._pool, book, add=True)

    def read_transaction(self, book: str) -> AbstractContextManager[SqlReadView]:
        """Read a book, as it stands now."""
        return _ReadingBlock(self._pool, book)

    def write_transaction(self, book: str) -> AbstractContextManager[SqlWriteView]:
        """Change a book; others who want to wait."""
        return _WritingBlock(self._pool, book)

    def close(self) -> None:
        """Let go of the database; the next use takes hold of it again."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
