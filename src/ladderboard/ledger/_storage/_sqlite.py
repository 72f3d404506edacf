"""A storage in one SQLite file."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import stat
from contextlib import closing, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ladderboard.errors import DiskFull, InvalidState, LadderboardError, ReadOnly, StorageFailed
from ladderboard.ledger._atomic_file import absolute_path, atomic_create
from ladderboard.ledger._storage._base import COPY
from ladderboard.ledger._storage._pool import (
    WRITER_TIMEOUT,
    Connection,
    GlobalWriterLock,
    Pool,
    leak_reference,
)
from ladderboard.ledger._storage._schema import (
    TABLE_NAMES,
    create_tables,
    latest_format,
    migrate,
    refuse_unknown_format,
)
from ladderboard.ledger._storage._transaction import SqlStorage

if TYPE_CHECKING:
    from pathlib import Path

SQLITE_APPLICATION_ID = 0x4C424F41  # "LBOA", so that `file` and we know such a file

_SETTINGS = (
    "PRAGMA trusted_schema = OFF",  # a file from elsewhere runs nothing here
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # where fsync alone does not reach the disk
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA wal_autocheckpoint = 8000",  # pages; with files in them the log is soon full
)
_NUMBER = "SELECT id FROM main.book WHERE name = ?"
_GLANCE = 0.02  # seconds between two looks whether the file is still there; a look costs 10 us
_LONG = 64 * 2**20  # bytes of a write-ahead log that readers have kept from being reused
_COMMITS = 256  # between two looks at its length
_SHORT = 2**28  # bytes that are free on a disk that is nearly full
_LITTLE = 2**20  # bytes of a write-ahead log there
_READABLE = "it may only be read"
_SENTENCES = {
    sqlite3.SQLITE_BUSY: "others have been writing for too long",
    sqlite3.SQLITE_LOCKED: "others have been writing for too long",
    sqlite3.SQLITE_READONLY: _READABLE,
    sqlite3.SQLITE_PERM: "it may not be opened by this user",
    sqlite3.SQLITE_CANTOPEN: "it, or a file beside it, may not be opened or made",
    sqlite3.SQLITE_FULL: (
        "the disk is full. Free at least 64 MB for this file and its write-ahead log"
    ),
    sqlite3.SQLITE_IOERR: "the disk could not be read or written",
    sqlite3.SQLITE_TOOBIG: "a value is too large",
}
_KINDS = {sqlite3.SQLITE_FULL: DiskFull, sqlite3.SQLITE_READONLY: ReadOnly}
# After these a commit has not happened: there was no lock, or no room for all of it in the log.
_REFUSED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL}
_SPOILT: set[tuple[int, int]] = set()  # files whose locks this process is wrong about
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


def connect_sqlite(path: Path) -> sqlite3.Connection:
    """Open a file that is there, whatever thread will use it.

    SQLite makes files beside it even to read it, which it cannot on a disk that may only be read;
    but there nobody changes it either. What is in a log that was left there it must read, though.
    """
    still = _is_on_read_only_disk(path) and not _size(path, "-wal")
    uri = f"file:{quote(os.fsencode(path))}?{'immutable=1' if still else 'mode=rw'}"
    return sqlite3.connect(
        uri, uri=True, timeout=WRITER_TIMEOUT, isolation_level=None, check_same_thread=False
    )


def translate_sqlite_error(
    error: sqlite3.Error, path: Path, *, uncertain: bool = False
) -> LadderboardError:
    """Return what to raise for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_NOTADB and not uncertain:
        return InvalidState(f"{path} is not a file of Ladderboard.")
    if not uncertain and (primary == sqlite3.SQLITE_CORRUPT or "decode" in str(error)):
        return InvalidState(f"{path} is damaged: SQLite cannot make sense of it.")
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # no room for a file beside it
        primary = sqlite3.SQLITE_FULL
    said = _SENTENCES.get(primary, str(error)) if primary is not None else str(error)
    kind = _KINDS.get(primary, StorageFailed) if primary is not None else StorageFailed
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}:
        if _is_on_read_only_disk(path):
            said, kind = "its disk may only be read", ReadOnly
        elif primary != sqlite3.SQLITE_IOERR:
            said = _in_the_way(path) or said
    if uncertain:
        said, kind = f"{said}; whether the last change stands is not known", StorageFailed
    return kind(f"{path} cannot be used: {said}.", uncertain=uncertain)


