"""The pages of an archive: a closed board as everybody sees it, without a server behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.server._pages._board import told_to_all
from ladderboard.server._pages._page import render
from ladderboard.server._pages._static import content_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board import Board

__all__ = ["LEDGER", "Archive", "archive_looks", "archive_pages"]

LEDGER = "ledger.jsonl"
_LOOKS = ("icon.svg", "style.css")
_FILES = {
    "csv": "standings.csv",
    "json": "standings.json",
    "records": "records.json",
    "finals": "finals.json",
    "finals_csv": "finals.csv",
    "ledger": LEDGER,
    "board": "board.json",
    "first": "index.html",
}
# As the server's own, but that nothing is run, sent or asked for; a file is its own place.
_POLICY = (
    "default-src 'none'; style-src 'self' file:; img-src 'self' file:; form-action 'none'; "
    "base-uri 'none'"
)


class Archive(NamedTuple):
    """What an archive tells of itself: when the board closed, and what opens it."""

    closed: str | None
    bundle: str | None
    labels: bool = False
    submissions: bool = False


def archive_looks() -> Iterator[tuple[str, bytes]]:
    """Yield the files that the pages look nice with; there is no script among them."""
    return ((f"static/{name}", content_of(name)) for name in _LOOKS)


def archive_pages(board: Board, archive: Archive) -> Iterator[tuple[str, bytes]]:
    """Yield every page: the board's own, and one for each further page of its standings."""
    now = int(board.book.world.clock())
    number, cursor = 1, None
    while number == 1 or cursor is not None:
        told = told_to_all(board, cursor, now)
        cursor = None if told["standings"] is None else told["standings"]["next"]
        yield _page_name(number), _written(told, archive, _page_name(number + 1))
        number += 1


def _page_name(number: int) -> str:
    return _FILES["first"] if number == 1 else f"standings-{number}.html"


def _written(told: dict[str, Any], archive: Archive, following: str) -> bytes:
    files = {**_FILES, "next": following}
    more = {
        "closed": "for good",  # how long ago it was is another thing every day
        "archive": {**archive._asdict(), "files": files, "policy": _POLICY},
        "root": "",
        "static": lambda name: f"static/{name}",
    }
    return render("board.html", **{**told, **more}).encode()
