"""Disks: whether there is room on those that are written to."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from ladderboard.server._doctor._finding import Finding, note, ok, problem

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check_disk", "size_of"]

_LITTLE, _NEXT_TO_NOTHING = 1 << 30, 100 << 20


def check_disk(about: str, folder: Path, need: int = 0) -> Finding:
    """Look at the disk that a folder is on; ``need`` is what a copy of all that is there takes."""
    while not folder.exists():  # it is made when it is wanted
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
        files = _files(folder)
    except OSError as error:
        said = f"{folder} cannot be looked at: {error.strerror}."
        return problem(about, said, "See that the disk is mounted.")
    said = f"{_shown(free)} are free where {folder} is"
    do = "Make room, or move it to a larger disk."
    if files == 0:
        return problem(about, f"No more files can be made where {folder} is.", do)
    if free < _NEXT_TO_NOTHING:
        need_now = (
            "the write-ahead log of an SQLite file takes up to 64 MB, a submission up to 100 MB"
        )
        return problem(about, f"{said}; {need_now}.", do)
    if free < need:
        return note(about, f"{said}, and {_shown(need)} are in use: a copy has no room.", do)
    if free < _LITTLE:
        return note(about, f"{said}; below 512 MiB large submissions are refused.", do)
    return ok(about, f"{said}.")


def size_of(database: Path) -> int:
    """Return how much a database takes, with the larger submissions beside it."""
    sizes = [database.stat().st_size] if database.is_file() else []
    kept = database.with_name(f"{database.name}.submissions")
    for folder, _, names in os.walk(kept):
        for name in names:
            try:
                sizes.append(os.lstat(os.path.join(folder, name)).st_size)  # noqa: PTH118
            except OSError:  # it went while we looked
                continue
    return sum(sizes)


def _files(folder: Path) -> int:
    """Return how many files can still be made; -1 where the disk does not count them."""
    if not hasattr(os, "statvfs"):
        return -1
    found = os.statvfs(folder)
    return found.f_favail if found.f_files else -1


def _shown(size: float) -> str:
    """Return a size for people.

    >>> _shown(5 * 2**30), _shown(12345678)
    ('5.0 GiB', '11.8 MiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "bytes" else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
