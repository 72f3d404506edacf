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

BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps next to a file


def absolute_path(path: Path | str) -> Path:
    """Return an absolute path without ``..``; links are not followed."""
    return Path(os.path.normpath(Path(path).absolute()))


@contextmanager
def atomic_create(path: Path) -> Iterator[Path]:
    """Give an empty file to fill, readable by its owner only; ``path`` is its name afterwards."""
    _refuse_taken(path)
    draft = path.with_name(f".ladderboard-{secrets.token_hex(8)}")
    try:
        try:
            _make(draft)
            yield draft
            _publish(draft, path)
        except FileExistsError:
            raise InvalidState(f"{path} is there already; choose another name.") from None
        except OSError as error:
            raise storage_error(error, f"{path} cannot be made") from None
    finally:
        for end in ("", *BESIDE):
            with suppress(OSError):
                draft.with_name(draft.name + end).unlink()


def _refuse_taken(path: Path) -> None:
    if os.path.lexists(path):
        raise InvalidState(f"{path} is there already; open it, or choose another name.")
    for end in BESIDE:
        if os.path.lexists(f"{path}{end}"):  # SQLite would read it into the new file
            raise InvalidState(f"{path}{end} is left from another file; move it away first.")


def _make(draft: Path) -> None:
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.fchmod(handle, 0o600)  # the umask may have taken even the owner's bits
    finally:
        os.close(handle)


def _publish(draft: Path, path: Path) -> None:
    _sync(draft)
    try:
        os.link(draft, path)  # unlike a rename, it never replaces
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        draft.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
