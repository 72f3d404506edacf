"""``ladderboard settings``: what a server is set to, by whom, and what that means."""

import os
from typing import TYPE_CHECKING, Any

from ladderboard.cli._board_options import AsJson, Config
from ladderboard.cli._said import note, say, say_json
from ladderboard.cli._table import say_table

if TYPE_CHECKING:
    from ladderboard.server import Value, Variable

__all__ = ["settings"]


def settings(*, config: Config = None, as_json: AsJson = False) -> None:
    """List every setting of a server: its value, where that comes from, and what it means.

    The command line counts before the environment, that before the settings file, and that before
    the default. Below are the variables that are for others than a server. Passwords and tokens
    are never shown.
    """
    from ladderboard.server import VARIABLES, find_settings, strangers  # noqa: PLC0415

    found = find_settings(config)
    values = list(found.values.values())
    unknown = strangers(os.environ)
    if as_json:
        say_json(
            {
                "file": None if found.file is None else str(found.file),
                "settings": [_described(each) for each in values],
                "variables": [_variable(each) for each in VARIABLES],
                "unknown": unknown,
            }
        )
        return
    say(f"Settings file: {found.file or 'none; --config FILE or LADDERBOARD_CONFIG names one'}", "")
    rows: list[tuple[object, ...]]
    rows = [(each.setting.name, _shown(each), each.source, each.setting.meaning) for each in values]
    say_table(("setting", "value", "from", "meaning"), rows)
    say("")
    rows = [(each.name, _state(each), each.meaning) for each in VARIABLES]
    say_table(("variable", "value", "meaning"), rows)
    note(*unknown)


def _described(each: "Value") -> dict[str, Any]:
    setting = each.setting
    return {
        "name": setting.name,
        "variable": setting.variable,
        "option": setting.option,
        "value": each.shown,
        "hidden": each.hidden,
        "from": each.source,
        "default": setting.shown(setting.default),
        "meaning": setting.meaning,
    }


def _variable(each: "Variable") -> dict[str, Any]:
    given = os.environ.get(each.name)
    shown = None if each.secret or not given else _safe(given)
    return {"name": each.name, "set": bool(given), "value": shown, "meaning": each.meaning}


def _shown(each: "Value") -> str | None:
    if each.hidden and each.shown is None:
        return "set, not shown"
    return _told(each.shown) or None


def _told(value: Any) -> str:
    """Return a value as it is written in the file, without the quotes; none as nothing."""
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


def _state(each: "Variable") -> str | None:
    if not os.environ.get(each.name):
        return None
    return "set, not shown" if each.secret else _safe(os.environ[each.name])


def _safe(value: str) -> str:
    from ladderboard.server import without_password  # noqa: PLC0415 - the help first

    return without_password(value)
