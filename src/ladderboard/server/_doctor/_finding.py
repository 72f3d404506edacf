"""The result of a check, and the permissions of files."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Finding(NamedTuple):
    """The result of one check: its subject, state and message, and a remedy if one is needed."""

    subject: str
    state: Literal["ok", "note", "problem"]
    message: str
    remedy: str | None = None

    def describe(self) -> dict[str, str | None]:
        """Return the finding as ``ladderboard doctor --json`` prints it."""
        return {
            "about": self.subject,
            "state": self.state,
            "said": self.message,
            "do": self.remedy,
        }


def ok(subject: str, message: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(subject, "ok", message)


def note(subject: str, message: str, remedy: str | None = None) -> Finding:
    """Return a finding that may need action."""
    return Finding(subject, "note", message, remedy)


def problem(subject: str, message: str, remedy: str) -> Finding:
    """Return a finding that needs action, with its remedy."""
    return Finding(subject, "problem", message, remedy)


def may_write(path: Path) -> bool:
    """Tell whether this user may write a file or folder; False on a read-only disk."""
    supported = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=supported)


def other_readers(path: Path) -> str:
    """Return who else may read or write a file: ``"anybody"``, ``"its group"`` or ``""``."""
    if os.name != "posix":
        return ""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return "anybody"
    return "its group" if mode & (stat.S_IRGRP | stat.S_IWGRP) else ""
