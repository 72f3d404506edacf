"""What an agent gives to a tool: read, or refused in words that it can act upon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files import refuse

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._folder import Folder

__all__ = ["MOST_VALUES", "predictions_of", "text_of"]

MOST_VALUES = 1_000_000
"""How many values may come in a call; more go into a file."""

_LONGEST_NAME = 500  # what a board takes for a message


def text_of(arguments: dict[str, Any], name: str) -> str:
    """Return an agent's own words, for itself to read again; empty if there are none."""
    text = arguments.get(name)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > _LONGEST_NAME:
        raise InvalidSetting(
            f"{name} must be a text of at most {_LONGEST_NAME} characters; "
            f"got {_settings.shown(text)}."
        )
    return "".join(each if each.isprintable() else " " for each in text).strip()


def predictions_of(arguments: dict[str, Any], folder: Folder | None) -> Any:
    """Return predictions as a guard takes them, from a list, columns, or a file in the folder."""
    values, path = arguments.get("predictions"), arguments.get("path")
    if path is not None and folder is None:
        raise InvalidSetting(
            "No folder was named to read files from; give the values themselves as predictions. "
            "Whoever starts ladderboard mcp can name one with --folder."
        )
    if (values is None) == (path is None):
        either = "predictions" if folder is None else "predictions or path, and one of them only"
        raise InvalidSetting(f"Give {either}.")
    if path is not None:
        if not isinstance(path, str):
            raise InvalidSetting(f"path must be a text; got {_settings.shown(path)}.")
        assert folder is not None  # noqa: S101 - it was looked at above
        return folder.read(path)
    values = _unwrapped(values)
    _check_values(values)
    return values


def _unwrapped(values: Any) -> Any:
    """Return a list that came as text, as agents like to write one."""
    if isinstance(values, str):
        try:
            return json.loads(values)
        except (ValueError, RecursionError):
            pass
    return values


def _check_values(values: Any) -> None:
    """Refuse what is too much for a call, and what is no list: a text would be read as a path."""
    columns = list(values.values()) if isinstance(values, dict) else [values]
    if not all(isinstance(each, list) for each in columns):
        refuse(
            InvalidPredictions,
            "format",
            "predictions must be a list with a value for each example, or an object of such lists "
            f"by column, such as id and prediction; got {_settings.shown(values)}.",
        )
    count = sum(len(row) if isinstance(row, list) else 1 for each in columns for row in each)
    if count > MOST_VALUES:
        refuse(
            InvalidPredictions,
            "too_many_rows",
            f"predictions in a call may have at most {MOST_VALUES:,} values; got {count:,}.",
        )
