"""Files and folders: who may read and write them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["may_write", "others"]


def may_write(path: Path) -> bool:
    """Tell whether we may write to a file or a folder; nobody may where the disk is read-only."""
    own = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=own)


def others(path: Path) -> str:
    """Return who else may read or write a file: ``anybody``, ``its group``, or nobody as ``""``."""
    if os.name != "posix":
        return ""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return "anybody"
    return "its group" if mode & (stat.S_IRGRP | stat.S_IWGRP) else ""
