"""Stores for submitted files, in the database or in a folder.

A file is stored for good if and only if the row that names its location is committed. So each file
is prepared before the transaction, committed in it, and abandoned if the submission is refused. A
crash in between leaves files that :meth:`SubmissionStore.sweep` removes.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ladderboard._atomic_file import absolute_path, sync_path
from ladderboard.board._repository import delete_upload, insert_upload, read_upload
from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed, storage_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ladderboard.board._repository import Statement
    from ladderboard.ledger import Storage, TableView

SWEEP_AFTER = 3600.0
_ID = re.compile("[0-9a-f]{8,128}")
_INCOMING = "incoming"
_LOCATION = re.compile("([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{8,128})")
_CHUNK_BYTES = 2**20
_MAX_DATABASE_BYTES = 2**20


class PreparedFile(ABC):
    """A file on its way into a store; its row must record the ``location``."""

    location: str

    statements: Sequence[Statement] = ()
    """What stores the file, inside the transaction of its row."""

    def commit(self, view: TableView) -> None:
        """Store the file, inside the transaction of its row."""
        if self.statements:
            view.execute_all(self.statements)

    @abstractmethod
    def abandon(self) -> None:
        """Remove the prepared file, because its row will not be committed. Never raises."""


class SubmissionStore(ABC):
    """Stores submitted files by ids of hex digits."""

    @abstractmethod
    def prepare(self, file_id: str, body: bytes | Path) -> PreparedFile:
        """Prepare a file before the transaction of its row begins."""

    @abstractmethod
    def get(self, location: str) -> BinaryIO:
        """Open a stored file for reading; ``InvalidState`` if there is none."""

    @abstractmethod
    def delete(self, location: str) -> None:
        """Remove a file if it exists."""

    @abstractmethod
    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Remove files that a crash left, and return how many.

        ``known`` returns whether a row names a location. Files younger than ``older`` seconds stay,
        because their rows may not be committed yet.
        """


def check_id(file_id: str) -> str:
    """Return an id that is safe as part of a path, or refuse it.

    >>> check_id("../../etc/passwd")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: An id must be 8 to 128 hex digits; got '../../etc/passwd'.
    """
    if not isinstance(file_id, str) or not _ID.fullmatch(file_id):
        raise InvalidSetting(f"An id must be 8 to 128 hex digits; got {file_id!r:.80}.")
    return file_id


class DatabaseStore(SubmissionStore):
    """Files in the table ``upload`` of a database that holds boards; a location is an id.

    Parameters
    ----------
    storage
        The database; it must be an SQL database.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def prepare(self, file_id: str, body: bytes | Path) -> PreparedFile:
        """Hold a file in memory; it is written in the transaction."""
        if isinstance(body, Path):
            try:
                body = body.read_bytes()
            except OSError as error:
                raise StorageFailed(f"A file cannot be read: {error.strerror}.") from None
        return _FileInMemory(check_id(file_id), body)

    def get(self, location: str) -> BinaryIO:
        """Read a file."""
        check_id(location)
        with self._storage.read_tables() as view:
            body = read_upload(view, location)
        if body is None:
            raise InvalidState(f"There is no file {location!r:.80} in the store.")
        return io.BytesIO(body)

    def delete(self, location: str) -> None:
        """Remove a file if it exists."""
        check_id(location)
        with self._storage.write_tables() as view:
            delete_upload(view, location)

    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Return 0: the database removes uncommitted files itself."""
        return 0


class _FileInMemory(PreparedFile):
    """A prepared file in memory."""

    def __init__(self, file_id: str, body: bytes) -> None:
        self.location = file_id
        self.statements = (insert_upload(file_id, body),)

    def abandon(self) -> None:
        """Do nothing: nothing was written."""


