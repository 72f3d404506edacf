"""``ladderboard guard ask``: ask about a model by its predictions; a summary in Markdown."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import format_confidence, printable
from ladderboard.cli._guard._options import FileOrUrl, KeyFile, open_guard
from ladderboard.cli._options import (
    AsJson,
    Format,
    InspectLog,
    LmEvalSamples,
    MetricOfLog,
    predictions_source,
    read_scores,
)
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting, LadderboardError

if TYPE_CHECKING:
    from ladderboard.bounds import Certificate
    from ladderboard.holdout import Reply

_MARKDOWN_SPECIAL = set("\\`*_{}[]<>#|~&!")  # in Markdown


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
    with _open_summary(summary) as note, open_guard(file, key_file) as guard:
        scores = read_scores(inspect, lm_eval, metric)
        if scores is None:
            source = _find_predictions(predictions, file)
            reply = guard.ask(source, training=training, format=format, ladder=ladder)
        else:
            _refuse_file_options(predictions, format)
            reply = scores.ask(guard, training=training, ladder=ladder)
        note(reply)
    if as_json:
        echo_json(reply.describe())
    else:
        echo(str(reply))
    if fail_unless_improved and not reply.improved:
        raise typer.Exit(1)


def _find_predictions(predictions: str, file: str) -> Any:
    """Return what to read, if it was named."""
    if not predictions:
        raise InvalidSetting(
            "Name what to ask about: a file of predictions, - for a pipe, or the log of an "
            "evaluation with --inspect or --lm-eval."
        )
    return predictions_source(predictions, f"guard ask {file} -")


def _refuse_file_options(predictions: str, form: str | None) -> None:
    if predictions or form:
        raise InvalidSetting(
            "A log has the scores and its own format; leave predictions and --format out."
        )


def _open_summary(summary: Path | None) -> Any:
    if summary is None:
        return nullcontext(_discard)
    return append_summary(summary)


def _discard(_: "Reply") -> None:
    """Note nothing."""


@contextmanager
def append_summary(path: Path) -> Iterator[Callable[["Reply"], None]]:
    """Open a summary before anything is asked, so that no question is spent on a wrong path.

    What the block notes is appended; if it is refused, so is the refusal. Should the disk be full
    by then, the answer still counts, and stderr says what was not written.
    """
    try:
        file = path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InvalidSetting(
            f"The summary {path} cannot be written: {error.strerror}. Nothing was asked."
        ) from None
    said: list[str] = []
    try:
        yield lambda reply: said.extend(_summarise_reply(reply))
    except LadderboardError as error:
        said.extend(_summarise_refusal(error))
        raise
    finally:
        try:
            with file:
                file.write("".join(f"{line}\n" for line in said))
        except OSError as error:
            print(  # noqa: T201
                f"ladderboard: The summary {printable(path)} was not written: {error.strerror}.",
                file=sys.stderr,
            )


def _summarise_reply(reply: "Reply") -> list[str]:
    on = f" on ladder {_escape_markdown(reply.ladder)}" if reply.ladder else ""
    rows = [
        ("released", "at the close" if reply.released is None else f"{reply.released:.6g}"),
        ("improved", "yes" if reply.improved else "no"),
        ("question", f"{reply.question:,}{on}"),
        ("questions left", f"{reply.remaining:,}"),
        _bound_row(reply.bound),
    ]
    return [
        "### Holdout guard",
        "",
        _escape_markdown(reply.reason),
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
    ]


def _summarise_refusal(error: LadderboardError) -> list[str]:
    lines = [_escape_markdown(line.removeprefix("- ")) for line in str(error).splitlines()]
    return [
        "### Holdout guard",
        "",
        f"**Not answered.** {lines[0]}",
        "",
        *(f"- {line}" for line in lines[1:]),
        *([""] if lines[1:] else []),
    ]


def _bound_row(bound: "Certificate") -> tuple[str, str]:
    from ladderboard.cli._guard._wording import format_interval  # noqa: PLC0415 - same

    what = "best true risk less the released value" if bound.differences else "best true risk"
    return f"{what}, at {format_confidence(bound.beta)}", format_interval(bound)


def _escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return "".join(f"\\{each}" if each in _MARKDOWN_SPECIAL else each for each in printable(text))