def _is_on_read_only_disk(path: Path) -> bool:
    if not hasattr(os, "statvfs"):  # Windows
        return False
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _size(path: Path, end: str) -> int:
    """Return how large a file beside this one is; 0 where there is none."""
    try:
        return path.with_name(path.name + end).stat().st_size
    except OSError:
        return 0


def _free(path: Path) -> float:
    """Return how many bytes are free on a file's disk; no end of them where that is not known."""
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return math.inf


def _in_the_way(path: Path) -> str | None:
    """Return what is wrong with a file beside one that is in order itself; None if nothing is."""
    if not _writable(path):
        return None
    log, memory = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if os.path.lexists(log) and not _writable(log):
        return f"{log}, which belongs to it, may not be written by this user"
    if os.path.lexists(memory) and not _writable(memory):  # holds nothing that is not in the log
        return (
            f"{memory} was left there and may not be written by this user; remove it while nobody "
            "uses the file"
        )
    return None


def _writable(path: Path) -> bool:
    """Tell whether this is a file that we may write; to open it is not for us: see below."""
    own = os.access in os.supports_effective_ids
    return path.is_file() and os.access(path, os.R_OK | os.W_OK, effective_ids=own)


def mark_unusable(same: tuple[int, int]) -> None:
    """Let no link to a file be made in this process any more."""
    _SPOILT.add(same)


