"""Create a file that appears under its name only once it is complete."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard.errors import InvalidState, storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")  # of the files that SQLite writes beside a database


def absolute_path(path: Path | str) -> Path:
    """Return an absolute path without ``..``; links are not followed."""
    return Path(os.path.normpath(Path(path).absolute()))


@contextmanager
def atomic_create(path: Path) -> Iterator[Path]:
    """Yield an empty file to fill, readable by its owner only; it becomes ``path`` afterwards."""
    _refuse_existing(path)
    draft = path.with_name(f".ladderboard-{secrets.token_hex(8)}")
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


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise InvalidState(f"{path} exists already; open it, or choose another name.")
    for suffix in SQLITE_SUFFIXES:
        if os.path.lexists(f"{path}{suffix}"):  # SQLite would read it into the new file
            raise InvalidState(f"{path}{suffix} is left from another file; move it away first.")


def _create_empty(draft: Path) -> None:
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.fchmod(handle, 0o600)  # the umask may have cleared even the owner's bits
    finally:
        os.close(handle)


def _publish(draft: Path, path: Path) -> None:
    _sync(draft)
    try:
        os.link(draft, path)  # unlike a rename, it never replaces a file
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        draft.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
