"""``ladderboard plan`` and ``ladderboard calibrate``: sizes and settings of a new holdout."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
        int | None,
        typer.Option(
            "--questions",
            "--submissions",
            parser=parse_integer,
            help="How many questions or submissions are allowed.",
        ),
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="The largest leaderboard error allowed, below 0.5.")
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Plan a gate instead: give --looks, and --n or --gain.")
    ] = False,
    looks: Annotated[
        int | None, typer.Option(parser=parse_integer, help="How many looks a gate allows.")
    ] = None,
    differ: Annotated[
        float | None,
        typer.Option(help="The share of examples on which a candidate differs; 0.1 if left out."),
    ] = None,
    gain: Annotated[
        float | None, typer.Option(help="A gain that the gate should prove, to find its size.")
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer,
            help="The number of classes of a gate, 2 if left out; 0 for pass or fail.",
        ),
    ] = None,
    beta: Annotated[float, typer.Option(help="The probability that the bound may fail.")] = 0.05,
    teams: Annotated[
        int, typer.Option(parser=parse_integer, help="Teams, each with its own ladder.")
    ] = 1,
    accounts: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer, help="Teams that one attacker may control; 2 if left out."
        ),
    ] = None,
    protection: Annotated[
        str, typer.Option(help="How much an attacker may gain: open, balanced or strict.")
    ] = "balanced",
    metric: Annotated[
        str | None,
        typer.Option(help="The metric in which gains are stated, such as accuracy or roc_auc."),
    ] = None,
    best: Annotated[
        float | None, typer.Option(help="The score of a good model in that metric.")
    ] = None,
    standard_error: Annotated[
        float | None,
        typer.Option(help="The standard error of that score on n rows, as from a bootstrap."),
    ] = None,
    positives: Annotated[
        float | None,
        typer.Option(help="For AUC: the share of rows that are positive; 0.5 if left out."),
    ] = None,
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

    Prints which gains the default mechanism shows with these sizes and what an attacker could gain,
    then what is guaranteed whatever is asked, then other mechanisms for comparison. With --gate:
    which gains a gate would prove at its first, tenth and last look.
    """
    if gate:
        others = (questions, error, plot, metric, best, standard_error, positives)
        if any(option is not None for option in others):
            raise InvalidSetting("--gate goes with --n, --looks, --differ, --gain and --classes.")
        _plan_gate(n, looks, differ, gain, classes=classes, beta=beta, as_json=as_json)
        return
    if any(option is not None for option in (looks, differ, gain, classes)):
        raise InvalidSetting("--looks, --differ, --gain and --classes need --gate.")
    from ladderboard.bounds import plan as make_plan  # noqa: PLC0415 - keeps --help fast

    options = {"--n": n, "--questions": questions, "--error": error}
    names = [name for name, value in options.items() if value is not None]
    if len(names) != 2:
        raise InvalidSetting(
            "A plan needs two of --n, --questions and --error, and finds the third; got "
            f"{', '.join(names) or 'none'}. Try --n {n or 10_000} --questions 1000."
        )
    result = make_plan(
        n,
        questions,
        error,
        beta,
        teams=teams,
        accounts=accounts,
        protection=protection,
        metric=metric,
        best=best,
        standard_error=standard_error,
        positives=positives,
    )
    if plot is not None:
        from ladderboard.arena import plan_figure  # noqa: PLC0415 - only if needed

        plan_figure(result, plot)
    if as_json:
        typer.echo(json.dumps(result.describe(), allow_nan=False))
    elif sys.stdout.isatty():
        _print_table("\n".join(result.sentences), result.table())
    else:
        typer.echo(str(result))


def _plan_gate(
    n: int | None,
    looks: int | None,
    differ: float | None,
    gain: float | None,
    *,
    classes: int | None,
    beta: float,
    as_json: bool,
) -> None:
    from ladderboard.bounds import TestForm, gate_plan  # noqa: PLC0415 - keeps --help fast

    if looks is None or (n is None and gain is None):
        raise InvalidSetting(
            "A plan of a gate needs --looks, and --n or --gain. Try --n 300 --looks 50."
        )
    count = 2 if classes is None else classes
    test: TestForm = "sign" if count == 2 else "convex" if count > 2 else "bets"
    result = gate_plan(
        n,
        looks,
        0.1 if differ is None else differ,
        beta=beta,
        gain=gain,
        test=test,
        largest_margin=1 - 1 / count if count > 1 else 1,  # a constant is right once in ``count``
    )
    text = str(result) if n is not None else result.size_sentence
    typer.echo(json.dumps(result.describe()) if as_json else text)


