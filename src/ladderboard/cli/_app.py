"""The program: its verbs and what belongs to all of them."""

from typing import Annotated

import typer

from ladderboard._version import __version__
from ladderboard.cli import _attack, _calibrate, _experiment, _plan

__all__ = ["app"]

app = typer.Typer(
    name="ladderboard",
    help="A leaderboard that stays honest.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(_attack.app, name="attack")
app.add_typer(_experiment.app, name="experiment")
app.command()(_plan.plan)
app.command()(_calibrate.calibrate)


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
