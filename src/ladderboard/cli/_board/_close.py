"""``ladderboard board close``: closing, the final ranking, the bundle and the site."""

import shlex
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard import server
from ladderboard._formatting import (
    format_column,
    format_confidence,
    format_intervals,
    format_rank,
    format_rank_range,
    format_utc,
    rough_duration,
)
from ladderboard.cli._bundle import (
    confirm_closing,
    describe_bundle,
    describe_parts,
    describe_secrets,
    echo_bundle,
    require_bundle_path,
)
from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    Slug,
    open_board,
    open_database,
    organiser,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json, echo_table, wrap_lines
from ladderboard.errors import (
    InvalidSetting,
    LadderboardError,
    MissingDependency,
    NotOpen,
    StorageFailed,
)

if TYPE_CHECKING:
    from ladderboard.board import Board, Rules
    from ladderboard.ledger import ChainHead
    from ladderboard.server import Site


_CONSEQUENCES = "it accepts no more submissions, and its private split is used up"


def close(
    board: Slug,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="BUNDLE",
            help="The bundle to write, BOARD.bundle if left out; an existing file is not "
            "overwritten.",
        ),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels/--no-labels",
            help="Publish the labels in the bundle, too: no other board can use them afterwards.",
        ),
    ] = False,
    submissions: Annotated[
        bool,
        typer.Option(
            "--submissions/--no-submissions", help="Publish the submissions in the bundle, too."
        ),
    ] = False,
    site: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the board as a static site to this folder, with the bundle in it.",
        ),
    ] = None,
    no_bundle: Annotated[
        bool,
        typer.Option(
            "--no-bundle", help="Write no bundle now; the same command can write it later."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Close a board for good, compute the final ranking, and write the bundle.

    It accepts no more submissions, selections are locked, and the private split is scored once. The
    bundle publishes the noise key, and the exact score and noise of every submission: anyone with
    it can check every score. The holdout cannot be used again, and closing cannot be undone. For a
    closed board this writes the bundle, or the site, again.
    """
    parts = {"labels": labels, "submissions": submissions}
    if no_bundle and (out is not None or any(parts.values())):
        raise InvalidSetting("Leave out --no-bundle, or --out, --labels and --submissions.")
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        default_path = None if no_bundle else Path(f"{board}.bundle")
        path = out if out is not None else default_path if site is None else None
        status = opened.row().status
        if status == "moved" or (status == "closed" and path is None and site is None):
            raise NotOpen(f"{board} is {status} already.")
        if path is not None:
            require_bundle_path(path)
        if site is not None:
            check_site(opened, site, bundle=not no_bundle)
        published = path if site is None or default_path is None else site / default_path
        final = _close_board(opened, published, parts, yes=yes)
        if not as_json:
            _echo_closed(opened, final, before=status == "closed")
        written = None if site is None else write_site(opened, site, parts, bundle=not no_bundle)
        head = None if path is None else _write_bundle(opened, path, parts)
    if as_json:
        bundle = None if path is None or head is None else describe_bundle(path, head, **parts)
        echo_json(
            {
                "board": board,
                "status": "closed",
                "before": status == "closed",
                "finals": final,
                "bundle": bundle,
                "site": None if written is None else written.describe(),
            }
        )
        return
    if path is not None and head is not None:
        echo_bundle(path, head, **parts)
        if written is None:
            _echo_publishing(board, path, parts)
    if written is not None:
        echo_site(written, **parts)


def _close_board(
    board: "Board", path: Path | None, parts: dict[str, bool], *, yes: bool
) -> dict[str, Any] | None:
    """Close a board that is open, and return the final ranking, if it has one.

    Asks for confirmation before closing, and before labels or submissions are published.
    """
    before = board.row().status == "closed"
    if not yes and (not before or any(parts.values())):
        confirm_closing(board.slug, None if before else _CONSEQUENCES, path, **parts)
    if not before:
        board.closer.close(organiser(), sandbox=server.sandbox)
    # As the public sees it: disqualified teams have no rank.
    return None if board.row().final is None else board.as_seen_by(organiser()).finals()


def _echo_closed(board: "Board", final: dict[str, Any] | None, *, before: bool) -> None:
    echo(f"{board.slug} {'was closed before' if before else 'is closed for good'}.")
    deadline, now = board.rules.deadline, time.time()
    if not before and deadline is not None and deadline > now:
        left = rough_duration(int(deadline - now))  # as the pages round it
        echo(f"Its deadline was {left} away: {format_utc(deadline)}.")
    if final is None:
        echo("There is no private split, so the standings are the final ranking.")
    else:
        echo_finals(final, board.rules)


def _echo_publishing(board: str, bundle: Path, parts: dict[str, bool]) -> None:
    """Print how the Verify page, or a site, offers a bundle; paths are real where they are known.

    A site holds a bundle of its own, so its command repeats what this one publishes.
    """
    folder = board if Path(board, "board.yaml").is_file() else "DIR"
    options = "".join(f" --{part}" for part, included in parts.items() if included)
    echo(
        "To offer it to your teams on the Verify page"
        + (", from the board's folder DIR:" if folder == "DIR" else ":"),
        f"  mkdir -p {folder}/data",
        f"  cp {shlex.quote(str(bundle))} {folder}/data/",
        f"  ladderboard board data {board} {folder}",
        "Or on a page of its own:",
        f"  ladderboard board close {board} --site SITE{options}",
    )


def _write_bundle(board: "Board", path: Path, parts: dict[str, bool]) -> "ChainHead":
    """Write the bundle of a closed board."""
    from ladderboard.board import write_board_bundle  # noqa: PLC0415 - keeps --help fast

    try:
        return write_board_bundle(board, path, **parts)
    except LadderboardError as error:
        options = "".join(f" --{part}" for part, included in parts.items() if included)
        raise StorageFailed(
            f"{error} {board.slug} is closed, but its bundle was not written. Fix the problem, "
            f"then write it with: ladderboard board close {board.slug} --out {path}{options}"
        ) from error


def echo_finals(final: dict[str, Any], rules: "Rules") -> None:
    """Print the final ranking."""
    from ladderboard.board import has_useful_intervals  # noqa: PLC0415 - keeps --help fast

    metric, digits = final["display"]["name"], final["display"]["digits"]
    counts = Counter(row["rank"] for row in final["rows"])
    names = [other["name"] for row in final["rows"][:1] for other in row["metrics"]]
    names += ["mean rank"] if final["metric"] == "mean_rank" else []
    shows_intervals = not final["rows"] or has_useful_intervals(final, rules)
    scores = format_column([row["display"] for row in final["rows"]], digits)
    others = _format_metrics([row["metrics"] for row in final["rows"]])
    intervals = format_intervals([(row["low"], row["high"]) for row in final["rows"]], digits)
    sure = format_confidence(final["beta"])
    sentence = f"Final ranking on {final['n']:,} private examples. "
    if shows_intervals:
        sentence += (
            f"With confidence {sure}, all intervals contain the true {metric}. The column ranks "
            f"shows each team's possible ranks; all ranges together hold with confidence {sure}."
        )
    else:
        sentence += (
            "Intervals are not shown: with so few examples each would cover more than 30% of the "
            f"range of {metric}."
        )
    echo(*wrap_lines(sentence, indent="  ", first=""))
    echo_table(
        (
            *("rank", "ranks", "team", metric, *(["interval"] if shows_intervals else [])),
            *(*names, "public rank", "move"),
        ),
        [
            (
                "baseline"
                if row["baseline"]
                else format_rank(row["rank"], tied=counts[row["rank"]] > 1) or None,
                format_rank_range(row["ranks"]),
                row["team"]["name"],
                score,
                *(["[{}, {}]".format(*interval)] if shows_intervals else []),
                *further,
                *(() if row["mean_rank"] is None else (f"{row['mean_rank']:.4g}",)),
                row["public_rank"],
                None if row["move"] is None else f"{row['move']:+d}" if row["move"] else "0",
            )
            for row, score, further, interval in zip(
                final["rows"], scores, others, intervals, strict=True
            )
        ],
        right=("rank", metric, *names, "public rank", "move"),
    )
    for prize in final["prizes"]:
        winners = ", ".join(team["name"] for team in prize["teams"])
        echo(f"{prize['name']}: {winners or 'no team'}")


def _format_metrics(rows: list[list[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """Return the texts of the further metrics of each row, column by column."""
    columns = [
        format_column([metric["display"] for metric in column], column[0]["digits"])
        for column in zip(*rows, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def check_site(board: "Board", site: Path, *, bundle: bool) -> None:
    """Raise if no site can be written; called before anything is closed."""
    try:
        check = server.check_site
    except ImportError as error:
        raise MissingDependency(
            f"--site needs {error.name}: pip install 'ladderboard[server]'. Nothing was changed."
        ) from None
    check(board, site, bundle=bundle)


def write_site(board: "Board", site: Path, parts: dict[str, bool], *, bundle: bool) -> "Site":
    """Write the static site of a closed board."""
    try:
        return server.write_site(board, site, bundle=bundle, **parts)
    except LadderboardError as error:
        options = "".join(f" --{part}" for part, included in parts.items() if included)
        options += "" if bundle else " --no-bundle"
        raise StorageFailed(
            f"{error} {board.slug} is closed, but its site was not written. Fix the problem, "
            f"then write it with: ladderboard board close {board.slug} --site {site}{options}"
        ) from error


def echo_site(site: "Site", **parts: bool) -> None:
    """Print what is in a site, how to look at it, and how to verify it."""
    content = f"{site.folder} holds the board in {site.files} files, for any web server"
    if site.bundle is not None:
        content += f". {site.bundle} in it publishes {describe_secrets(parts)}. "
        content += describe_parts(**parts).removesuffix(".")
    page = site.folder / "index.html"
    echo(*wrap_lines(f"{content}. To see it, open {page}.", indent="  ", first=""))
    if site.bundle is not None:
        echo(
            "Anyone with this file can check every score:",
            f"  ladderboard verify {site.folder / site.bundle} --head {site.head}",
        )
