"""Places: where one's own settings and receipts are kept, for nobody else to read."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["config_file", "make_folder", "receipts_folder"]


def config_file() -> Path:
    """Return where ``ladderboard login`` keeps tokens."""
    return _home("XDG_CONFIG_HOME", ".config") / "ladderboard" / "config.toml"


def receipts_folder() -> Path:
    """Return where receipts are kept unless another place is given."""
    return _home("XDG_STATE_HOME", ".local/state") / "ladderboard" / "receipts"


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are not there, for oneself alone."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


def _home(variable: str, otherwise: str) -> Path:
    told = os.environ.get(variable, "")
    # The standard wants whole paths, and others to be passed over.
    return Path(told) if Path(told).is_absolute() else Path.home() / otherwise
