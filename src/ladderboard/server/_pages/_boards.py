"""The page of all boards."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import PUBLIC, Board, Caller
from ladderboard.server._context import work_of
from ladderboard.server._pages._page import show
from ladderboard.server._pages._words import is_over, state_of, until

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_MANY = 48


@router.get("/")
async def boards_page(request: Request) -> Response:
    """Show all boards, as everybody sees them, a page at a time: those that are open first."""
    work = work_of(request)
    now = int(work.boards.world.clock())
    page = _page_number(request.query_params.get("page", "1"))

    def look(_: Board | None, __: Caller) -> list[dict[str, Any]]:
        slugs = work.boards.open_first(_MANY + 1, _MANY * (page - 1))
        found = [work.boards.open(each).as_seen_by(PUBLIC).summary() for each in slugs]
        return [_card(each, now) for each in found]

    cards = await work.on_page(request, None, look)
    later = page + 1 if len(cards) > _MANY else None
    cards = sorted(cards[:_MANY], key=lambda card: card["state"].word != "open")
    return show(request, "boards.html", cards=cards, page=page, later=later)


def _page_number(said: str) -> int:
    """Return a page that may be there; the first, for what is none."""
    known = said.isascii() and said.isdigit() and len(said) < 7
    return max(int(said), 1) if known else 1


def _card(board: dict[str, Any], now: int) -> dict[str, Any]:
    deadline = board["deadline"]
    return {
        "board": board,
        "state": state_of(board, now),
        "over": is_over(board),
        "away": None if deadline is None else until(deadline, now),
    }
