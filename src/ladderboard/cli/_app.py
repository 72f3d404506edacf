"""The program: its verbs and what belongs to all of them."""

from typing import Annotated, ClassVar

import typer

from ladderboard._version import __version__
from ladderboard.cli._verbs import Verbs

__all__ = ["app"]


class _Program(Verbs):
    homes: ClassVar[dict[str, str]] = {
        "plan": "_plan:plan",
        "calibrate": "_calibrate:calibrate",
        "guard": "_guard:app",
        "serve": "_serve:serve",
        "board": "_board:app",
        "team": "_team:app",
        "backup": "_backup:app",
        "settings": "_settings:settings",
        "doctor": "_doctor:doctor",
        "login": "_login:login",
        "submit": "_submit:submit",
        "submissions": "_submissions:submissions",
        "leaderboard": "_leaderboard:leaderboard",
        "ledger": "_ledger:ledger",
        "mcp": "_mcp:mcp",
        "verify": "_verify:verify",
        "attack": "_attack:app",
        "experiment": "_experiment:app",
    }
    short: ClassVar[dict[str, str]] = {
        "plan": "Plan a holdout: size, questions or error.",
        "calibrate": "Find the best settings of the Shaky Ladder.",
        "guard": "Keep labels behind a budget, in one file.",
        "serve": "Serve boards over HTTP.",
        "backup": "Back up all boards, try it out, restore it.",
        "settings": "List what a server is set to, and by whom.",
        "doctor": "Look whether all that a server needs is well.",
        "login": "Keep the token of a board.",
        "submit": "Submit predictions to a board.",
        "leaderboard": "Show or download the standings of a board.",
        "ledger": "Fetch the public ledger of a board.",
        "mcp": "Give an agent tools to ask a guard or a board.",
        "verify": "Check a board or a guard from what it opened.",
        "attack": "Simulate an attack.",
        "experiment": "Run an experiment: tables and figures.",
    }


app = typer.Typer(
    name="ladderboard",
    cls=_Program,
    help="A leaderboard that stays honest.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ladderboard {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_tell_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """A leaderboard that stays honest."""
