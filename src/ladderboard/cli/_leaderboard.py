"""``ladderboard leaderboard``: the standings of a board, shown or downloaded."""

import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._client_options import (
    AsCsv,
    AsJson,
    BoardName,
    Insecure,
    Quiet,
    Url,
    open_client,
)
from ladderboard.cli._said import say, say_json
from ladderboard.cli._table import brief, say_table
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.client import Board, Standing

__all__ = ["leaderboard"]

_ROWS = 20
_COLUMNS = (
    "rank", "team", "name", "baseline", "released", "shown", "since", "submissions", "last",
)  # fmt: skip


def leaderboard(
    board: BoardName,
    *,
    show: Annotated[
        bool, typer.Option("-s", "--show", help="Show the top (the default; with -d, too).")
    ] = False,
    download: Annotated[
        bool, typer.Option("-d", "--download", help="Write all of it to a file.")
    ] = False,
    path: Annotated[
        Path | None,
        typer.Option(
            "-p", "--path", metavar="PATH", help="Write it to this folder, or .csv or .json file."
        ),
    ] = None,
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Show the standings of a board, or download them.

    The table shows the top; CSV, JSON and a download have all rows.
    """
    with open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug):
        download = download or path is not None
        every = download or as_csv or as_json
        rows = list(islice(client.leaderboard(slug), None if every else _ROWS + 1))
        about = client.board(slug)
    if download:
        file = _write(path or Path(), slug, rows, as_json=as_json)
        if as_json:
            say_json({"file": str(file), "rows": len(rows)})
        elif not quiet:
            say(f"The standings are in {file}; rows: {len(rows):,}.")
    elif as_json:
        say_json({"board": slug, "rows": [each.describe() for each in rows]})
    elif as_csv:
        say(*_csv(rows).rstrip("\n").split("\n"))
    if (show or not download) and not (as_json or as_csv):
        _say_rows(about, rows, quiet=quiet)


def _say_rows(board: "Board", rows: "list[Standing]", *, quiet: bool) -> None:
    declared = [each for each in board.baselines if "display" in each]
    if not rows and not quiet:
        say("Nothing was submitted yet.")
    if not rows and not declared:
        return
    digits = board.display.digits
    lines: list[tuple[float | None, tuple[object, ...]]] = [
        (
            each.released,
            (
                "baseline" if each.baseline else _rank(each),
                _name(each),
                None if each.display is None else f"{each.display:.{digits}f}",
                f"{each.submissions:,}",
                brief(each.said["since"]),
            ),
        )
        for each in rows
    ]
    for told in declared:  # numbers from elsewhere, where they belong
        value, source = told["value"], told.get("source")
        name = f"{told['name']} ({source})" if source else told["name"]
        row = ("baseline", name, f"{told['display']:.{digits}f}", None, None)
        worse = (at for at, (loss, _) in enumerate(lines) if loss is None or loss > value)
        lines.insert(next(worse, len(lines)), (value, row))
    say_table(
        ("rank", "team", board.display.name, "submissions", "since (UTC)"),
        [line for _, line in lines[:_ROWS]],
        right=("rank", board.display.name, "submissions"),
    )
    if len(rows) > _ROWS and not quiet:
        say(f"These are the first {_ROWS}; for all of them type: "
            f"ladderboard leaderboard {board.slug} --download")  # fmt: skip


def _name(standing: "Standing") -> str:
    """Return a team's name, or its id where teams go without; one's own says so."""
    name = standing.team.id if standing.team.name is None else standing.team.name
    return f"{name} (you)" if standing.you else name


def _rank(standing: "Standing") -> str | None:
    """Return a rank as a table shows it: shared ones with a sign."""
    if standing.rank is None:
        return None
    return f"={standing.rank}" if standing.tied else f"{standing.rank}"


def _csv(rows: "list[Standing]") -> str:
    from ladderboard.cli._csv import csv_text  # noqa: PLC0415 - only where it is wanted

    return csv_text(
        _COLUMNS,
        [
            (
                each.rank,
                each.team.id,
                each.team.name,
                each.baseline,
                each.released,
                each.display,
                each.said["since"],
                each.submissions,
                each.said["last"],
            )
            for each in rows
        ],
    )


def _write(path: Path, slug: str, rows: "list[Standing]", *, as_json: bool) -> Path:
    """Put all rows into a file, whole or not at all, and return it; its name says in which form."""
    kind, file = path.suffix.lower(), path
    if kind not in {".csv", ".json"} or path.is_dir():
        kind = ".json" if as_json else ".csv"
        file = path / f"{slug}-leaderboard{kind}"
    told = {"board": slug, "rows": [each.describe() for each in rows]}
    text = json.dumps(told, indent=1) + "\n" if kind == ".json" else _csv(rows)
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".ladderboard-") as folder:
            new = Path(folder, file.name)
            new.write_text(text, encoding="utf-8", newline="")
            new.replace(file)
    except OSError as error:
        raise InvalidSetting(f"{file} cannot be written: {error.strerror}.") from None
    return file
