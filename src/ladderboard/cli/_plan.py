"""``ladderboard plan`` and ``ladderboard calibrate``: sizes and settings of a new holdout."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._options import parse_integer, parse_integers
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.arena import Calibration


def plan(
    *,
    n: Annotated[
        int | None, typer.Option(parser=parse_integer, help="How many examples the holdout has.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option(parser=parse_integer, help="How many questions are allowed.")
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
    from ladderboard.bounds import plan as find  # noqa: PLC0415 - keeps --help fast

    given = {"--n": n, "--questions": questions, "--error": error}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 2:  # in the words of the command line
        raise InvalidSetting(
            "A plan needs two of --n, --questions and --error, and finds the third; got "
            f"{', '.join(names) or 'none'}. Try --n 10000 --questions 1000."
        )
    found = find(n, questions, error, beta)
    if plot is not None:
        from ladderboard.arena import plan_figure  # noqa: PLC0415 - only if needed

        plan_figure(found, plot)
    if as_json:
        typer.echo(json.dumps(found.describe(), allow_nan=False))
    elif sys.stdout.isatty():
        _print_table(f"{found.sentence}\n{found.default}", found.table())
    else:
        typer.echo(str(found))


def _print_table(sentence: str, table: list[tuple[str, ...]]) -> None:
    """Print for a person: the last column wraps within itself."""
    from rich.box import SIMPLE  # noqa: PLC0415 - only for a terminal
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


def calibrate(
    *,
    n: Annotated[
        str,
        typer.Option(metavar="N", help="Examples in the holdout; with --out several: 1e3,1e4."),
    ],
    questions: Annotated[
        str,
        typer.Option(metavar="K", help="Questions in all, over all teams; with --out several."),
    ],
    teams: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="Teams with a ladder each; 1 is one ladder for all.",
        ),
    ] = "1",
    most: Annotated[
        float | None,
        typer.Option(help="The largest worst-case error allowed, in units of 1/sqrt(n)."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same settings.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Look at few settings and games, in seconds.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the table of all these sizes to a directory instead."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="How many processes work on a table; as many as cores if left out."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="The address of a Dask scheduler, tcp://HOST:PORT, to work there."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with every runner-up, for machines.")
    ] = False,
) -> None:
    """Find the settings of the Shaky Ladder that serve a size best.

    Settings are played against attackers and honest analysts. Among those whose worst mean
    leaderboard error is within 20% of the least found, the one that leaves the attacker the least
    bias is chosen; the runners-up show what was traded. ShakyLadder.calibrated has a table of
    results for most sizes.
    """
    from ladderboard import arena  # noqa: PLC0415 - keeps --help fast

    sizes = [parse_integers(each) or [] for each in (n, questions, teams)]
    if out is not None:
        if most is not None or as_json:
            raise typer.BadParameter("--most and --json are for one size, without --out.")
        for path in arena.calibration_table(
            out,
            n=sizes[0],
            questions=sizes[1],
            teams=sizes[2],
            seed=seed,
            quick=quick,
            workers=workers,
            cluster=cluster,
            progress=True,
        ):
            typer.echo(path)
        return
    if any(len(size) != 1 for size in sizes) or workers is not None or cluster is not None:
        raise typer.BadParameter("Several sizes, --workers and --cluster go with --out DIR.")
    found = arena.calibrate(
        sizes[0][0],
        sizes[1][0],
        sizes[2][0],
        most=most,
        seed=seed,
        quick=quick,
        progress=not as_json,
    )
    typer.echo(json.dumps(found.describe()) if as_json else _format_calibration(found))


def _format_calibration(found: "Calibration") -> str:
    n, questions, teams = found.size
    each = "one ladder for all" if teams == 1 else f"{teams:,} teams with a ladder each"
    made = found.mechanism
    noises = f"compare noise {made.compare_noise:g}, release noise {made.release_noise:g}"
    near = (1 + found.margin) * found.least.error
    rows = [
        ["step", "compare", "release", "grid", "", "error", "of", "bias"],
        *(
            [
                *(f"{setting:g}" for setting in trial.candidate),
                "*" if trial.error <= near else "",
                f"{trial.error:.2f} ± {trial.error_se:.2f}",
                trial.worst,
                f"{trial.bias:.2f} ± {trial.bias_se:.2f}",
            ]
            for trial in found.finalists
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    games = f"{found.chosen.repetitions} games each, seed {found.seed}"
    return "\n".join(
        [
            f"Shaky Ladder for n = {n:,}, {questions:,} questions, {each}:",
            f"  step {made.step:g}, {noises}, grid {made.grid:g}, standing noise 0",
            "",
            "In units of 1/sqrt(n), the grid as it is; the chosen settings come first.",
            f"* is a worst error within {found.margin:.0%} of the least. {games}; ± is a standard",
            "error. The games in which the settings were found were others.",
            "",
            *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows),
        ]
    )
