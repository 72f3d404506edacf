"""A storage in one SQLite file."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import stat
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from ladderboard._atomic_file import absolute_path, atomic_create
from ladderboard.errors import DiskFull, InvalidState, LadderboardError, ReadOnly, StorageFailed
from ladderboard.ledger._storage._pool import (
    WRITER_TIMEOUT,
    Connection,
    SqlitePool,
    combine_deferred,
    leak_reference,
)
from ladderboard.ledger._storage._schema import (
    TABLE_NAMES,
    create_tables,
    latest_format,
    migrate,
    refuse_unknown_format,
)
from ladderboard.ledger._storage._sql import COPY, Storage

SQLITE_APPLICATION_ID = 0x4C424F41  # "LBOA", to recognise the file

_SETTINGS = (
    "PRAGMA trusted_schema = OFF",  # a file from elsewhere must not run code
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # for macOS, where fsync alone does not reach the disk
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA wal_autocheckpoint = 8000",  # pages; submissions with files fill the log quickly
)
_SELECT_BOOK = "SELECT id FROM main.book WHERE name = ?"
_REPLACED_CHECK_INTERVAL = 0.02  # seconds; a check, which is of the disk too, costs 10 us
_LONG_WAL = 64 * 2**20  # bytes of a write-ahead log that readers keep from being restarted
_COMMITS_PER_WAL_CHECK = 256  # commits between two checks of its length
_COMMITS_PER_LOG_EXTENSION = 4  # commits between two looks whether the log has to be extended
_EXTENSION = 2**20  # bytes by which it is extended; larger writes wait for the disk by themselves
_EXTENDED_SIZES = range(2**18, 2**25)  # of logs that are: not for a few commits; checkpoints follow
_LOW_DISK = 2**28  # free bytes on a disk that is nearly full
_SECONDS_FOR_READERS = 5.0  # that a rewrite of the file waits for
_SMALL_WAL = 2**20  # bytes of a write-ahead log that may stay on such a disk
_READ_ONLY_REASON = "it is read-only"
_LOCKED_REASON = (
    f"the database is locked by another process (timed out after {WRITER_TIMEOUT:.0f} s)"
)
_REASONS = {
    sqlite3.SQLITE_BUSY: _LOCKED_REASON,
    sqlite3.SQLITE_LOCKED: _LOCKED_REASON,
    sqlite3.SQLITE_READONLY: _READ_ONLY_REASON,
    sqlite3.SQLITE_PERM: "it may not be opened by this user",
    sqlite3.SQLITE_CANTOPEN: "it, or a file beside it, cannot be opened or created",
    sqlite3.SQLITE_FULL: (
        "the disk is full. Free at least 64 MB for this file and its write-ahead log"
    ),
    sqlite3.SQLITE_IOERR: "the disk could not be read or written",
    sqlite3.SQLITE_TOOBIG: "a value is too large",
}
_ERROR_TYPES = {sqlite3.SQLITE_FULL: DiskFull, sqlite3.SQLITE_READONLY: ReadOnly}
# After these errors a commit has not happened: there was no lock, or no space in the log.
_NOT_COMMITTED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL}
_UNUSABLE_FILES: set[tuple[int, int]] = set()  # files whose locks a fork has confused
_PAGE_BYTES = 4096
_FRAME_BYTES = 24 + _PAGE_BYTES  # a page in the log, with its header
_TYPE_NAMES = {
    "blob": "BLOB",
    "whole": "INTEGER",
    "prefix": "main.",  # of an index's name
    "on": "",  # of the name of its table
    "real": "REAL",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "tail": " WITHOUT ROWID",  # one page less to write for every row
}


def connect_sqlite(path: Path) -> sqlite3.Connection:
    """Open an existing file, for use from any thread.

    SQLite creates files beside the database even to read it, so one on a read-only disk is opened
    as immutable, unless it has a write-ahead log that must be read.
    """
    immutable = _is_on_read_only_disk(path) and not _companion_size(path, "-wal")
    uri = f"file:{quote(os.fsencode(path))}?{'immutable=1' if immutable else 'mode=rw'}"
    return sqlite3.connect(
        uri, uri=True, timeout=WRITER_TIMEOUT, isolation_level=None, check_same_thread=False
    )


def translate_sqlite_error(
    error: sqlite3.Error, path: Path, *, uncertain: bool = False
) -> LadderboardError:
    """Return the exception to raise for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_NOTADB and not uncertain:
        return InvalidState(f"{path} is not a file of Ladderboard.")
    if not uncertain and (primary == sqlite3.SQLITE_CORRUPT or "decode" in str(error)):
        return InvalidState(f"{path} is damaged: SQLite cannot read it.")
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # no space for a file beside it
        primary = sqlite3.SQLITE_FULL
    reason = _REASONS.get(primary, str(error)) if primary is not None else str(error)
    kind = _ERROR_TYPES.get(primary, StorageFailed) if primary is not None else StorageFailed
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}:
        if _is_on_read_only_disk(path):
            reason, kind = "its disk is read-only", ReadOnly
        elif primary != sqlite3.SQLITE_IOERR:
            reason = _find_unwritable_companion(path) or reason
    if uncertain:
        reason, kind = (
            f"{reason}; the last change may or may not have been committed",
            StorageFailed,
        )
    return kind(f"{path} cannot be used: {reason}.", uncertain=uncertain)