class FolderStore(SubmissionStore):
    """Files in a folder, readable by their owner only.

    A file is written under a temporary name, synced, renamed, and the folder is synced: a file
    under its final name is complete.

    Parameters
    ----------
    path
        The folder; created if missing. Several machines may share it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = FolderStore(f"{folder.name}/submissions")
    >>> location = store.prepare("00c0ffee", b"id,prediction").location
    >>> location
    '00/c0/00c0ffee'
    >>> with store.get(location) as file:
    ...     file.read()
    b'id,prediction'
    >>> folder.cleanup()
    """

    def __init__(self, path: Path | str) -> None:
        self.path = absolute_path(path)
        self._incoming = self.path / _INCOMING
        self._made_folders: set[Path] = set()
        with _report_disk_errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_folder(self._incoming)

    def prepare(self, file_id: str, body: bytes | Path) -> PreparedFile:
        """Store a file; it is durable when this returns."""
        location = f"{check_id(file_id)[:2]}/{file_id[2:4]}/{file_id}"
        target = self.path / location
        draft = self._incoming / f"{file_id}-{secrets.token_hex(8)}"
        try:
            with _report_disk_errors():
                _write_durably(draft, body)
                self._make_folder(target.parent.parent)
                self._make_folder(target.parent)
                draft.rename(target)
                sync_path(target.parent)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        return _FileInFolder(self, location)

    def get(self, location: str) -> BinaryIO:
        """Open a file."""
        try:
            return self._path_of(location).open("rb")
        except FileNotFoundError:
            raise InvalidState(f"There is no file {location!r:.80} in the store.") from None
        except OSError as error:
            raise StorageFailed(f"The store cannot be read: {error.strerror}.") from None

    def delete(self, location: str) -> None:
        """Remove a file if it exists."""
        with _report_disk_errors():
            self._path_of(location).unlink(missing_ok=True)

    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Remove temporary files, and files that no row names."""
        cutoff = time.time() - older
        count = 0
        with _report_disk_errors():
            for path in self._incoming.iterdir():
                count += _remove_if_old(path, cutoff)
            for path in self.path.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*"):
                location = path.relative_to(self.path).as_posix()
                if _LOCATION.fullmatch(location) and path.stat().st_mtime <= cutoff:
                    count += not known(location) and _remove_if_old(path, cutoff)
        return count

    def _path_of(self, location: str) -> Path:
        match = _LOCATION.fullmatch(location)
        if match is None or not match[3].startswith(match[1] + match[2]):
            raise InvalidState(f"{location!r:.80} is not a location in this store.")
        return self.path / location

    def _make_folder(self, path: Path) -> None:
        """Create a folder durably if it is missing.

        Another process may have created it without syncing, so each process syncs once.
        """
        if path in self._made_folders:
            return
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        sync_path(path.parent)
        self._made_folders.add(path)


class _FileInFolder(PreparedFile):
    """A file that is stored in the folder already, without a statement."""

    def __init__(self, store: FolderStore, location: str) -> None:
        self._store = store
        self.location = location

    def abandon(self) -> None:
        """Remove the file; if this fails, a later sweep removes it."""
        with suppress(StorageFailed):
            self._store.delete(self.location)


def _write_durably(draft: Path, body: bytes | Path) -> None:
    """Write a file that only its owner can read, and sync it."""
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb", buffering=0) as file:
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


def _remove_if_old(path: Path, cutoff: float) -> bool:
    """Remove a file if it is old enough; return whether it was."""
    with suppress(FileNotFoundError):
        if path.stat().st_mtime <= cutoff:
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

    Syncing a small file by itself takes longer than the rest of a submission; in the database it
    shares the commit of its row.

    Parameters
    ----------
    storage
        The database.
    path
        The folder; created if missing.
    """

    def __init__(self, storage: Storage, path: Path | str) -> None:
        self._small, self._large = DatabaseStore(storage), FolderStore(path)

    def prepare(self, file_id: str, body: bytes | Path) -> PreparedFile:
        """Prepare a file before the transaction of its row begins."""
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        return (self._small if size <= _MAX_DATABASE_BYTES else self._large).prepare(file_id, body)

    def get(self, location: str) -> BinaryIO:
        """Open a stored file; only places in the folder have slashes."""
        return (self._large if "/" in location else self._small).get(location)

    def delete(self, location: str) -> None:
        """Remove a file if it exists."""
        (self._large if "/" in location else self._small).delete(location)

    def sweep(self, known: Callable[[str], bool], *, older: float = SWEEP_AFTER) -> int:
        """Remove files that a crash left in the folder."""
        return self._large.sweep(known, older=older)
