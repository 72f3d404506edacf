"""``ladderboard submit`` and ``ladderboard submissions``."""

import sys
import warnings
from typing import Annotated, Any

import typer

from ladderboard._formatting import format_decimals
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
    "size", "message", "loss", "proven",
)  # fmt: skip


def submit(
    board: BoardName,
    predictions: Annotated[
        str, typer.Argument(metavar="FILE", help="Predictions; - reads them from a pipe.")
    ] = "",
    *,
    file: Annotated[
        str, typer.Option("-f", "--file", metavar="FILE", help="The same as the argument FILE.")
    ] = "",
    inspect: InspectLog = None,
    lm_eval: LmEvalSamples = None,
    metric: MetricOfLog = None,
    message: Annotated[
        str, typer.Option("-m", "--message", metavar="TEXT", help="A note for your team.")
    ] = "",
    team: OfTeam = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="An idempotency key: requests with the same key are answered once; generated if "
            "left out.",
        ),
    ] = None,
    file_format: Format = None,
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Submit predictions to a board, and print the released score.

    On a board of scores, evaluators submit scores for a team: as a file, or from a log.

    A refusal costs nothing. You can repeat a command that failed: predictions that were counted get
    the same answer for free, after the last submission only with the same --key. The answer is
    saved as a receipt.

    Exit codes: 0 answered; 2 the predictions, the token or the arguments are invalid; 3 no
    submission is left or allowed now, or the board is not open; 4 the server cannot be reached or
    has failed.
    """
    if file and predictions:
        raise InvalidSetting("Give the predictions once: after the board, or with -f.")
    file = file or predictions
    scores = read_scores(inspect, lm_eval, metric)
    if scores is not None and (file or file_format):
        raise InvalidSetting("A log has scores and a format of its own; leave out -f and --format.")
    with (
        open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug),
        upload_progress(quiet=quiet or as_json) as progress,
    ):
        if scores is not None:
            scores.check(client.guard(slug, team))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            reply = client.submit(
                slug,
                _find_predictions(file, board) if scores is None else scores.table,
                message=message,
                team=team,
                key=key,
                format=file_format,
                progress=progress,
            )
        receipts = client.receipts_file(slug)
    if as_json:
        echo_json(reply.describe())
    else:
        echo(str(reply))
    echo_err(*(str(warning.message) for warning in caught))  # a receipt that was not saved
    if receipts is not None and not caught and not (quiet or as_json) and sys.stderr.isatty():
        echo_err(f"The receipt is saved in {receipts}.")


def _find_predictions(file: str, board: str) -> Any:
    """Return where to read predictions; raise if none are given."""
    if not file:
        raise InvalidSetting(
            "Give predictions with -f FILE; or, on a board of scores, the log of an evaluation "
            "with --inspect or --lm-eval."
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
        submitted = list(client.submissions(slug, team))
        display = client.board(slug).display
    if as_json:
        echo_json({"submissions": [submission.describe() for submission in submitted]})
        return
    if as_csv:
        _echo_csv([submission.describe() for submission in submitted])
        return
    if not submitted:
        if not quiet:
            echo(f"There are no submissions yet. To submit: ladderboard submit {slug} -f FILE")
        return
    best = f"best {display.name} then"
    echo_table(
        ("number", "time (UTC)", best, "improved", "selected", "message"),
        [
            (
                row.number,
                format_minute(row.raw["time"]),
                None if row.display is None else format_decimals(row.display, display.digits),
                "proven" if row.proven else "yes" if row.improved else "",
                "yes" if row.selected else "",
                row.message,
            )
            for row in submitted
        ],
        right=("number", best),
        shrink_column="message",
    )


def _echo_csv(submitted: list[dict[str, object]]) -> None:
    rows = [
        tuple({"proven": None, **row, "shown": row["display"]}[name] for name in _COLUMNS)
        for row in submitted
    ]
    echo(*format_csv(_COLUMNS, rows).rstrip("\n").split("\n"))
