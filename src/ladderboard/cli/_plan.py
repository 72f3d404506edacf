"""``ladderboard plan``: how many examples, how many questions, which error."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ladderboard.cli._numbers import whole
from ladderboard.errors import InvalidSetting

__all__ = ["plan"]


def plan(
    *,
    n: Annotated[
        int | None, typer.Option(parser=whole, help="How many examples the holdout has.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option(parser=whole, help="How many questions are allowed.")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="The leaderboard error that may be, below 0.5.")
    ] = None,
    beta: Annotated[
        float, typer.Option(help="The probability with which the promise may fail.")
    ] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw error against questions for this n, to a file ending in png, svg or pdf.",
        ),
    ] = None,
) -> None:
    """Plan a holdout: give two of n, questions and error, get the third.

    The answer can be promised before the data, whatever is asked. Below it stands what other ways
    to answer would cost.
    """
    from ladderboard.bounds import plan as find  # noqa: PLC0415 - the help must not wait for it

    given = {"--n": n, "--questions": questions, "--error": error}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 2:  # in the words of the command line
        raise InvalidSetting(
            "A plan needs two of --n, --questions and --error, and finds the third; got "
            f"{', '.join(names) or 'none'}. Try --n 10000 --questions 1000."
        )
    found = find(n, questions, error, beta)
    if plot is not None:
        from ladderboard.arena import plan_figure  # noqa: PLC0415 - only where it is wanted

        plan_figure(found, plot)
    if as_json:
        typer.echo(json.dumps(found.describe(), allow_nan=False))
    elif sys.stdout.isatty():
        _show(f"{found.sentence}\n{found.default}", found.table())
    else:
        typer.echo(str(found))


def _show(sentence: str, table: list[tuple[str, ...]]) -> None:
    """Print for a person: the last column wraps within itself."""
    from rich.box import SIMPLE  # noqa: PLC0415 - only where there is a terminal
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same

    head, *rows = table
    shown = Table(box=SIMPLE, pad_edge=False)
    for at, name in enumerate(head):
        shown.add_column(name, justify="right" if at == 1 else "left", no_wrap=at < len(head) - 1)
    for row in rows:
        shown.add_row(*row)
    console = Console(highlight=False, markup=False)
    console.print(sentence)
    console.print(shown)
