"""A database of books, and the transactions that it begins and ends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from ladderboard.errors import InvalidState
from ladderboard.ledger._storage._schema import migrate_module, module_format
from ladderboard.ledger._storage._sql import COPY, ReadView, TableView, WriteView, check_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ladderboard.ledger._storage._pool import Connection, Pool
    from ladderboard.ledger._storage._schema import SchemaModule

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


class _WriteTransaction(AbstractContextManager[WriteView]):
    """A write transaction: committed at the end of the block, rolled back on an exception."""

    def __init__(self, pool: Pool, book: str, *, add: bool = False) -> None:
        self._pool = pool
        self._book = check_text(book)
        self._add = add

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
            number = _find_book(connection, book, write=True, fresh=self._add)
        except BaseException:
            self._release(undo=True)
            raise
        self._view = WriteView(connection, number)
        return self._view

    def __exit__(self, kind: object, *_: object) -> None:
        self._view.invalidate()
        try:
            if kind is None:
                self._connection.commit()
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

    def write_transaction(self, book: str) -> AbstractContextManager[WriteView]:
        """Begin to change a book; other writers of it wait."""
        return _WriteTransaction(self._pool, book)

    def read_tables(self) -> AbstractContextManager[TableView]:
        """Begin to read tables of other packages, as they are now."""
        return _TableTransaction(self._pool, write=False)

    def query_tables(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement that reads tables of other packages, and return the rows."""
        with self.read_tables() as view:
            return view.query(statement, values)

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
