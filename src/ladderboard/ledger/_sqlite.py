"""A storage in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidState, StorageFailed
from ladderboard.ledger._block import SqlStorage
from ladderboard.ledger._fresh import fresh_file
from ladderboard.ledger._migrate import build, latest, lift, refuse_unknown
from ladderboard.ledger._pool import Pool
from ladderboard.ledger._sql import NAMES
from ladderboard.ledger._sqlite_link import APPLICATION, SqliteLink, connect, failed, spoil
from ladderboard.ledger._storage import COPY
from ladderboard.ledger._turns import OneByOne

if TYPE_CHECKING:
    from ladderboard.ledger._link import Link

__all__ = ["SqliteStorage"]

_PAGE = 4096
_WORDS = {
    "blob": "BLOB",
    "whole": "INTEGER",
    "prefix": "main.",  # of an index's name
    "on": "",  # of the name of its table
    "real": "REAL",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "tail": " WITHOUT ROWID",  # one page less to write for every row
}


class SqliteStorage(SqlStorage):
    """Books in a file, safe for several threads and processes at once.

    A commit is on the disk before it is acknowledged: write-ahead log, full synchronous commits.
    Writers queue, for at most a minute.

    Parameters
    ----------
    path
        The file. It is made, readable by its owner only, if ``create`` says so.
    create
        Make a new file; refuse one that is there.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> storage = SqliteStorage(f"{folder.name}/guard.db", create=True)
    >>> with storage.add_book("first") as book:
    ...     book.keep("colour", b"blue")
    >>> with storage.reading("first") as book:
    ...     book.kept("colour")
    b'blue'
    >>> storage.close()
    >>> folder.cleanup()
    """

    _words = _WORDS

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
        if create:
            self._create()
        numbers: dict[str, int] = {}
        same = _look(self.path)
        make = partial(SqliteLink, self.path, same, numbers)
        self._pool = Pool(make, OneByOne, spoil=partial(spoil, same))
        try:
            self._check()
        except BaseException:
            self._pool.close()
            raise

    def __reduce__(self) -> tuple[type[SqliteStorage], tuple[Path]]:
        """Travel to another process as a path."""
        return (SqliteStorage, (self.path,))

    def _create(self) -> None:
        with fresh_file(self.path) as draft:
            try:
                with closing(connect(draft)) as database:
                    database.execute(f"PRAGMA page_size = {_PAGE}")
                    database.execute("PRAGMA journal_mode = WAL")
                    database.execute("BEGIN IMMEDIATE")
                    build(database.execute, _WORDS)
                    database.execute(f"PRAGMA application_id = {APPLICATION}")
                    database.execute(f"PRAGMA user_version = {latest()}")
                    database.execute("COMMIT")
                    _empty_log(database)
            except sqlite3.Error as error:
                raise failed(error, self.path) from None

    def _check(self) -> None:
        """Refuse a file of ours that cannot be used, and bring one of an old format up to date."""
        link = self._pool.take()
        try:
            version = link.run("PRAGMA user_version")[0][0]
            refuse_unknown(version, self.path, self._copies(link))
            if self.path.stat().st_size % _PAGE and not _has_log(self.path):
                raise InvalidState(f"{self.path} is damaged: its end is missing.")
            if version < latest():
                self._migrate(link)
            found = {(row[0], row[1]) for row in link.run("SELECT type, name FROM sqlite_schema")}
            if not {("table", name) for name in NAMES} <= found or any(
                kind in {"trigger", "view"} for kind, _ in found
            ):
                raise InvalidState(f"{self.path} is damaged: its tables are not those of a ledger.")
        finally:
            self._pool.give(link)

    def _migrate(self, link: Any) -> None:
        """Copy the file, then take the steps, all while nobody else may write."""
        link.run("BEGIN IMMEDIATE")
        try:
            version = link.run("PRAGMA user_version")[0][0]
            if version < latest():
                self._keep_copy(link, version)
                lift(version, link.run, _WORDS)
                link.run(f"PRAGMA user_version = {latest()}")
            link.commit()
        except BaseException:
            link.undo()
            raise

    def _keep_copy(self, link: Link, version: int, part: str = "") -> None:
        copy = _unused(self.path, f"{part}-{version}" if part else f"{version}")
        try:
            self.backup(copy)
        except StorageFailed as error:
            raise StorageFailed(
                f"{self.path} is of an older format and is copied before it is brought up to date, "
                f"which failed: {error} Nothing was changed."
            ) from None

    def _copies(self, link: Link, part: str = "") -> list[str]:
        begin = f"{self.path.name}.before-{part}-" if part else f"{self.path.name}.before-"
        found = (each.name for each in self.path.parent.iterdir() if each.name.startswith(begin))
        return [each for each in found if each[len(begin) :].replace("-", "").isdigit()]

    def _tables(self, link: Link) -> set[str]:
        return {row[0] for row in link.run("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    def backup(self, to: Path | str) -> None:
        """Copy the file while it is in use; the books in the copy know that they are copies.

        The copy is one moment's view, made through SQLite's own backup, and readable by its owner
        only. Nothing is ever overwritten.
        """
        target = Path(os.path.abspath(to))  # noqa: PTH100 - links are not followed
        link = self._pool.take()
        try:
            with fresh_file(target) as draft, closing(connect(draft)) as database:
                link.connection.backup(database)
                database.execute(
                    "INSERT OR REPLACE INTO kept (book, name, value) SELECT id, ?, ? FROM book",
                    (COPY, b"1"),
                )
                _empty_log(database)
        except sqlite3.Error as error:
            raise failed(error, target) from None
        finally:
            self._pool.give(link)


def _look(path: Path) -> tuple[int, int]:
    """Return which file this is. Nobody but SQLite may open it: see ``SqliteLink``."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidState(f"There is no file {path}.") from None
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise InvalidState(f"{path} is not a file.")
    return found.st_dev, found.st_ino


def _empty_log(database: sqlite3.Connection) -> None:
    """Let the file hold everything. To close it would do so, too, but not say where it fails."""
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _has_log(path: Path) -> bool:
    """Tell whether a page that the file has only half of may be whole in its write-ahead log."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def _unused(path: Path, what: str) -> Path:
    """Return a name for the copy made before a migration; an earlier try may have left one."""
    name, count = path.with_name(f"{path.name}.before-{what}"), 1
    while os.path.lexists(name):
        count += 1
        name = path.with_name(f"{path.name}.before-{what}-{count}")
    return name
