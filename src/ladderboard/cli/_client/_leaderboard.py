"""``ladderboard leaderboard``: the standings of a board, shown or downloaded."""

import json
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._formatting import (
    format_column,
    format_count,
    format_decimals,
    format_fixed,
    format_rank,
    format_rank_range,
    shared_decimals,
)
from ladderboard.cli._client._options import AsCsv, BoardName, Insecure, Quiet, Url, open_client
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json, echo_table, format_csv, format_minute
from ladderboard.errors import InvalidSetting, NotFound

if TYPE_CHECKING:
    from ladderboard.client import BoardInfo, Client, FinalRanking, LeaderboardRow

_MAX_ROWS = 20
_COLUMNS = (
    "rank", "team", "name", "baseline", "released", "shown", "since", "submissions", "last",
    "loss", "proven",
)  # fmt: skip


def leaderboard(
    board: BoardName,
    *,
    show: Annotated[
        bool, typer.Option("-s", "--show", help="Show the top; the default without -d.")
    ] = False,
    download: Annotated[
        bool, typer.Option("-d", "--download", help="Write all rows to a file.")
    ] = False,
    path: Annotated[
        Path | None,
        typer.Option(
            "-p",
            "--path",
            metavar="PATH",
            help="Write all rows to this folder, or this .csv or .json file.",
        ),
    ] = None,
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Show the standings of a board, or download them.

    The table shows the top, and for a closed board the final ranking below it; CSV, JSON and a
    download have all rows.
    """
    with open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug):
        download = download or path is not None
        all_rows = download or as_csv or as_json
        rows = list(islice(client.leaderboard(slug), None if all_rows else _MAX_ROWS + 1))
        about = client.board(slug)
        final = _fetch_finals(client, about)
        page = f"{client.url}/boards/{slug}"
    if download:
        file = _write_standings(path or Path(), slug, rows, as_json=as_json)
        if as_json:
            echo_json({"file": str(file), "rows": len(rows)})
        elif not quiet:
            echo(f"{file} holds the standings, {format_count(len(rows), 'row')}.")
    elif as_json:
        echo_json(
            {
                "board": slug,
                "status": about.status,
                "rows": [row.describe() for row in rows],
                "finals": None if final is None else final.describe(),
            }
        )
    elif as_csv:
        echo(*_standings_csv(rows).rstrip("\n").split("\n"))
    if (show or not download) and not (as_json or as_csv):
        _echo_standings(about, rows, quiet=quiet)
        _echo_finals(about, final, page, quiet=quiet)


def _fetch_finals(client: "Client", board: "BoardInfo") -> "FinalRanking | None":
    """Return the final ranking of a closed board; None if it has none."""
    if board.status != "closed":
        return None
    try:
        return client.finals(board.slug)
    except NotFound:  # no row was private
        return None


def _echo_finals(
    board: "BoardInfo", final: "FinalRanking | None", page: str, *, quiet: bool
) -> None:
    """Print that a board is closed, and its final ranking."""
    if board.status != "closed":
        return
    if final is None:
        if not quiet:
            echo(f"{board.slug} is closed; these standings are the final ranking.")
        return
    if not quiet:
        echo("", f"{board.slug} is closed. The final ranking, on {final.n:,} private examples:")
    counts = Counter(row.rank for row in final.rows)
    display = final.display or board.display
    names = [metric.name for row in final.rows[:1] for metric in row.metrics]
    names += ["mean rank"] if final.metric == "mean_rank" else []
    scores = format_column([row.display for row in final.rows], display.digits)
    columns = [
        format_column([metric.display for metric in column], column[0].digits)
        for column in zip(*(row.metrics for row in final.rows), strict=True)
    ]
    others = list(zip(*columns, strict=True)) if columns else [()] * len(final.rows)
    echo_table(
        ("rank", "ranks", "team", display.name, *names, "public rank", "move"),
        [
            (
                "baseline"
                if row.baseline
                else format_rank(row.rank, tied=counts[row.rank] > 1) or None,
                format_rank_range(row.ranks),
                row.team.id if row.team.name is None else row.team.name,
                score,
                *further,
                *(() if row.mean_rank is None else (f"{row.mean_rank:.4g}",)),
                row.public_rank,
                None if row.move is None else f"{row.move:+d}" if row.move else "0",
            )
            for row, score, further in islice(
                zip(final.rows, scores, others, strict=True), _MAX_ROWS
            )
        ],
        right=("rank", display.name, *names, "public rank", "move"),
    )
    for prize in final.prizes:
        winners = ", ".join(team.name or team.id for team in prize.teams)
        echo(f"{prize.name}: {winners or 'no team'}")
    if not quiet:
        rows = f"These are the first {_MAX_ROWS}; all" if len(final.rows) > _MAX_ROWS else "All"
        echo(f"{rows}, with intervals: {page}")


def _echo_standings(board: "BoardInfo", rows: "list[LeaderboardRow]", *, quiet: bool) -> None:
    declared = [baseline for baseline in board.baselines if "display" in baseline]
    if not rows and not quiet:
        command = f"ladderboard submit {board.slug} -f FILE"
        echo(
            f"There are no submissions yet. To submit: {command}"
            if board.status == "open"
            else "There are no submissions."
        )
    if not rows and not declared:
        return
    scores = [row.display for row in rows] + [baseline["display"] for baseline in declared]
    decimals = shared_decimals(
        (score for score in scores if score is not None), board.display.digits
    )
    names = [metric.name for row in rows[:1] for metric in row.metrics]
    by_mean = board.leaderboard_metric == "mean_rank"
    marked = any(row.proven for row in rows)
    lines: list[tuple[float | None, tuple[object, ...]]] = [
        (
            row.loss,
            (
                "baseline" if row.baseline else format_rank(row.rank, tied=row.tied) or None,
                _format_team(row),
                None if row.display is None else format_fixed(row.display, decimals),
                f"{row.submissions:,}",
                format_minute(row.raw["since"]),
                *(
                    None
                    if metric.display is None
                    else format_decimals(metric.display, metric.digits)
                    for metric in row.metrics
                ),
                *([_format_mean_rank(row)] if by_mean else []),
                *(["yes" if row.proven else None] if marked else []),
            ),
        )
        for row in rows
    ]
    for baseline in declared:  # inserted by their loss
        value, source = baseline["loss"], baseline.get("source")
        name = f"{baseline['name']} ({source})" if source else baseline["name"]
        value_text = format_fixed(baseline["display"], decimals)
        cells = ("baseline", name, value_text, *[None] * (2 + len(names) + by_mean + marked))
        worse = (index for index, (loss, _) in enumerate(lines) if loss is None or loss > value)
        # By mean rank a number of one metric has no place among the teams.
        lines.insert(len(lines) if by_mean else next(worse, len(lines)), (value, cells))
    names += ["mean rank"] if by_mean else []
    echo_table(
        (
            *("rank", "team", board.display.name, "submissions", "since (UTC)", *names),
            *(["proven"] if marked else []),
        ),
        [line for _, line in lines[:_MAX_ROWS]],
        right=("rank", board.display.name, "submissions", *names),
    )
    if len(rows) > _MAX_ROWS and not quiet:
        command = f"ladderboard leaderboard {board.slug} --download"
        echo(f"These are the first {_MAX_ROWS}; for all rows: {command}")


def _format_team(row: "LeaderboardRow") -> str:
    """Return a team's name, or its id on anonymous boards; marks the caller's own team."""
    name = row.team.id if row.team.name is None else row.team.name
    return f"{name} (you)" if row.you else name


def _format_mean_rank(row: "LeaderboardRow") -> str | None:
    return None if row.mean_rank is None else f"{row.mean_rank:.4g}"


def _standings_csv(rows: "list[LeaderboardRow]") -> str:
    names = [metric.name for row in rows[:1] for metric in row.metrics]
    by_mean = any(row.mean_rank is not None for row in rows)
    names += ["mean_rank"] if by_mean else []
    return format_csv(
        (*_COLUMNS, *names),
        [
            (
                row.rank,
                row.team.id,
                row.team.name,
                row.baseline,
                row.released,
                row.display,
                row.raw["since"],
                row.submissions,
                row.raw["last"],
                row.loss,
                row.proven,
                *(metric.released for metric in row.metrics),
                *([row.mean_rank] if by_mean else []),
            )
            for row in rows
        ],
    )


def _write_standings(path: Path, slug: str, rows: "list[LeaderboardRow]", *, as_json: bool) -> Path:
    """Write all rows to a file atomically, as CSV or JSON by its suffix, and return its path."""
    kind, file = path.suffix.lower(), path
    if kind not in {".csv", ".json"} or path.is_dir():
        kind = ".json" if as_json else ".csv"
        file = path / f"{slug}-leaderboard{kind}"
    content = {"board": slug, "rows": [row.describe() for row in rows]}
    text = json.dumps(content, indent=1) + "\n" if kind == ".json" else _standings_csv(rows)
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".ladderboard-") as folder:
            new = Path(folder, file.name)
            new.write_text(text, encoding="utf-8", newline="")
            new.replace(file)
    except OSError as error:
        raise InvalidSetting(f"{file} cannot be written: {error.strerror}.") from None
    return file
