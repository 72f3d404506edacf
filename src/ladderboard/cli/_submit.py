"""``ladderboard submit``: ask a board about a model by its predictions."""

import sys
import warnings
from typing import Annotated, Any

import typer

from ladderboard.cli._client_options import (
    AsJson,
    BoardName,
    Insecure,
    OfTeam,
    Quiet,
    Url,
    open_client,
)
from ladderboard.cli._options import Format, source_of
from ladderboard.cli._said import note, say, say_json
from ladderboard.cli._scores import InspectLog, LmEvalSamples, MetricOfLog, read_scores
from ladderboard.cli._upload_bar import upload_bar
from ladderboard.errors import InvalidSetting

__all__ = ["submit"]


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
        upload_bar(quiet=quiet or as_json) as progress,
    ):
        if scores is not None:
            scores.check(client.guard(slug, team))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", RuntimeWarning)
            reply = client.submit(
                slug,
                _source(file, board) if scores is None else scores.table,
                message=message,
                team=team,
                key=key,
                format=format,
                progress=progress,
            )
        kept = client.receipts_file(slug)
    if as_json:
        say_json(reply.describe())
    else:
        say(str(reply))
    note(*(str(each.message) for each in told))  # a receipt that could not be kept
    if kept is not None and not told and not (quiet or as_json) and sys.stderr.isatty():
        note(f"The receipt is kept in {kept}.")


def _source(file: str, board: str) -> Any:
    """Return what to read, if it was named."""
    if not file:
        raise InvalidSetting(
            "Name what to submit: -f FILE; or the log of an evaluation, with --inspect or "
            "--lm-eval, on a board of scores."
        )
    return source_of(file, f"submit {board} -f -")
