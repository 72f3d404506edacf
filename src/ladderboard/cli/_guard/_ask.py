"""``ladderboard guard ask``: ask about a model by its predictions; a summary in Markdown."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import format_confidence, format_ends, printable
from ladderboard.cli._guard._files import (
    FileOrUrl,
    KeyFile,
    Predictions,
    Summary,
    escape_markdown,
    open_guard,
    open_summary,
)
from ladderboard.cli._options import (
    AsJson,
    Format,
    InspectLog,
    LmEvalSamples,
    MetricOfLog,
    predictions_source,
    read_scores,
)
from ladderboard.cli._output import echo, echo_err, echo_json
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.holdout import Reply

_MAX_HEADER = 10_000


def ask(
    file: FileOrUrl,
    predictions: Predictions = "",
    *,
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    metric: MetricOfLog = None,
    ladder: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Ask on the ladder with this name, started if it is new."
        ),
    ] = "",
    training: Annotated[
        float | None,
        typer.Option(help="The model's mean loss on its training data, for thresholdout."),
    ] = None,
    file_format: Format = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    fail_unless_improved: Annotated[
        bool,
        typer.Option("--fail-unless-improved", help="Exit with 1 if the best does not improve."),
    ] = False,
    summary: Summary = None,
) -> None:
    """Ask about a model by its predictions, or by the scores in the log of an evaluation.

    A refusal costs nothing. The same predictions again get the same answer and cost nothing, so a
    run can be repeated. The question is counted before its answer is printed.

    Exit codes: 0 answered; 1 not improved, with --fail-unless-improved; 2 the predictions or the
    arguments are invalid; 3 the budget is spent or the guard is closed; 4 the guard's file is
    damaged, or storage failed.
    """
    writer = open_summary(summary, "Holdout guard", _summarise_reply)
    with writer as add_to_summary, open_guard(file, key_file) as guard:
        scores = read_scores(inspect, lm_eval, metric)
        if scores is None:
            source = _find_predictions(predictions, file)
            reply = guard.ask(source, training=training, format=file_format, ladder=ladder)
            if getattr(guard, "has_text_ids", False) and _has_one_column(Path(predictions)):
                echo_err(
                    f"Note: {printable(predictions)} has no ids, so its rows were taken in the "
                    "order of the labels."
                )
        else:
            _refuse_file_options(predictions, file_format)
            reply = scores.ask(guard, training=training, ladder=ladder)
        add_to_summary(reply)
    if as_json:
        echo_json(reply.describe())
    else:
        echo(str(reply))
    if fail_unless_improved and not reply.improved:
        raise typer.Exit(1)


def _find_predictions(predictions: str, file: str) -> Any:
    """Return where to read predictions; raise if none are given."""
    if not predictions:
        raise InvalidSetting(
            "Give predictions: a file, - for a pipe, or the log of an evaluation with --inspect or "
            "--lm-eval."
        )
    return predictions_source(predictions, f"guard ask {file} -")


def _has_one_column(path: Path) -> bool:
    """Return whether this is a CSV file with one column, which cannot hold ids, too."""
    if path.suffix.lower() not in {".csv", ".tsv"} or not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(_MAX_HEADER)
    return not any(separator in first for separator in (b",", b";", b"\t"))


def _refuse_file_options(predictions: str, form: str | None) -> None:
    if predictions or form:
        raise InvalidSetting(
            "A log has scores and a format of its own; leave out predictions and --format."
        )


def _summarise_reply(reply: "Reply") -> list[tuple[str, str]]:
    on = f" on ladder {escape_markdown(reply.ladder)}" if reply.ladder else ""
    name = "loss" if reply.metric is None else escape_markdown(reply.metric)
    then = " at that time" if reply.again else ""  # the interval below is about the best now
    return [
        (f"best {name}{then}", "at the close" if reply.value is None else f"{reply.value:.6g}"),
        ("improved", "yes" if reply.improved else "no"),
        ("question", f"{reply.question:,}{on}"),
        ("questions left", f"{reply.remaining:,}"),
        (
            f"true {name} of the best, with confidence {format_confidence(reply.bound.beta)}",
            "no guarantee" if reply.interval is None else format_ends(*reply.interval),
        ),
    ]
