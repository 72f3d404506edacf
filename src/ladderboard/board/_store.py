"""Stores: where the submitted files are kept, in the database or in a folder.

A file is kept for good when the row that names its place is, and not otherwise. So each goes
through three steps: it is prepared before the transaction, committed in it, and abandoned if the
submission is refused after all. A crash between
them leaves files that :meth:`SubmissionStore.sweep` removes.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed, storage_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ladderboard.ledger import Storage

SWEEP_AFTER = 3600.0
_ID = re.compile("[0-9a-f]{8,128}")
_INSERT_UPLOAD = "INSERT INTO main.upload (id, body) VALUES (?, ?)"
_SELECT_UPLOAD = "SELECT body FROM main.upload WHERE id = ?"
_DELETE_UPLOAD = "DELETE FROM main.upload WHERE id = ?"
_INCOMING = "incoming"
_PLACE = re.compile("([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{8,128})")
_CHUNK_BYTES = 2**20
_MAX_DATABASE_BYTES = 2**20


class SqlView(Protocol):
    """A view of a book in a database that speaks SQL."""

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed."""


class PreparedFile(ABC):
    """A file on its way into a store; ``place`` is what the row must hold to find it again."""

    place: str

    @abstractmethod
    def commit(self, view: SqlView) -> None:
        """Do what belongs into the transaction of the row."""

    @abstractmethod
    def abandon(self) -> None:
        """Remove what was prepared; the row will not be. Never raises."""