def _is_on_read_only_disk(path: Path) -> bool:
    if not hasattr(os, "statvfs"):  # Windows
        return False
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _companion_size(path: Path, end: str) -> int:
    """Return the size of a file beside this one; 0 if there is none."""
    return _file_size(f"{path}{end}")


def _file_size(name: str) -> int:
    """Return the size of a file; 0 if there is none."""
    try:
        return os.stat(name).st_size  # noqa: PTH116 - a path object costs more than the call
    except OSError:
        return 0


def _free_bytes(path: Path) -> float:
    """Return how many bytes are free on a file's disk; infinity if that is not known."""
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return math.inf


def _find_unwritable_companion(path: Path) -> str | None:
    """Return what is wrong with the -wal or -shm file of a writable file; None if nothing."""
    if not _writable(path):
        return None
    log, memory = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if os.path.lexists(log) and not _writable(log):
        return f"{log}, which belongs to it, cannot be written by this user"
    if os.path.lexists(memory) and not _writable(memory):  # everything in it is also in the log
        return (
            f"{memory} was left over and cannot be written by this user; remove it while no "
            "process uses the file"
        )
    return None


def _writable(path: Path) -> bool:
    """Return whether this is a writable file, without opening it: see ``SqliteConnection``."""
    effective_ids = os.access in os.supports_effective_ids
    return path.is_file() and os.access(path, os.R_OK | os.W_OK, effective_ids=effective_ids)


def mark_unusable(file_id: tuple[int, int]) -> None:
    """Refuse all further connections to a file in this process."""
    _UNUSABLE_FILES.add(file_id)


