"""``ladderboard board close``: the end, the final ranking, the bundle and the site."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._formatting import round_outwards
from ladderboard.cli._bundle import (
    SECRETS_OPENED,
    confirm_closing,
    describe_bundle,
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
    from ladderboard.board import Board, DisplayRules
    from ladderboard.ledger import ChainHead
    from ladderboard.server import Site


_CONSEQUENCES = "it takes no more questions, and its private split is used up"


def close(
    board: Slug,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="BUNDLE",
            help="The bundle to make, BOARD.bundle if left out; a file that is there stays.",
        ),
    ] = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels/--no-labels",
            help="Open the labels in the bundle, too: no other board can use them after that.",
        ),
    ] = False,
    submissions: Annotated[
        bool,
        typer.Option(
            "--submissions/--no-submissions", help="Put what teams submitted into the bundle, too."
        ),
    ] = False,
    site: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the board as a site for any web server here, with the bundle in it.",
        ),
    ] = None,
    no_bundle: Annotated[
        bool, typer.Option("--no-bundle", help="Make none; the same command makes it later.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Close a board for good, rank what teams selected, and write the bundle.

    It takes no more questions, selections are locked, and the private split is scored once. The
    bundle opens the noise key, every risk and every draw, so that anybody who gets it can check
    every release. That spends the holdout, so this cannot be undone. Of a board that is closed
    already the bundle, or the site, is written again.
    """
    inside = {"labels": labels, "submissions": submissions}
    if no_bundle and (out is not None or any(inside.values())):
        raise InvalidSetting("--no-bundle makes no bundle; leave --out and what is in it out.")
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        own = None if no_bundle else Path(f"{board}.bundle")
        path = out if out is not None else own if site is None else None
        status = found.row().status
        if status == "moved" or (status == "closed" and path is None and site is None):
            raise NotOpen(f"{board} is {status} already.")
        if path is not None:
            require_bundle_path(path)
        if site is not None:
            check_site(found, site, bundle=not no_bundle)
        opened = path if site is None or own is None else site / own
        final = _close_board(found, opened, inside, yes=yes)
        if not as_json:
            _echo_closed(found, final, before=status == "closed")
        made = None if site is None else write_site(found, site, inside, bundle=not no_bundle)
        head = None if path is None else _write_bundle(found, path, inside)
    if as_json:
        told = None if path is None or head is None else describe_bundle(path, head, **inside)
        before = status == "closed"
        ended = {"status": "closed", "before": before, "finals": final, "bundle": told}
        echo_json({"board": board, **ended, "site": None if made is None else made.describe()})
        return
    if path is not None and head is not None:
        echo_bundle(path, head, **inside)
    if made is not None:
        echo_site(made, **inside)


def _close_board(
    found: "Board", path: Path | None, inside: dict[str, bool], *, yes: bool
) -> dict[str, Any] | None:
    """Close a board, unless it is; return the final ranking, if there is one.

    Who has not said yes is asked before the end, and before labels or submissions are opened.
    """
    before = found.row().status == "closed"
    if not yes and (not before or any(inside.values())):
        confirm_closing(found.slug, None if before else _CONSEQUENCES, path, **inside)
    if not before:
        from ladderboard.server import sandbox  # noqa: PLC0415 - keeps --help fast

        found.closer.close(organiser(), sandbox=sandbox)
    # As everybody sees it: who is disqualified takes no rank.
    return None if found.row().final is None else found.as_seen_by(organiser()).finals()


def _echo_closed(found: "Board", final: dict[str, Any] | None, *, before: bool) -> None:
    echo(f"{found.slug} {'was closed before' if before else 'is closed for good'}.")
    if final is None:
        echo("There is no private split, so the standings are the final ranking.")
    else:
        echo_finals(final, found.rules.display)


def _write_bundle(found: "Board", path: Path, inside: dict[str, bool]) -> "ChainHead":
    """Write the bundle of a board that is closed by now."""
    from ladderboard.board import write_board_bundle  # noqa: PLC0415 - keeps --help fast

    try:
        return write_board_bundle(found, path, **inside)
    except LadderboardError as error:
        more = "".join(f" --{what}" for what, there in inside.items() if there)
        raise StorageFailed(
            f"{error} {found.slug} is closed, but its bundle was not written; mend what is wrong, "
            f"and write it with: ladderboard board close {found.slug} --out {path}{more}"
        ) from error


def echo_finals(final: dict[str, Any], display: "DisplayRules") -> None:
    """Print the final ranking."""
    sentence = (
        f"Final ranking on {final['n']:,} private examples; with probability at least "
        f"{1 - final['beta']:g} every interval holds its team's true {display.name}, and "
        f"with at least {1 - 2 * final['beta']:g} these and the intervals shown before the close."
    )
    echo(*wrap_lines(sentence, indent="  ", first=""))
    echo_table(
        ("rank", "team", display.name, "interval", "public rank", "move"),
        [
            (
                "baseline" if each["baseline"] else each["rank"],
                each["team"]["name"],
                display.text(each["loss"]),
                "[{}, {}]".format(*round_outwards(each["low"], each["high"], display.digits)),
                each["public_rank"],
                None if each["move"] is None else f"{each['move']:+d}" if each["move"] else "0",
            )
            for each in final["rows"]
        ],
        right=("rank", display.name, "public rank", "move"),
    )


def check_site(board: "Board", site: Path, *, bundle: bool) -> None:
    """Refuse, before anything is closed, what no site can be made of or in."""
    _import_server().check_site(board, site, bundle=bundle)


def _import_server() -> Any:
    try:
        from ladderboard import server  # noqa: PLC0415 - an extra
        from ladderboard.server import write_site as _  # noqa: F401, PLC0415 - same
    except ImportError as error:
        raise MissingDependency(
            f"--site needs {error.name}: pip install 'ladderboard[server]'. Nothing was changed."
        ) from None
    return server


def write_site(board: "Board", site: Path, inside: dict[str, bool], *, bundle: bool) -> "Site":
    """Write the site of a board that is closed by now."""
    try:
        made: Site = _import_server().write_site(board, site, bundle=bundle, **inside)
    except LadderboardError as error:
        more = "".join(f" --{what}" for what, there in inside.items() if there)
        more += "" if bundle else " --no-bundle"
        raise StorageFailed(
            f"{error} {board.slug} is closed, but its site was not written; mend what is wrong, "
            f"and write it with: ladderboard board close {board.slug} --site {site}{more}"
        ) from error
    return made


def echo_site(made: "Site", **inside: bool) -> None:
    """Tell what is in a site, how to look at it, and how anybody can check it."""
    more = "".join(f", the {what}" for what, there in inside.items() if there)
    told = f"{made.folder} holds the board in {made.files} files, for any web server to host"
    if made.bundle is not None:
        told += f"; {made.bundle} in it opens {SECRETS_OPENED}{more}, for everybody who comes there"
    page = made.folder / "index.html"
    echo(*wrap_lines(f"{told}. Open {page} to see it.", indent="  ", first=""))
    if made.bundle is not None:
        echo(
            "Whoever comes there can check every release:",
            f"  ladderboard verify {made.bundle} --head {made.head}",
        )
