"""``ladderboard attack``: simulate an attack and print how well it does."""

import json
from typing import Annotated

import typer

from ladderboard.cli._numbers import whole

__all__ = ["app"]

app = typer.Typer(
    help="Simulate an attack and print how well it does.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def _attack() -> None:
    """Simulate an attack and print how well it does."""


@app.command()
def majority(
    *,
    n: Annotated[int, typer.Option(parser=whole, help="How many examples the holdout has.")],
    k: Annotated[
        int, typer.Option(parser=whole, help="How many random models the attack asks about.")
    ],
    sigma: Annotated[
        float,
        typer.Option(
            help="The standard deviation of the noise on every answer, on the correlation "
            "1 - 2 risk as in the paper; on the risk it is half as much."
        ),
    ] = 0.0,
    repetitions: Annotated[
        int, typer.Option(parser=whole, help="How many attacks to simulate.")
    ] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same errors.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with every error, for machines.")
    ] = False,
) -> None:
    """Simulate the majority attack of the paper.

    It asks about k random models and submits the vote of those that did well. It has learned
    nothing, so an error below 0.5 is what the holdout gave away.
    """
    import numpy as np  # noqa: PLC0415 - the help must not wait for it

    from ladderboard.arena import majority_attack, majority_attack_moments  # noqa: PLC0415

    exact_mean, exact_std = majority_attack_moments(n, k, sigma)
    errors = majority_attack(n, k, sigma, repetitions, seed)
    mean = float(errors.mean())
    std = float(np.std(errors, ddof=1)) if len(errors) > 1 else None
    if as_json:
        found = {
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
        typer.echo(json.dumps(found))
        return
    times = "repetition" if repetitions == 1 else "repetitions"
    spread = "-" if std is None else f"{std:.5f}"
    noise = f"sigma = {sigma:g}, which is {sigma / 2:g} on the risk" if sigma else "no noise"
    typer.echo(f"Majority attack: n = {n:,}, k = {k:,}, {noise}")
    typer.echo(f"{'':<12}{'mean error':>12}{'std':>12}")
    typer.echo(f"{'simulated':<12}{mean:>12.5f}{spread:>12}   {repetitions} {times}")
    typer.echo(f"{'exact':<12}{exact_mean:>12.5f}{exact_std:>12.5f}")
    typer.echo(f"The holdout flatters the vote by {0.5 - exact_mean:.5f}; its true error is 0.5.")