def _print_table(sentence: str, table: list[tuple[str, ...]]) -> None:
    """Print a sentence and a table on a terminal; the last column wraps."""
    from rich.box import SIMPLE  # noqa: PLC0415 - only for a terminal
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same

    head, *rows = table
    grid = Table(box=SIMPLE, pad_edge=False)
    for index, name in enumerate(head):
        align: Literal["left", "right"] = "right" if index == 1 else "left"
        grid.add_column(name, justify=align, no_wrap=index < len(head) - 1)
    for row in rows:
        grid.add_row(*row)
    console = Console(highlight=False, markup=False)
    console.print(sentence)
    console.print(grid)


def calibrate(
    *,
    n: Annotated[
        str,
        typer.Option(metavar="N", help="Examples in the holdout; several with --out: 1e3,1e4."),
    ],
    questions: Annotated[
        str,
        typer.Option(metavar="K", help="Questions of all teams together; several with --out."),
    ],
    teams: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="Teams, each with its own ladder; 1 is one ladder for all.",
        ),
    ] = "1",
    most: Annotated[
        float | None,
        typer.Option(help="The largest worst-case error allowed, in units of 1/sqrt(n)."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same settings.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Try few settings in few games, in seconds.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a table for all these sizes to this directory instead."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="The number of processes for a table; as many as cores if left out."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Run on the Dask scheduler at this address, tcp://HOST:PORT."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with every runner-up, for machines.")
    ] = False,
) -> None:
    """Find the best settings of the Shaky Ladder for a size.

    Settings are tried against attackers and honest analysts. Among those whose worst mean
    leaderboard error is within 20% of the smallest one found, the settings with the least bias
    under attack are chosen; the runners-up show the trade-off. ShakyLadder.calibrated has a table
    of results for most sizes.
    """
    from ladderboard import arena  # noqa: PLC0415 - keeps --help fast

    sizes = [parse_integers(text) or [] for text in (n, questions, teams)]
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
    result = arena.calibrate(
        sizes[0][0],
        sizes[1][0],
        sizes[2][0],
        max_error=most,
        seed=seed,
        quick=quick,
        progress=not as_json,
    )
    typer.echo(json.dumps(result.describe()) if as_json else _format_calibration(result))


def _format_calibration(result: "Calibration") -> str:
    n, questions, teams = result.size
    ladders = "one ladder for all" if teams == 1 else f"{teams:,} teams with a ladder each"
    shaky = result.mechanism
    noises = f"compare noise {shaky.compare_noise:g}, release noise {shaky.release_noise:g}"
    limit = (1 + result.margin) * result.lowest_error_result.error
    rows = [
        ["step", "compare", "release", "grid", "", "error", "of", "bias"],
        *(
            [
                *(f"{setting:g}" for setting in trial.candidate),
                "*" if trial.error <= limit else "",
                f"{trial.error:.2f} ± {trial.error_se:.2f}",
                trial.worst,
                f"{trial.bias:.2f} ± {trial.bias_se:.2f}",
            ]
            for trial in result.finalists
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    missed = result.max_error is not None and result.chosen.error > result.max_error
    games = f"{result.chosen.repetitions} games each, seed {result.seed}"
    return "\n".join(
        [
            f"Shaky Ladder for n = {n:,}, {questions:,} questions, {ladders}:",
            f"  step {shaky.step:g}, {noises}, grid {shaky.grid:g}, standing noise 0",
            "",
            "In units of 1/sqrt(n), except the grid; the chosen settings come first.",
            f"* marks a worst error within {result.margin:.0%} of the smallest. {games}; ± is a",
            "standard error. The settings were found in other games than these.",
            *(
                [f"No settings had an error of {result.max_error:g} or less; these have the least."]
                if missed
                else []
            ),
            "",
            *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows),
        ]
    )
