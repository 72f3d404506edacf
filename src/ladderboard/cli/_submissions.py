"""``ladderboard submissions``: what a team asked, and what it was told."""

from ladderboard.cli._client_options import (
    AsCsv,
    AsJson,
    BoardName,
    Insecure,
    OfTeam,
    Quiet,
    Url,
    open_client,
)
from ladderboard.cli._said import say, say_json
from ladderboard.cli._table import brief, say_table

__all__ = ["submissions"]

_COLUMNS = (
    "number", "id", "time", "released", "shown", "score", "improved", "question", "selected",
    "size", "message", "loss",
)  # fmt: skip


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
        say_json({"submissions": [each.describe() for each in found]})
        return
    if as_csv:
        _say_csv([each.describe() for each in found])
        return
    if not found:
        if not quiet:
            say("Nothing was submitted yet.")
        return
    best = f"best {display.name} then"
    say_table(
        ("number", "time (UTC)", best, "improved", "selected", "message"),
        [
            (
                each.number,
                brief(each.said["time"]),
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


def _say_csv(found: list[dict[str, object]]) -> None:
    from ladderboard.cli._csv import csv_text  # noqa: PLC0415 - only where it is wanted

    rows = [tuple({**each, "shown": each["display"]}[name] for name in _COLUMNS) for each in found]
    say(*csv_text(_COLUMNS, rows).rstrip("\n").split("\n"))
