"""``ladderboard team``: who takes part in a board."""

from typing import ClassVar

import typer

from ladderboard.cli._verbs import Verbs

__all__ = ["app"]

_HELP = """Let teams in, and give them tokens. TEAM is a team's id or its name.

A token or an invitation is printed once, alone on stdout, so that a shell can take it:
TOKEN=$(ladderboard team add BOARD NAME). Only its hash is kept.
"""


class _Team(Verbs):
    homes: ClassVar[dict[str, str]] = {
        "add": "_team_seats:add",
        "list": "_team_seats:list_",
        "invite": "_team_seats:invite",
        "rotate-token": "_team_seats:rotate_token",
        "revoke": "_team_seats:revoke",
        "disqualify": "_team_seats:disqualify",
        "reinstate": "_team_seats:reinstate",
    }
    short: ClassVar[dict[str, str]] = {
        "list": "List all teams, those not shown, too.",
        "rotate-token": "Give a team another token.",
    }


app = typer.Typer(
    name="team",
    cls=_Team,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(help=_HELP)
def _team() -> None:
    pass
