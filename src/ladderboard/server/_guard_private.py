"""Privacy of files: what a guard keeps from others must not be open to them on the disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ladderboard.errors import InvalidSetting, StorageFailed

__all__ = ["check_private"]

_BESIDE = ("", "-wal", "-shm", "-journal", ".mark")


def check_private(
    file: Path | str, key_file: Path | str | None = None, token_file: Path | str | None = None
) -> None:
    """Refuse a guard's file, key or token that others than its owner can read or replace.

    All must belong to who runs this, or to root. A folder in which others can make files is
    refused, too: a log beside the file, made by them, would be read as the file's own. So is one
    further up in which they can put another folder in the place of ours; the sticky bit, as on
    /tmp, keeps them from that.
    """
    if os.name != "posix":
        return
    file = Path(file).absolute()
    paths = [file.with_name(file.name + each) for each in _BESIDE]
    paths += [Path(each).absolute() for each in (key_file, token_file) if each is not None]
    try:
        for path in paths:
            _check_file(path)
        for path in paths:
            # The way that was given, and where it leads: either may be made to lead elsewhere.
            for way in (path, Path(os.path.realpath(path))):
                for folder in way.parents:
                    _check_folder(folder, inmost=folder == way.parent)
    except OSError as error:
        raise StorageFailed(f"{error.filename} cannot be looked at: {error.strerror}.") from None


def _check_file(path: Path) -> None:
    if not os.path.lexists(path):
        return
    _check_owner(path)
    if path.exists() and path.stat().st_mode & 0o077:
        raise InvalidSetting(
            f"Others than its owner can open {path}, and would need no guard; close it: "
            f"chmod 600 {path}"
        )


def _check_folder(folder: Path, *, inmost: bool) -> None:
    if not folder.exists():
        return
    _check_owner(folder)
    mode = folder.stat().st_mode
    if not mode & 0o022:
        return
    if inmost:
        raise InvalidSetting(
            f"Others can put files into {folder}; keep a guard in a folder of its own: "
            f"chmod go-w {folder}"
        )
    if not mode & stat.S_ISVTX:
        raise InvalidSetting(
            f"Others can replace what is in {folder}, and with it the guard; keep it elsewhere, "
            f"or: chmod go-w {folder}"
        )


def _check_owner(path: Path) -> None:
    """Refuse what belongs to somebody else, be it a link or what the link leads to."""
    for found in (path.lstat(), *([path.stat()] if path.exists() else [])):
        if found.st_uid not in {0, os.geteuid()}:
            raise InvalidSetting(
                f"{path} belongs to another user, number {found.st_uid}, who could open or replace "
                "what the guard keeps; it must belong to who serves it, or to root."
            )
