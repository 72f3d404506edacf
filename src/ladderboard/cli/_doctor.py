"""``ladderboard settings`` and ``ladderboard doctor``: the configuration of a server."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.cli._database import Config
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_err, echo_json, echo_table, wrap_lines

if TYPE_CHECKING:
    from ladderboard.server import Value, Variable


def settings(*, config: Config = None, as_json: AsJson = False) -> None:
    """List every setting of a server: its value, where that comes from, and what it means.

    The command line counts before the environment, that before the settings file, and that before
    the default. Below are the variables that are for others than a server. Passwords and tokens
    are never shown.
    """
    from ladderboard.server import VARIABLES, find_settings, unknown_variables  # noqa: PLC0415

    found = find_settings(config)
    values = list(found.values.values())
    unknown = unknown_variables(os.environ)
    if as_json:
        echo_json(
            {
                "file": None if found.file is None else str(found.file),
                "settings": [_describe_setting(value) for value in values],
                "variables": [_describe_variable(variable) for variable in VARIABLES],
                "unknown": unknown,
            }
        )
        return
    echo(
        f"Settings file: {found.file or 'none; --config FILE or LADDERBOARD_CONFIG names one'}", ""
    )
    rows: list[tuple[object, ...]]
    rows = [
        (value.setting.name, _format_setting(value), value.source, value.setting.meaning)
        for value in values
    ]
    echo_table(("setting", "value", "from", "meaning"), rows)
    echo("")
    rows = [(variable.name, _format_variable(variable), variable.meaning) for variable in VARIABLES]
    echo_table(("variable", "value", "meaning"), rows)
    echo_err(*unknown)


def _describe_setting(each: "Value") -> dict[str, Any]:
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


def _describe_variable(each: "Variable") -> dict[str, Any]:
    given = os.environ.get(each.name)
    shown = None if each.secret or not given else _hide_password(given)
    return {"name": each.name, "set": bool(given), "value": shown, "meaning": each.meaning}


def _format_setting(each: "Value") -> str | None:
    if each.hidden and each.shown is None:
        return "set, not shown"
    return _format_value(each.shown) or None


def _format_value(value: Any) -> str:
    """Return a value as it is written in the file, without the quotes; none as nothing."""
    if isinstance(value, list):
        return ", ".join(map(_format_value, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


def _format_variable(each: "Variable") -> str | None:
    if not os.environ.get(each.name):
        return None
    return "set, not shown" if each.secret else _hide_password(os.environ[each.name])


def _hide_password(value: str) -> str:
    from ladderboard.server import without_password  # noqa: PLC0415 - the help first

    return without_password(value)


def doctor(
    *,
    config: Config = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The database; as the settings have it if left out."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The key file; as the settings have it if left out."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at everything that a server needs, and say what to do.

    Versions and extras, settings, database, key file, disks, clock, port and limits: one line each,
    ok, note or problem. It changes nothing, makes no database and brings none up to date, and may
    run beside a server. The exit code is 1 if there is a problem.
    """
    from ladderboard.server import check_installation  # noqa: PLC0415 - same

    found = []
    for each in check_installation(config, database=database, key_file=key_file):
        found.append(each)
        if not as_json:  # one after another: a database that does not answer takes its time
            first, indent = f"{each.state:<8} ", " " * 9
            echo(*wrap_lines(f"{each.about}: {each.said}", indent=indent, first=first))
            echo(*([] if each.do is None else wrap_lines(each.do, indent=indent)))
    problems, notes = (sum(each.state == state for each in found) for state in ("problem", "note"))
    if as_json:
        echo_json({"ok": not problems, "checks": [each._asdict() for each in found]})
    else:
        echo("", f"{_counted(problems, 'problem')}, {_counted(notes, 'note').lower()}.")
    if problems:
        raise typer.Exit(1)


def _counted(number: int, word: str) -> str:
    return f"{number or 'No'} {word}{'' if number == 1 else 's'}"