class SqliteConnection(Connection):
    """A connection in WAL mode with full synchronous commits.

    Only SQLite may open the file, even to inspect it: closing a file releases all locks of the
    process on it, also those of other connections.
    """

    connection: sqlite3.Connection
    detects_commits = True

    def __init__(self, path: Path, file_id: tuple[int, int], numbers: dict[str, int]) -> None:
        self._path = path
        self._wal = f"{path}-wal"
        self._version = latest_format()
        self._replaced_check_time = monotonic()
        self._checks_disk = True  # False for a moment after the disk was found to have room
        self._file_id = file_id
        self._refuse_replaced()
        if file_id in _UNUSABLE_FILES:
            raise StorageFailed(
                f"{path} cannot be used in this process: it was forked inside a block that changes "
                "or reads the file. Fork outside of blocks, or start processes with 'spawn'."
            )
        self._book_ids = numbers  # by name; a number is never reused
        self._commits = 0
        self._pinned_wal = 0  # bytes of the log that readers keep from being truncated
        self._extended_wal = 0  # bytes of the log after it was last extended
        super().__init__(None)
        self._open()
        self._restart_long_wal()

    def _open(self) -> None:
        path = self._path
        self._data_version: int | None = None
        self.known_states.clear()
        self._read_only = not _writable(path)
        try:
            self.connection = connect_sqlite(path)
            self._cursor = self.connection.cursor()  # shared: creating one takes time
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
        """Check that the file is one of Ladderboard's before anything is written, and set it up."""
        if self.connection.execute("PRAGMA application_id").fetchone()[0] != SQLITE_APPLICATION_ID:
            raise InvalidState(f"{self._path} is not a file of Ladderboard.")
        if self._read_only:
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
        self._run_deferred()
        return self.query_prefetched(statement, values)

    def query_prefetched(
        self, statement: str, values: tuple[Any, ...] = ()
    ) -> list[tuple[Any, ...]]:
        """Return rows that this transaction has not changed, also by what is deferred."""
        try:
            return self._cursor.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._break()
            raise translate_sqlite_error(error, self._path) from None

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""
        self._run_deferred()
        try:
            return self._cursor.execute(statement, values).rowcount
        except sqlite3.Error as error:
            self._break()
            raise translate_sqlite_error(error, self._path) from None

    def drop_prefetched(self) -> None:
        """Let the next rows be read as they are after the deferred statements."""
        self._run_deferred()

    def _run_deferred(self) -> None:
        if not self._deferred:
            return
        deferred, self._deferred = combine_deferred(self._deferred), []
        run = self._cursor.execute
        try:
            for statement, values, none_changed, rows in deferred:
                changed = run(statement, values).rowcount
                if changed < rows and none_changed is not None:
                    self._break()  # others may have been run: nothing of this may be committed
                    raise InvalidState(none_changed)
        except sqlite3.Error as error:
            self._break()
            raise translate_sqlite_error(error, self._path) from None

    def begin(self, *, write: bool) -> None:
        """Begin a transaction; refuse a file that was replaced or migrated since it was opened."""
        self._check_file(write=write)
        try:
            if not write:
                self._cursor.execute("BEGIN")
                return
            if self._checks_disk:
                self._truncate_wal_on_low_disk()
            self._cursor.execute("BEGIN IMMEDIATE")
            # It changes with every commit of another connection, here or in another process.
            data_version = self._cursor.execute("PRAGMA data_version").fetchall()[0][0]
            if data_version == self._data_version:
                return
            version = self._cursor.execute("PRAGMA user_version").fetchall()[0][0]
        except sqlite3.Error as error:
            self._break()
            raise translate_sqlite_error(error, self._path) from None
        if version != self._version:
            self._break()
            refuse_unknown_format(version, self._path)
            raise InvalidState(f"{self._path} is in format {version} now; open it again.")
        self._data_version = data_version
        self.known_states.clear()

    def begin_alone(self) -> None:
        """Check the file as ``begin`` does; statements then run on their own."""
        self._check_file(write=False)

    def _check_file(self, *, write: bool) -> None:
        now = monotonic()
        if now - self._replaced_check_time > _REPLACED_CHECK_INTERVAL:
            self._refuse_replaced()
            self._replaced_check_time, self._checks_disk = now, True
        if self._read_only:
            self._reopen_or_refuse_write(write=write)

    def _reopen_or_refuse_write(self, *, write: bool) -> None:
        """Reopen a file that has become writable; refuse to write to one that has not."""
        if _writable(self._path):
            self._break()
            self._open()
            self.broken = False
        elif write:
            disk = "its disk" if _is_on_read_only_disk(self._path) else "it"
            raise ReadOnly(f"{self._path} cannot be used: {disk} is read-only.")

    def _refuse_replaced(self) -> None:
        """Refuse a file that was replaced or removed: commits to it would be lost."""
        try:
            status = self._path.stat()
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._file_id:
            raise StorageFailed(
                f"{self._path} was moved, removed or replaced while it was in use. Put it back."
            )

    def find_book(self, name: str, *, write: bool, fresh: bool = False) -> int | None:
        """Return a book's number; a write transaction locks the whole file anyway."""
        number = self._book_ids.get(name)
        if number is None:
            rows = self.query(_SELECT_BOOK, (name,))
            if not rows:
                return None
            number = rows[0][0]
            if not fresh:
                self._book_ids[name] = number
        return number

    def check_before_write(self) -> None:
        """Do nothing: ``begin`` has checked the file."""

    def commit(self) -> None:
        """Commit; after most errors it is unknown whether the change is on the disk."""
        self._run_deferred()
        if not self._commits % _COMMITS_PER_LOG_EXTENSION:
            self._extend_wal()
        try:
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if primary != sqlite3.SQLITE_FULL:  # it rolls back, and reopening may need disk space
                self._break()
            raise translate_sqlite_error(
                error, self._path, uncertain=primary not in _NOT_COMMITTED
            ) from None
        self._commits += 1
        if not self._commits % _COMMITS_PER_WAL_CHECK:
            self._restart_long_wal()

    def rollback(self) -> None:
        """Roll back the transaction."""
        self._deferred = []
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._break()

    def abandon(self) -> None:
        """Leave the connection and the file to the parent process: see ``SqlitePool``."""
        leak_reference(self._cursor)
        super().abandon()
        mark_unusable(self._file_id)

    def poison(self) -> None:
        """Make every further statement fail."""
        super().poison()
        self._cursor = self.connection.cursor()

    def _break(self) -> None:
        database = self.connection
        self.poison()
        with suppress(sqlite3.Error):
            database.close()  # this rolls back

    def _extend_wal(self) -> None:
        """Extend the write-ahead log by zeros if SQLite has filled it; the caller may write.

        A commit that overwrites them is faster than one that makes the file grow, which waits for
        the file system's own journal, too. To SQLite, zeros are the end of the log. Only the
        connection with the write lock appends to it, so nothing else is written there meanwhile.
        """
        size = _file_size(self._wal)
        if size == self._extended_wal or size not in _EXTENDED_SIZES:
            return
        with suppress(OSError), Path(self._wal).open("r+b", buffering=0) as log:
            log.seek(-_FRAME_BYTES, os.SEEK_END)
            # No frame is all zeros. If these are, another connection has extended the log.
            if any(log.read(_FRAME_BYTES)) and _free_bytes(self._path) >= _LOW_DISK:
                log.write(bytes(_EXTENSION))
            self._extended_wal = log.tell()

    def _restart_long_wal(self) -> None:
        """Restart the write-ahead log if overlapping readers kept it growing.

        SQLite copies its pages into the file by itself, but restarts the log only when no reader
        uses it. New readers use the file once it has all pages, so this waits for old ones only.
        """
        if _file_size(self._wal) > _LONG_WAL:
            self._checkpoint("RESTART")

    def _truncate_wal_on_low_disk(self) -> None:
        """Truncate the write-ahead log if the disk is nearly full, since it would keep growing."""
        size = _file_size(self._wal)
        if size <= max(_SMALL_WAL, self._pinned_wal):
            return
        if _free_bytes(self._path) >= _LOW_DISK:
            self._checks_disk = False
            return
        self._checkpoint("TRUNCATE")
        remaining = _file_size(self._wal)
        self._pinned_wal = (
            remaining + _SMALL_WAL if remaining > _SMALL_WAL else 0
        )  # not again for every transaction

    def _checkpoint(self, mode: str, *, wait: float = 0.1) -> bool:
        """Copy the log's pages into the file, and return whether readers allowed it in time."""
        done = False
        with suppress(sqlite3.Error):
            self.connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
            done = not self.connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
        with suppress(sqlite3.Error):
            self.connection.execute(f"PRAGMA busy_timeout = {int(WRITER_TIMEOUT * 1000)}")
        return done

    def rewrite(self) -> bool:
        """Write the whole file anew and empty its log; return whether that was possible."""
        try:
            self.connection.execute("VACUUM")
        except sqlite3.Error:  # no space, or another process writes: the file is as it was
            return False
        return self._checkpoint("TRUNCATE", wait=_SECONDS_FOR_READERS)


