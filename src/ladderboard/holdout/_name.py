"""The names of ladders."""

from __future__ import annotations

from typing import Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

__all__ = ["check_name"]

_LONGEST = 100


def check_name(name: Any) -> None:
    """Refuse what is no name for a ladder."""
    if not isinstance(name, str) or not name or len(name) > _LONGEST or not name.isprintable():
        raise InvalidSetting(
            f"A ladder's name is a printable text of 1 to {_LONGEST} characters; "
            f"got {_settings.shown(name)}."
        )
