"""``ladderboard experiment`` and ``ladderboard attack``: simulations."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ladderboard._formatting import format_count
from ladderboard.cli._options import parse_integer, parse_integers

experiment_app = typer.Typer(
    help="Run an experiment and write its tables and figures to a directory.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Out = Annotated[
    Path,
    typer.Option(help="The directory to write to; an interrupted run is continued there."),
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Run on the Dask scheduler at this address, tcp://HOST:PORT."),
]
Workers = Annotated[
    int | None,
    typer.Option(help="The number of processes; as many as cores if left out."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Run a small version, in a minute or two.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same results.")]
Repetitions = Annotated[
    int | None,
    typer.Option(help="Repetitions of each cell; the experiment's usual number if left out."),
]


def _add_experiment(name: str, short: str, sentence: str) -> None:
    """Add the command of an experiment that has the common options only."""

    @experiment_app.command(name, help=sentence, short_help=short)
    def _run(
        *,
        out: Out,
        cluster: Cluster = None,
        workers: Workers = None,
        quick: Quick = False,
        seed: Seed = 0,
        repetitions: Repetitions = None,
    ) -> None:
        from ladderboard import arena  # noqa: PLC0415 - keeps --help fast

        _run_experiment(
            getattr(arena, f"{name}_experiment"),
            out,
            cluster=cluster,
            workers=workers,
            quick=quick,
            seed=seed,
            repetitions=repetitions,
        )


_add_experiment(
    "paper",
    "Make both figures of the paper.",
    "Make both figures of the paper: the majority attack under noise.",
)
_add_experiment(
    "shifted",
    "Attack two ladders by the shifted majority.",
    "Run the shifted majority attack against the Ladder and the Shaky Ladder.",
)
_add_experiment(
    "calibrated",
    "Measure what the defaults show and protect.",
    "Measure what the default settings show, what they leave to attackers and what they cost.",
)
_add_experiment(
    "metrics",
    "Attack AUC, F1, RMSE, QWK and MAP@k.",
    "Attack AUC, F1, RMSE, QWK and MAP@k under exact scores and the default protection.",
)
_add_experiment(
    "peers",
    "Compare the calibrated Shaky Ladder.",
    "Compare the calibrated Shaky Ladder with other mechanisms, each at its worst.",
)
_add_experiment(
    "faithful",
    "See which mechanisms are faithful.",
    "Run the majority attack through the reduction, to see which mechanisms are faithful.",
)
_add_experiment(
    "play",
    "Watch two attacks climb three boards.",
    "Watch two attacks climb three boards, frame by frame, for the Play page.",
)


@experiment_app.command(short_help="Let analysts play against mechanisms.")
def arena(
    *,
    out: Out,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A mechanism by name, or module:name for one of your own, or LABEL=module:name; "
            "may be given several times. All registered ones if left out.",
        ),
    ] = None,
    analyst: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An analyst by name, or module:name for one of your own, or LABEL=module:name; "
            "may be given several times. All registered ones if left out.",
        ),
    ] = None,
    n: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]",
            help="Examples in the holdout, or several numbers separated by commas; needs --k.",
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(metavar="K[,K...]", help="Questions, or several numbers separated by commas."),
    ] = None,
    cluster: Cluster = None,
    workers: Workers = None,
    quick: Quick = False,
    seed: Seed = 0,
    repetitions: Repetitions = None,
) -> None:
    """Let every analyst play against every mechanism, and compare."""
    from ladderboard.arena import arena_experiment  # noqa: PLC0415 - keeps --help fast

    _run_experiment(
        arena_experiment,
        out,
        mechanisms=mechanism,
        analysts=analyst,
        n=parse_integers(n),
        k=parse_integers(k),
        cluster=cluster,
        workers=workers,
        quick=quick,
        seed=seed,
        repetitions=repetitions,
    )


def _run_experiment(experiment: Callable[..., list[Path]], out: Path, **settings: Any) -> None:
    with _explain_interruption(out):
        for path in experiment(out, progress=True, **settings):
            typer.echo(str(path))


@contextmanager
def _explain_interruption(out: Path) -> Iterator[None]:
    """Explain after Ctrl-C how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"ladderboard: Stopped. Finished results are in {out}; the same command continues "
            "from there.",
            err=True,
        )
        raise typer.Exit(130) from None


attack_app = typer.Typer(
    help="Simulate an attack and print how well it does. For other attacks, and against any "
    "mechanism, see ladderboard experiment arena --help.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@attack_app.callback()
def _attack() -> None:
    """Simulate an attack and print how well it does."""


@attack_app.command()
def majority(
    *,
    n: Annotated[
        int, typer.Option(parser=parse_integer, help="How many examples the holdout has.")
    ] = 10_000,
    k: Annotated[
        int,
        typer.Option(parser=parse_integer, help="How many random models the attack asks about."),
    ] = 1_000,
    sigma: Annotated[
        float,
        typer.Option(
            help="The standard deviation of the noise on every answer, on the scale of the paper: "
            "the correlation 1 - 2 * risk. On the risk it is half of this."
        ),
    ] = 0.0,
    repetitions: Annotated[
        int, typer.Option(parser=parse_integer, help="How many attacks to simulate.")
    ] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same errors.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with every error, for machines.")
    ] = False,
) -> None:
    """Simulate the majority attack of the paper.

    It asks about k random models and submits the majority vote of the better ones. It has learned
    nothing, so any error below 0.5 is overfitting to the holdout.
    """
    import numpy as np  # noqa: PLC0415 - keeps --help fast

    from ladderboard.arena import majority_attack, majority_attack_moments  # noqa: PLC0415

    exact_mean, exact_std = majority_attack_moments(n, k, sigma)
    errors = majority_attack(n, k, sigma, repetitions, seed)
    mean = float(errors.mean())
    std = float(np.std(errors, ddof=1)) if len(errors) > 1 else None
    if as_json:
        result = {
            "n": n,
            "k": k,
            "sigma": sigma,
            "repetitions": repetitions,
            "seed": seed,
            "mean": mean,
            "std": std,
            "exact_mean": float(exact_mean),
            "exact_std": float(exact_std),
            "errors": errors.tolist(),
        }
        typer.echo(json.dumps(result))
        return
    times = format_count(repetitions, "repetition")
    spread = "-" if std is None else f"{std:.5f}"
    noise = f"sigma = {sigma:g}, which is {sigma / 2:g} on the risk" if sigma else "no noise"
    typer.echo(f"Majority attack: n = {n:,}, k = {k:,}, {noise}")
    typer.echo(f"{'':<12}{'mean error':>12}{'std':>12}")
    typer.echo(f"{'simulated':<12}{mean:>12.5f}{spread:>12}   {times}")
    typer.echo(f"{'exact':<12}{exact_mean:>12.5f}{exact_std:>12.5f}")
    typer.echo(f"The holdout flatters the vote by {0.5 - exact_mean:.5f}; its true error is 0.5.")
