"""Scores in the place of predictions: the options that name the log of an evaluation."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.adapters.inspect import Scores

__all__ = ["InspectLog", "LmEvalSamples", "MetricOfLog", "read_scores"]

InspectLog = Annotated[
    Path | None,
    typer.Option("--inspect", metavar="LOG", help="Scores from a log of Inspect AI."),
]
LmEvalSamples = Annotated[
    Path | None,
    typer.Option(
        "--lm-eval",
        metavar="FILE",
        help="Scores from a samples file of lm-evaluation-harness.",
    ),
]
MetricOfLog = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Which score of the log: a scorer[,reducer] of Inspect, if there are several; a "
        "metric[,filter] of lm-evaluation-harness, acc if left out.",
    ),
]


def read_scores(
    inspect: Path | None, lm_eval: Path | None, metric: str | None = None
) -> "Scores | None":
    """Return the scores of the log that was named, None where none was."""
    if inspect is not None and lm_eval is not None:
        raise InvalidSetting("Give one log, with --inspect or with --lm-eval.")
    name, comma, which = (metric or "").partition(",")
    if metric is not None and not (name and bool(which) is bool(comma)):
        raise InvalidSetting(f"--metric is a name, or two as in acc,none; got {metric!r:.80}.")
    if inspect is not None:
        from ladderboard.adapters.inspect import read_log  # noqa: PLC0415 - only where wanted

        return read_log(inspect, metric=name or None, reducer=which or None)
    if lm_eval is not None:
        from ladderboard.adapters.lm_eval import read_samples  # noqa: PLC0415 - same

        return read_samples(lm_eval, metric=name or "acc", filter=which or None)
    if metric is not None:
        raise InvalidSetting("--metric is of a log; name one with --inspect or --lm-eval.")
    return None
