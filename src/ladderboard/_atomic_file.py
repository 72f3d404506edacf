"""Files that appear under their names only once they are complete, or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed, storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")  # of the files that SQLite writes beside a database


def absolute_path(path: Path | str) -> Path:
    """Return an absolute path, without ``..`` unless a link before it leads elsewhere."""
    plain = Path(path).absolute()
    normal = os.path.normpath(plain)
    return Path(normal) if os.path.realpath(normal) == os.path.realpath(plain) else plain


@contextmanager
def atomic_create(path: Path) -> Iterator[Path]:
    """Yield an empty file to fill, readable by its owner only; it becomes ``path`` afterwards."""
    _refuse_existing(path)
    draft = _draft_path(path)
    try:
        try:
            _create_empty(draft)
            yield draft
            _publish(draft, path)
        except FileExistsError:
            raise InvalidState(f"{path} exists already; choose another name.") from None
        except OSError as error:
            raise storage_error(error, f"{path} cannot be created") from None
    finally:
        for suffix in ("", *SQLITE_SUFFIXES):
            with suppress(OSError):
                draft.with_name(draft.name + suffix).unlink()


def atomic_write(path: Path, content: bytes, *, replace: bool = True, private: bool = True) -> None:
    """Write a file, which appears complete and on the disk, or raise ``OSError``.

    Parameters
    ----------
    replace
        Replace an existing file; without it, one raises ``FileExistsError``.
    private
        Let only the owner read the file; without it, the umask decides.
    """
    draft = _draft_path(path)
    try:
        _create_empty(draft, private=private)
        draft.write_bytes(content)
        if replace:
            sync_path(draft)
            draft.replace(path)
            sync_path(path.parent)
        else:
            _publish(draft, path)
    finally:
        with suppress(OSError):
            draft.unlink()


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file to write to; after an error it is removed: a part would look complete."""
    try:
        file = path.open("xb")
    except FileExistsError:
        raise InvalidSetting(f"{path} exists already; choose another name.") from None
    except OSError as error:
        raise StorageFailed(f"{path} cannot be written: {error.strerror}.") from None
    try:
        with file:
            yield file
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StorageFailed(f"{path} cannot be written: {error.strerror}.") from None
        raise


def sync_path(path: Path) -> None:
    """Wait until a file, or the names of the files in a folder, are on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _draft_path(path: Path) -> Path:
    return path.with_name(f".ladderboard-{os.urandom(8).hex()}")


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise InvalidState(f"{path} exists already; open it, or choose another name.")
    for suffix in SQLITE_SUFFIXES:
        if os.path.lexists(f"{path}{suffix}"):  # SQLite would read it into the new file
            raise InvalidState(f"{path}{suffix} is left from another file; move it away first.")


def _create_empty(draft: Path, *, private: bool = True) -> None:
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600 if private else 0o666)
    try:
        if private and hasattr(os, "fchmod"):  # not on Windows
            os.fchmod(handle, 0o600)  # the umask may have cleared even the owner's bits
    finally:
        os.close(handle)


def _publish(draft: Path, path: Path) -> None:
    sync_path(draft)
    try:
        os.link(draft, path)  # unlike a rename, it never replaces a file
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        draft.replace(path)
    sync_path(path.parent)