class SqliteStorage(Storage):
    """Books in a file, safe for several threads and processes at once.

    A commit is on the disk before it is acknowledged: write-ahead log, full synchronous commits.
    Writers wait for each other, for at most a minute.

    Parameters
    ----------
    path
        The file.
    create
        Create a new file, readable by its owner only; refuse one that exists.

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

    _type_names = _TYPE_NAMES

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self.path = absolute_path(path)
        if create:
            self._create()
        numbers: dict[str, int] = {}
        file_id = _file_identity(self.path)
        make = partial(SqliteConnection, self.path, file_id, numbers)
        self._pool = SqlitePool(make, partial(mark_unusable, file_id))
        try:
            self._check()
        except BaseException:
            self._pool.close()
            raise

    def __reduce__(self) -> tuple[type[SqliteStorage], tuple[Path]]:
        """Pickle as a path."""
        return (SqliteStorage, (self.path,))

    def _create(self) -> None:
        with atomic_create(self.path) as draft:
            try:
                with closing(connect_sqlite(draft)) as database:
                    database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                    database.execute("PRAGMA journal_mode = WAL")
                    database.execute("BEGIN IMMEDIATE")
                    create_tables(database.execute, _TYPE_NAMES)
                    database.execute(f"PRAGMA application_id = {SQLITE_APPLICATION_ID}")
                    database.execute(f"PRAGMA user_version = {latest_format()}")
                    database.execute("COMMIT")
                    _checkpoint_everything(database)
            except sqlite3.Error as error:
                raise translate_sqlite_error(error, self.path) from None

    def _check(self) -> None:
        """Refuse a damaged file or a newer format, and migrate an old one."""
        connection = self._pool.acquire()
        try:
            version = connection.query("PRAGMA user_version")[0][0]
            refuse_unknown_format(version, self.path, self._copies(connection))
            if self.path.stat().st_size % _PAGE_BYTES and not _has_wal(self.path):
                raise InvalidState(f"{self.path} is damaged: its end is missing.")
            if version < latest_format():
                self._migrate(connection)
            schema_objects = {
                (row[0], row[1]) for row in connection.query("SELECT type, name FROM sqlite_schema")
            }
            if not {("table", name) for name in TABLE_NAMES} <= schema_objects or any(
                kind in {"trigger", "view"} for kind, _ in schema_objects
            ):
                raise InvalidState(f"{self.path} is damaged: its tables are not those of a ledger.")
        finally:
            self._pool.release(connection)

    def _migrate(self, connection: Any) -> None:
        """Copy the file, then migrate it, while no other process can write."""
        connection.query("BEGIN IMMEDIATE")
        try:
            version = connection.query("PRAGMA user_version")[0][0]
            if version < latest_format():
                self._copy_before_migration(connection, version)
                migrate(version, connection.query, _TYPE_NAMES)
                connection.query(f"PRAGMA user_version = {latest_format()}")
            connection.commit()
        except BaseException:
            connection.rollback()
            raise

    def _copy_before_migration(
        self, connection: Connection, version: int, module_name: str = ""
    ) -> None:
        copy = _unused_copy_path(
            self.path, f"{module_name}-{version}" if module_name else f"{version}"
        )
        try:
            self.backup(copy)
        except StorageFailed as error:
            raise StorageFailed(
                f"{self.path} has an older format and must be copied before it is upgraded, which "
                f"failed: {error} Nothing was changed."
            ) from None

    def _copies(self, connection: Connection, module_name: str = "") -> list[str]:
        prefix = (
            f"{self.path.name}.before-{module_name}-"
            if module_name
            else f"{self.path.name}.before-"
        )
        names = (path.name for path in self.path.parent.iterdir() if path.name.startswith(prefix))
        return [name for name in names if name[len(prefix) :].replace("-", "").isdigit()]

    def _tables(self, connection: Connection) -> set[str]:
        return {
            row[0]
            for row in connection.query("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }

    def erase_deleted(self, *, at_most: int | None = None) -> bool:
        """Remove what was deleted or overwritten from the file's free space and from its log.

        The file is written anew; others can read meanwhile, and wait to write. A file of more than
        ``at_most`` bytes is left alone. Returns whether all of it is gone.
        """
        if at_most is not None and self.path.stat().st_size > at_most:
            return False
        connection = self._pool.acquire()
        try:
            return connection.rewrite()
        finally:
            self._pool.release(connection)

    def backup(self, to: Path | str) -> None:
        """Copy the file while it is in use, and flag the books in the copy as copies.

        The copy is a consistent snapshot, made by SQLite's own backup and readable by its owner
        only. An existing file is never overwritten.
        """
        target = absolute_path(to)
        connection = self._pool.acquire()
        try:
            with atomic_create(target) as draft, closing(connect_sqlite(draft)) as database:
                connection.connection.backup(database)
                database.execute(
                    "INSERT OR REPLACE INTO kept (book, name, value) SELECT id, ?, ? FROM book",
                    (COPY, b"1"),
                )
                _checkpoint_everything(database)
        except sqlite3.Error as error:
            raise translate_sqlite_error(error, target) from None
        finally:
            self._pool.release(connection)


def _file_identity(path: Path) -> tuple[int, int]:
    """Return device and inode of a file. Only SQLite may open it: see ``SqliteConnection``."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidState(f"There is no file {path}.") from None
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidState(f"{path} is not a file.")
    return status.st_dev, status.st_ino


def _checkpoint_everything(database: sqlite3.Connection) -> None:
    """Copy the whole log into the file. Closing would do so, too, but without reporting errors."""
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _has_wal(path: Path) -> bool:
    """Return whether there is a write-ahead log, which may complete a half-written page."""
    return _companion_size(path, "-wal") > 0


def _unused_copy_path(path: Path, label: str) -> Path:
    """Return a free name for the copy made before a migration; an earlier one may exist."""
    name, count = path.with_name(f"{path.name}.before-{label}"), 1
    while os.path.lexists(name):
        count += 1
        name = path.with_name(f"{path.name}.before-{label}-{count}")
    return name