class SubmissionStore(ABC):
    """Where submitted files are kept, by an id of hex digits."""

    @abstractmethod
    def prepare(self, id: str, body: bytes | Path) -> PreparedFile:  # noqa: A002 - what it is
        """Do what must be done before the transaction of the row begins."""

    @abstractmethod
    def get(self, place: str) -> BinaryIO:
        """Open a file that is kept, to be read and closed; ``InvalidState`` if it is not there."""

    @abstractmethod
    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Remove what a crash left, and return how many.

        ``known`` tells of a place whether a row names it. What is younger than ``older`` seconds
        is let be: its row may be on the way.
        """


def check_id(id: str) -> str:  # noqa: A002 - what it is
    """Return an id that can be part of a path.

    >>> check_id("../../etc/passwd")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: An id must be 8 to 128 hex digits; got '../../etc/passwd'.
    """
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise InvalidSetting(f"An id must be 8 to 128 hex digits; got {id!r:.80}.")
    return id


class DatabaseStore(SubmissionStore):
    """Files in the table ``upload`` of a database that holds boards; a place is an id.

    Parameters
    ----------
    storage
        The database; it must be one that speaks SQL.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def prepare(self, id: str, body: bytes | Path) -> PreparedFile:  # noqa: A002 - what it is
        """Take a file into memory: nothing is written before the transaction."""
        if isinstance(body, Path):
            try:
                body = body.read_bytes()
            except OSError as error:
                raise StorageFailed(f"A file cannot be read: {error.strerror}.") from None
        return _FileInMemory(check_id(id), body)

    def get(self, place: str) -> BinaryIO:
        """Read a file."""
        check_id(place)
        # Files belong to the database, a view to a book: any of them will do.
        for book in self._storage.books()[:1]:
            with self._storage.read_transaction(book) as view:
                rows = cast("SqlView", view).query(_SELECT_UPLOAD, (place,))
            if rows:
                return io.BytesIO(bytes(rows[0][0]))
        raise InvalidState(f"There is no file {place!r:.80} in the store.")

    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""
        check_id(place)
        for book in self._storage.books()[:1]:
            with self._storage.write_transaction(book) as view:
                cast("SqlView", view).execute(_DELETE_UPLOAD, (place,))

    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Nothing can be left: a file is there if its row is."""
        return 0


class _FileInMemory(PreparedFile):
    """A file in memory."""

    def __init__(self, id: str, body: bytes) -> None:  # noqa: A002 - what it is
        self.place = id
        self._body = body

    def commit(self, view: SqlView) -> None:
        """Write the file."""
        view.execute(_INSERT_UPLOAD, (self.place, self._body))

    def abandon(self) -> None:
        """Nothing was written."""


class FolderStore(SubmissionStore):
    """Files in folders by the first digits of their ids, all for the owner's eyes only.

    A file is written beside the others, made durable, and then gets its name, which is made durable
    too: under its name there is all of it or nothing.

    Parameters
    ----------
    path
        The folder; it is made if it is not there. Several machines may share it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = FolderStore(f"{folder.name}/submissions")
    >>> place = store.prepare("00c0ffee", b"id,prediction").place
    >>> place
    '00/c0/00c0ffee'
    >>> with store.get(place) as file:
    ...     file.read()
    b'id,prediction'
    >>> folder.cleanup()
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
        self._incoming = self.path / _INCOMING
        self._sync_calls = GroupedFolderSync()
        self._made_folders: set[Path] = set()
        with _report_disk_errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_folder(self._incoming)

    def prepare(self, id: str, body: bytes | Path) -> PreparedFile:  # noqa: A002 - what it is
        """Keep a file; it is durable when this returns."""
        place = f"{check_id(id)[:2]}/{id[2:4]}/{id}"
        target = self.path / place
        draft = self._incoming / f"{id}-{secrets.token_hex(8)}"
        try:
            with _report_disk_errors():
                _write_durably(draft, body)
                self._make_folder(target.parent.parent)
                self._make_folder(target.parent)
                draft.rename(target)
                self._sync_calls.sync(target.parent)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        return _FileInFolder(self, place)

    def get(self, place: str) -> BinaryIO:
        """Open a file."""
        try:
            return self._path_of(place).open("rb")
        except FileNotFoundError:
            raise InvalidState(f"There is no file {place!r:.80} in the store.") from None
        except OSError as error:
            raise StorageFailed(f"The store cannot be read: {error.strerror}.") from None

    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""
        with _report_disk_errors():
            self._path_of(place).unlink(missing_ok=True)

    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Remove drafts, and files that no row names."""
        before = time.time() - older
        count = 0
        with _report_disk_errors():
            for path in self._incoming.iterdir():
                count += _remove_if_old(path, before)
            for path in self.path.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*"):
                place = path.relative_to(self.path).as_posix()
                if _PLACE.fullmatch(place) and path.stat().st_mtime <= before:
                    count += not known(place) and _remove_if_old(path, before)
        return count

    def _path_of(self, place: str) -> Path:
        match = _PLACE.fullmatch(place)
        if match is None or not match[3].startswith(match[1] + match[2]):
            raise InvalidState(f"{place!r:.80} is no place in this store.")
        return self.path / place

    def _make_folder(self, path: Path) -> None:
        """Make a folder durably, if it is not there.

        Another process may have made it and not come to the rest: so once in every process.
        """
        if path in self._made_folders:
            return
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        self._sync_calls.sync(path.parent)
        self._made_folders.add(path)


class _FileInFolder(PreparedFile):
    """A file that is in its place."""

    def __init__(self, store: FolderStore, place: str) -> None:
        self._store = store
        self.place = place

    def commit(self, view: SqlView) -> None:
        """Nothing is left to do."""

    def abandon(self) -> None:
        """Remove the file; if this fails it is swept one day."""
        with suppress(StorageFailed):
            self._store.delete(self.place)


def _write_durably(draft: Path, body: bytes | Path) -> None:
    """Write a file that nobody else can read, and make it durable."""
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(handle, "wb", buffering=0) as file:  # noqa: PTH123 - it is open already
        os.fchmod(handle, 0o600)  # the umask may have taken even the owner's bits
        if isinstance(body, Path):
            with body.open("rb", buffering=0) as source:
                while part := source.read(_CHUNK_BYTES):
                    _write_all(handle, part)
        else:
            _write_all(handle, body)
        file.flush()
        os.fsync(handle)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _remove_if_old(path: Path, before: float) -> bool:
    """Remove a file that is old enough; tell whether it was."""
    with suppress(FileNotFoundError):
        if path.stat().st_mtime <= before:
            path.unlink()
            return True
    return False


@contextmanager
def _report_disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, f"{error.filename or 'The store'} cannot be used") from None


class MixedStore(SubmissionStore):
    """Files of up to a megabyte go into the transaction of their row, larger ones into a folder.

    To make a small file durable by itself takes longer than everything else about a submission;
    in the database it shares the commit of its row, and of the rows of others.

    Parameters
    ----------
    storage
        The database.
    path
        The folder; it is made if it is not there.
    """

    def __init__(self, storage: Storage, path: Path | str) -> None:
        self._small, self._large = DatabaseStore(storage), FolderStore(path)

    def prepare(self, id: str, body: bytes | Path) -> PreparedFile:  # noqa: A002 - what it is
        """Do what must be done before the transaction of the row begins."""
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        return (self._small if size <= _MAX_DATABASE_BYTES else self._large).prepare(id, body)

    def get(self, place: str) -> BinaryIO:
        """Open a file; only places in a folder have slashes."""
        return (self._large if "/" in place else self._small).get(place)

    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""
        (self._large if "/" in place else self._small).delete(place)

    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Remove what a crash left in the folder."""
        return self._large.sweep(known, older=older)


def sync_folder(path: Path) -> None:
    """Make durable which names a folder holds."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _PendingSync:
    """One call, and those who wait for it."""

    def __init__(self, before: threading.Event | None) -> None:
        self.before = before
        self.done = threading.Event()
        self.error: OSError | None = None


class GroupedFolderSync:
    """Syncs folders; a call serves everybody who came before it began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[Path, _PendingSync] = {}
        self._running: dict[Path, _PendingSync] = {}

    def sync(self, path: Path) -> None:
        """Return when a call that began after this one has ended."""
        with self._lock:
            turn = self._next.get(path)
            first = turn is None
            if turn is None:
                running = self._running.get(path)
                turn = self._next[path] = _PendingSync(None if running is None else running.done)
        if first:
            self._run(path, turn)
        else:
            turn.done.wait()
        if turn.error is not None:
            raise turn.error

    def _run(self, path: Path, turn: _PendingSync) -> None:
        """Wait for the call that is under way; who comes meanwhile takes part in this one."""
        if turn.before is not None:
            turn.before.wait()
        with self._lock:
            del self._next[path]
            self._running[path] = turn
        try:
            sync_folder(path)
        except OSError as error:
            turn.error = error
        finally:
            with self._lock:
                if self._running.get(path) is turn:
                    del self._running[path]
            turn.done.set()