class SqliteConnection(Connection):
    """A connection in WAL mode with full synchronous commits.

    Only SQLite opens the file, even to see what it is: whoever closes a file gives up all locks
    that the process has on it, those of other connections too.
    """

    connection: sqlite3.Connection

    def __init__(self, path: Path, same: tuple[int, int], numbers: dict[str, int]) -> None:
        self._path = path
        self._version = latest_format()
        self._looked = monotonic()
        self._same = same
        self._refuse_replaced()
        if same in _SPOILT:
            raise StorageFailed(
                f"{path} cannot be used in this process: it was forked inside a block that changes "
                "or reads the file. Fork outside of blocks, or start processes with 'spawn'."
            )
        self._numbers = numbers  # of books; a number is never used again
        self._commits = 0
        self._kept = 0  # bytes of the log that readers kept from being emptied
        super().__init__(None)
        self._open()
        self._tidy()

    def _open(self) -> None:
        path = self._path
        self._fixed = not _writable(path)
        try:
            self.connection = connect_sqlite(path)
            self._cursor = self.connection.cursor()  # one for all: to make one takes time
        except sqlite3.Error as error:
            raise translate_sqlite_error(error, path) from None
        try:
            self._set_up()
        except sqlite3.Error as error:
            self.close()
            raise translate_sqlite_error(error, path) from None
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        """Refuse a file that is not ours, before anything is written to it."""
        if self.connection.execute("PRAGMA application_id").fetchone()[0] != SQLITE_APPLICATION_ID:
            raise InvalidState(f"{self._path} is not a file of Ladderboard.")
        if self._fixed:
            return
        mode = self.connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise StorageFailed(
                f"{self._path} cannot be used: its file system allows no shared memory."
            )
        for setting in _SETTINGS:
            self.connection.execute(setting)

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        try:
            return self._cursor.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._break()
            raise translate_sqlite_error(error, self._path) from None

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""
        try:
            return self._cursor.execute(statement, values).rowcount
        except sqlite3.Error as error:
            self._break()
            raise translate_sqlite_error(error, self._path) from None

    def begin(self, *, write: bool) -> None:
        """Begin a transaction, on the file that was opened and in the format it had."""
        now = monotonic()
        if now - self._looked > _GLANCE:
            self._refuse_replaced()
            self._looked = now
        if self._fixed:
            self._refuse_fixed(write=write)
        try:
            if not write:
                self._cursor.execute("BEGIN")
                return
            self._make_room()
            self._cursor.execute("BEGIN IMMEDIATE")
            version = self._cursor.execute("PRAGMA user_version").fetchall()[0][0]
        except sqlite3.Error as error:
            self._break()
            raise translate_sqlite_error(error, self._path) from None
        if version != self._version:
            self._break()
            refuse_unknown_format(version, self._path)
            raise InvalidState(f"{self._path} is in format {version} now; open it again.")

    def _refuse_fixed(self, *, write: bool) -> None:
        """Open a file again that may be written by now; as long as it may not, refuse to."""
        if _writable(self._path):
            self._break()
            self._open()
            self.broken = False
        elif write:
            disk = "its disk" if _is_on_read_only_disk(self._path) else "it"
            raise ReadOnly(f"{self._path} cannot be used: {disk} may only be read.")

    def _refuse_replaced(self) -> None:
        """Refuse to go on where others no longer look: what is committed there would be lost."""
        try:
            found = self._path.stat()
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._same:
            raise StorageFailed(
                f"{self._path} was moved, removed or replaced while it was in use; open it again."
            )

    def find_book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
        """Return a book's number; the transaction keeps others from writing as it is."""
        number = self._numbers.get(name)
        if number is None:
            rows = self.query(_NUMBER, (name,))
            if not rows:
                return None
            number = rows[0][0]
            if not fresh:
                self._numbers[name] = number
        return number

    def commit(self) -> None:
        """Commit; past this point an error tells nothing about what is on the disk."""
        try:
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if primary != sqlite3.SQLITE_FULL:  # which is undone; to open it anew may need room
                self._break()
            raise translate_sqlite_error(
                error, self._path, uncertain=primary not in _REFUSED
            ) from None
        self._commits += 1
        if not self._commits % _COMMITS:
            self._tidy()

    def rollback(self) -> None:
        """Undo what was done since the beginning."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._break()

    def close(self) -> None:
        """Close the connection; the last one to do so empties the write-ahead log."""
        with suppress(sqlite3.Error):
            self.connection.close()

    def abandon(self) -> None:
        """Leave the connection to the parent, and with it the file: see ``Pool``."""
        leak_reference(self._cursor)
        super().abandon()
        mark_unusable(self._same)

    def poison(self) -> None:
        """Let nothing more run here."""
        super().poison()
        self._cursor = self.connection.cursor()

    def _break(self) -> None:
        database = self.connection
        self.poison()
        with suppress(sqlite3.Error):
            database.close()  # which undoes what was not committed

    def _tidy(self) -> None:
        """Start the write-ahead log over where readers, one after another, kept it growing.

        SQLite moves its pages into the file by itself, but starts over only when no reader looks
        at it. New readers look at the file once all is there, so this waits for old ones only.
        """
        if _size(self._path, "-wal") > _LONG:
            self._checkpoint("RESTART")

    def _make_room(self) -> None:
        """Empty the write-ahead log where the disk is short: it would take what was freed."""
        size = _size(self._path, "-wal")
        if size <= max(_LITTLE, self._kept) or _free(self._path) >= _SHORT:
            return
        self._checkpoint("TRUNCATE")
        left = _size(self._path, "-wal")
        self._kept = left + _LITTLE if left > _LITTLE else 0  # not for every one who comes

    def _checkpoint(self, how: str) -> None:
        """Move the log's pages into the file; readers who look at them are not waited for long."""
        with suppress(sqlite3.Error):
            self.connection.execute("PRAGMA busy_timeout = 100")
            self.connection.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
        with suppress(sqlite3.Error):
            self.connection.execute(f"PRAGMA busy_timeout = {int(WRITER_TIMEOUT * 1000)}")


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
    ...     book.set_value("colour", b"blue")
    >>> with storage.read_transaction("first") as book:
    ...     book.get_value("colour")
    b'blue'
    >>> storage.close()
    >>> folder.cleanup()
    """

    _words = _WORDS

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self.path = absolute_path(path)
        if create:
            self._create()
        numbers: dict[str, int] = {}
        same = _look(self.path)
        make = partial(SqliteConnection, self.path, same, numbers)
        self._pool = Pool(make, GlobalWriterLock, mark_unusable=partial(mark_unusable, same))
        try:
            self._check()
        except BaseException:
            self._pool.close()
            raise

    def __reduce__(self) -> tuple[type[SqliteStorage], tuple[Path]]:
        """Travel to another process as a path."""
        return (SqliteStorage, (self.path,))

    def _create(self) -> None:
        with atomic_create(self.path) as draft:
            try:
                with closing(connect_sqlite(draft)) as database:
                    database.execute(f"PRAGMA page_size = {_PAGE}")
                    database.execute("PRAGMA journal_mode = WAL")
                    database.execute("BEGIN IMMEDIATE")
                    create_tables(database.execute, _WORDS)
                    database.execute(f"PRAGMA application_id = {SQLITE_APPLICATION_ID}")
                    database.execute(f"PRAGMA user_version = {latest_format()}")
                    database.execute("COMMIT")
                    _empty_log(database)
            except sqlite3.Error as error:
                raise translate_sqlite_error(error, self.path) from None

    def _check(self) -> None:
        """Refuse a file of ours that cannot be used, and bring one of an old format up to date."""
        link = self._pool.acquire()
        try:
            version = link.query("PRAGMA user_version")[0][0]
            refuse_unknown_format(version, self.path, self._copies(link))
            if self.path.stat().st_size % _PAGE and not _has_log(self.path):
                raise InvalidState(f"{self.path} is damaged: its end is missing.")
            if version < latest_format():
                self._migrate(link)
            found = {(row[0], row[1]) for row in link.query("SELECT type, name FROM sqlite_schema")}
            if not {("table", name) for name in TABLE_NAMES} <= found or any(
                kind in {"trigger", "view"} for kind, _ in found
            ):
                raise InvalidState(f"{self.path} is damaged: its tables are not those of a ledger.")
        finally:
            self._pool.release(link)

    def _migrate(self, link: Any) -> None:
        """Copy the file, then take the steps, all while nobody else may write."""
        link.query("BEGIN IMMEDIATE")
        try:
            version = link.query("PRAGMA user_version")[0][0]
            if version < latest_format():
                self._keep_copy(link, version)
                migrate(version, link.query, _WORDS)
                link.query(f"PRAGMA user_version = {latest_format()}")
            link.commit()
        except BaseException:
            link.rollback()
            raise

    def _keep_copy(self, link: Connection, version: int, part: str = "") -> None:
        copy = _unused(self.path, f"{part}-{version}" if part else f"{version}")
        try:
            self.backup(copy)
        except StorageFailed as error:
            raise StorageFailed(
                f"{self.path} is of an older format and is copied before it is brought up to date, "
                f"which failed: {error} Nothing was changed."
            ) from None

    def _copies(self, link: Connection, part: str = "") -> list[str]:
        begin = f"{self.path.name}.before-{part}-" if part else f"{self.path.name}.before-"
        found = (path.name for path in self.path.parent.iterdir() if path.name.startswith(begin))
        return [each for each in found if each[len(begin) :].replace("-", "").isdigit()]

    def _tables(self, link: Connection) -> set[str]:
        return {row[0] for row in link.query("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    def backup(self, to: Path | str) -> None:
        """Copy the file while it is in use; the books in the copy know that they are copies.

        The copy is one moment's view, made through SQLite's own backup, and readable by its owner
        only. Nothing is ever overwritten.
        """
        target = absolute_path(to)
        link = self._pool.acquire()
        try:
            with atomic_create(target) as draft, closing(connect_sqlite(draft)) as database:
                link.connection.backup(database)
                database.execute(
                    "INSERT OR REPLACE INTO kept (book, name, value) SELECT id, ?, ? FROM book",
                    (COPY, b"1"),
                )
                _empty_log(database)
        except sqlite3.Error as error:
            raise translate_sqlite_error(error, target) from None
        finally:
            self._pool.release(link)


def _look(path: Path) -> tuple[int, int]:
    """Return which file this is. Nobody but SQLite may open it: see ``SqliteConnection``."""
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
