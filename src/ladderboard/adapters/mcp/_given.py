"""What an agent gives to a tool: read, or refused in words that it can act upon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, InvalidSetting, Problem

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._folder import Folder

__all__ = ["MOST_VALUES", "check_known", "predictions_of", "text_of"]

MOST_VALUES = 1_000_000
"""How many values may come in a call; more go into a file."""

_LONGEST_NAME = 500  # what a board takes for a message
_SCALARS = (str, int, float, bool, type(None))


def check_known(tool: str, arguments: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse arguments that a tool does not have: they would else be left out silently."""
    for name in arguments:
        # Agents try a path whether there is a folder or not; what to do is said further on.
        if name not in known and not (name == "path" and "predictions" in known):
            there_is = ", ".join(known) or "none"
            raise InvalidSetting(
                f"{tool} has no argument {_settings.shown(name)}; there is {there_is}."
            )


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
    """Refuse what is no vector, no matrix and no columns, and what is too much for a call."""
    columns = list(values.values()) if isinstance(values, dict) else [values]
    if not all(isinstance(each, list) for each in columns) or not any(columns):
        raise _refusal(
            "format",
            "predictions must be a list with a value for each example, or an object of such lists "
            f"by column, such as id and prediction; got {_settings.shown(values)}.",
        )
    count = sum(map(_count, columns))
    if count > MOST_VALUES:
        raise _refusal(
            "too_many_rows",
            f"predictions in a call may have at most {MOST_VALUES:,} values; got {count:,}.",
        )


def _count(column: list[Any]) -> int:
    """Return how many values there are in a column, or in rows; refuse what goes deeper."""
    rows = [each for each in column if isinstance(each, list)]
    flat = [each for each in column if not isinstance(each, list)]
    for row in (flat, *rows):
        for each in row:
            if not isinstance(each, _SCALARS):
                raise _refusal(
                    "wrong_type",
                    "A prediction must be a number or a text, or a list of those; "
                    f"got {_settings.shown(each)}.",
                )
    return len(flat) + sum(map(len, rows))


def _refusal(code: str, message: str) -> InvalidPredictions:
    return InvalidPredictions(message, problems=(Problem(code, None, 1, (), message),))
