"""``ladderboard settings`` and ``ladderboard doctor``: the configuration of a server."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ladderboard import server
from ladderboard._formatting import format_count
from ladderboard.cli._database import Config, require_server
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_err, echo_json, echo_table, wrap_lines

_Database = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The database; the one of the settings if left out."),
]
_KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The key file; the one of the settings if left out."),
]


def settings(
    *,
    config: Config = None,
    database: _Database = None,
    key_file: _KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List every setting of a server: its value, where the value comes from, and what it means.

    The command line takes precedence over the environment, the environment over the settings file,
    and the file over the default. Environment variables for other commands are listed below.
    Passwords and tokens are never shown.
    """
    require_server("settings")
    resolved = server.find_settings(config, {"database": database, "key_file": key_file})
    values = list(resolved.values.values())
    unknown = server.unknown_variables(os.environ)
    if as_json:
        echo_json(
            {
                "file": None if resolved.file is None else str(resolved.file),
                "settings": [_describe_setting(value) for value in values],
                "variables": [_describe_variable(variable) for variable in server.VARIABLES],
                "unknown": unknown,
            }
        )
        return
    no_file = "none; --config FILE or LADDERBOARD_CONFIG names one"
    echo(f"Settings file: {resolved.file or no_file}", "")
    rows: list[tuple[object, ...]]
    rows = [
        (value.setting.name, _format_setting(value), value.source, value.setting.meaning)
        for value in values
    ]
    echo_table(("setting", "value", "from", "meaning"), rows)
    echo("")
    rows = [
        (variable.name, _format_variable(variable), variable.meaning)
        for variable in server.VARIABLES
    ]
    echo_table(("variable", "value", "meaning"), rows)
    echo_err(*unknown)


def _describe_setting(value: "server.Value") -> dict[str, Any]:
    setting = value.setting
    return {
        "name": setting.name,
        "variable": setting.variable,
        "option": setting.option,
        "value": value.redacted,
        "hidden": value.hidden,
        "from": value.source,
        "default": setting.redacted(setting.default),
        "meaning": setting.meaning,
    }


def _describe_variable(variable: "server.Variable") -> dict[str, Any]:
    text = os.environ.get(variable.name)
    shown = None if variable.secret or not text else server.without_password(text)
    return {
        "name": variable.name,
        "set": bool(text),
        "value": shown,
        "meaning": variable.meaning,
    }


def _format_setting(value: "server.Value") -> str | None:
    if value.hidden and value.redacted is None:
        return "set, not shown"
    return server.format_value(value.redacted) or None


def _format_variable(variable: "server.Variable") -> str | None:
    text = os.environ.get(variable.name)
    if not text:
        return None
    return "set, not shown" if variable.secret else server.without_password(text)


def doctor(
    *,
    config: Config = None,
    database: _Database = None,
    key_file: _KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Check everything that a server needs, and say what to do about problems.

    Prints a line each for versions, settings, database, key file, disks and port: ok, note or
    problem. It changes nothing, so it can run beside a server. Exit codes: 0 no problem; 1 a
    problem.
    """
    require_server("doctor", needs="check_installation")
    checks = []
    for check in server.check_installation(config, database=database, key_file=key_file):
        checks.append(check)
        if not as_json:  # print each at once: a database that does not answer is slow
            first, indent = f"{check.state:<8} ", " " * 9
            echo(*wrap_lines(f"{check.subject}: {check.message}", indent=indent, first=first))
            echo(*([] if check.remedy is None else wrap_lines(check.remedy, indent=indent)))
    problems, notes = (
        sum(check.state == state for check in checks) for state in ("problem", "note")
    )
    if as_json:
        echo_json({"ok": not problems, "checks": [check.describe() for check in checks]})
    else:
        echo("", f"{_count(problems, 'problem')}, {_count(notes, 'note').lower()}.")
    if problems:
        raise typer.Exit(1)


def _count(number: int, noun: str) -> str:
    return format_count(number, noun) if number else f"No {noun}s"
