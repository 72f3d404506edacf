"""``ladderboard doctor``: whether all that a server needs is well, and what to do if not."""

from pathlib import Path
from typing import Annotated

import typer

from ladderboard.cli._board_options import AsJson, Config
from ladderboard.cli._said import say, say_json

__all__ = ["doctor"]


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
    from ladderboard.cli._guard_words import wrapped  # noqa: PLC0415 - the help must not wait
    from ladderboard.server import examine  # noqa: PLC0415 - same

    found = []
    for each in examine(config, database=database, key_file=key_file):
        found.append(each)
        if not as_json:  # one after another: a database that does not answer takes its time
            first, indent = f"{each.state:<8} ", " " * 9
            say(*wrapped(f"{each.about}: {each.said}", indent=indent, first=first))
            say(*([] if each.do is None else wrapped(each.do, indent=indent)))
    problems, notes = (sum(each.state == state for each in found) for state in ("problem", "note"))
    if as_json:
        say_json({"ok": not problems, "checks": [each._asdict() for each in found]})
    else:
        say("", f"{_counted(problems, 'problem')}, {_counted(notes, 'note').lower()}.")
    if problems:
        raise typer.Exit(1)


def _counted(number: int, word: str) -> str:
    return f"{number or 'No'} {word}{'' if number == 1 else 's'}"
