"""``ladderboard guard ask``: ask about a model by its predictions."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard.cli._guard_options import AsJson, FileOrUrl, KeyFile, open_guard
from ladderboard.cli._options import Format, source_of
from ladderboard.cli._said import say, say_json
from ladderboard.cli._scores import InspectLog, LmEvalSamples, MetricOfLog, read_scores
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.holdout import Reply

__all__ = ["ask"]


def ask(
    file: FileOrUrl,
    predictions: Annotated[
        str,
        typer.Argument(
            metavar="PREDICTIONS", help="A file of predictions; - reads them from a pipe."
        ),
    ] = "",
    *,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    metric: MetricOfLog = None,
    ladder: Annotated[
        str,
        typer.Option(metavar="NAME", help="Ask on a ladder of its own, started if it is new."),
    ] = "",
    training: Annotated[
        float | None,
        typer.Option(help="The model's mean loss on its training data, for thresholdout."),
    ] = None,
    format: Format = None,  # noqa: A002 - the word people use
    key_file: KeyFile = None,
    as_json: AsJson = False,
    fail_unless_improved: Annotated[
        bool,
        typer.Option("--fail-unless-improved", help="Exit with 1 where the best stays as it was."),
    ] = False,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Append the answer to a file, in Markdown."),
    ] = None,
) -> None:
    """Ask about a model by its predictions, or by the scores in the log of an evaluation.

    A refusal costs nothing. The very same predictions again get the same answer and cost nothing,
    so a run may be repeated. The question is spent before its answer is said.

    Exit codes: 0 answered; 1 not improved, where that was to fail; 2 the predictions or the command
    cannot be used; 3 the budget is spent or the guard closed; 4 the guard's file or storage is not
    in order.
    """
    with _noting(summary) as note, open_guard(file, key_file) as guard:
        scores = read_scores(inspect, lm_eval, metric)
        if scores is None:
            source = _source(predictions, file)
            reply = guard.ask(source, training=training, format=format, ladder=ladder)
        else:
            _check_alone(predictions, format)
            reply = scores.ask(guard, training=training, ladder=ladder)
        note(reply)
    if as_json:
        say_json(reply.describe())
    else:
        say(str(reply))
    if fail_unless_improved and not reply.improved:
        raise typer.Exit(1)


def _source(predictions: str, file: str) -> Any:
    """Return what to read, if it was named."""
    if not predictions:
        raise InvalidSetting(
            "Name what to ask about: a file of predictions, - for a pipe, or the log of an "
            "evaluation with --inspect or --lm-eval."
        )
    return source_of(predictions, f"guard ask {file} -")


def _check_alone(predictions: str, form: str | None) -> None:
    if predictions or form:
        raise InvalidSetting(
            "A log has the scores and its own format; leave predictions and --format out."
        )


def _noting(summary: Path | None) -> Any:
    if summary is None:
        return nullcontext(_nothing)
    from ladderboard.cli._guard_summary import noting  # noqa: PLC0415 - only where it is wanted

    return noting(summary)


def _nothing(_: "Reply") -> None:
    """Note nothing."""
