"""``ladderboard submit`` and ``ladderboard submissions``."""

import sys
import warnings
from typing import Annotated, Any

import typer

from ladderboard.cli._client._options import (
    AsCsv,
    BoardName,
    Insecure,
    OfTeam,
    Quiet,
    Url,
    open_client,
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
from ladderboard.cli._output import (
    echo,
    echo_err,
    echo_json,
    echo_table,
    format_csv,
    format_minute,
    upload_progress,
)
from ladderboard.errors import InvalidSetting

_COLUMNS = (
    "number", "id", "time", "released", "shown", "score", "improved", "question", "selected",
    "size", "message", "loss",
)  # fmt: skip


def submit(
    board: BoardName,
    predictions: Annotated[
        str, typer.Argument(metavar="FILE", help="Predictions; - reads them from a pipe.")
    ] = "",
    *,
    file: Annotated[
        str, typer.Option("-f", "--file", metavar="FILE", help="The same, named by an option.")
    ] = "",
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    metric: MetricOfLog = None,
    message: Annotated[
        str, typer.Option("-m", "--message", metavar="TEXT", help="A note for yourselves.")
    ] = "",
    team: OfTeam = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Under which this is answered once; made if left out."),
    ] = None,
    format: Format = None,  # noqa: A002 - the word people use
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Submit predictions to a board, and hear what is released.

    On a board of scores, evaluators submit them for a team: as a file, or from a log.

    A refusal costs nothing. The very same predictions again get the same answer and cost nothing,
    so whatever breaks may be sent again. The answer is kept as a receipt.

    Exit codes: 0 answered; 2 the predictions, the token or the command cannot be used; 3 no
    question is left, now or ever, or the board is not open; 4 the server cannot be reached or is
    not in order.
    """
    if file and predictions:
        raise InvalidSetting("Name the predictions once: after the board, or with -f.")
    file = file or predictions
    scores = read_scores(inspect, lm_eval, metric)
    if scores is not None and (file or format):
        raise InvalidSetting("A log has the scores and its own format; leave -f and --format out.")
    with (
        open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug),
        upload_progress(quiet=quiet or as_json) as progress,
    ):
        if scores is not None:
            scores.check(client.guard(slug, team))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", RuntimeWarning)
            reply = client.submit(
                slug,
                _find_predictions(file, board) if scores is None else scores.table,
                message=message,
                team=team,
                key=key,
                format=format,
                progress=progress,
            )
        kept = client.receipts_file(slug)
    if as_json:
        echo_json(reply.describe())
    else:
        echo(str(reply))
    echo_err(*(str(each.message) for each in told))  # a receipt that could not be kept
    if kept is not None and not told and not (quiet or as_json) and sys.stderr.isatty():
        echo_err(f"The receipt is kept in {kept}.")


def _find_predictions(file: str, board: str) -> Any:
    """Return what to read, if it was named."""
    if not file:
        raise InvalidSetting(
            "Name what to submit: -f FILE; or the log of an evaluation, with --inspect or "
            "--lm-eval, on a board of scores."
        )
    return predictions_source(file, f"submit {board} -f -")


def submissions(
    board: BoardName,
    *,
    team: OfTeam = None,
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """List a team's submissions, newest first."""
    with open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug):
        found = list(client.submissions(slug, team))
        display = client.board(slug).display
    if as_json:
        echo_json({"submissions": [each.describe() for each in found]})
        return
    if as_csv:
        _echo_csv([each.describe() for each in found])
        return
    if not found:
        if not quiet:
            echo("Nothing was submitted yet.")
        return
    best = f"best {display.name} then"
    echo_table(
        ("number", "time (UTC)", best, "improved", "selected", "message"),
        [
            (
                each.number,
                format_minute(each.raw["time"]),
                None if each.display is None else f"{each.display:.{display.digits}f}",
                "yes" if each.improved else "",
                "yes" if each.selected else "",
                each.message,
            )
            for each in found
        ],
        right=("number", best),
        cut="message",
    )


def _echo_csv(found: list[dict[str, object]]) -> None:

    rows = [tuple({**each, "shown": each["display"]}[name] for name in _COLUMNS) for each in found]
    echo(*format_csv(_COLUMNS, rows).rstrip("\n").split("\n"))
