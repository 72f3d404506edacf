"""The page of all boards."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import PUBLIC, Board, Caller
from ladderboard.server._pages._page import show
from ladderboard.server._pages._words import is_over, state_of, until
from ladderboard.server._work import work_of

__all__ = ["router"]

router = APIRouter(include_in_schema=False)


@router.get("/")
async def boards_page(request: Request) -> Response:
    """Show all boards, as everybody sees them: those that are open first."""
    work = work_of(request)
    now = int(work.boards.world.clock())

    def look(_: Board | None, __: Caller) -> list[dict[str, Any]]:
        found = [work.boards.open(each).as_seen_by(PUBLIC).summary() for each in work.boards.list()]
        return [_card(each, now) for each in found]

    cards = await work.on_page(request, None, look)
    cards.sort(key=lambda card: card["state"].word != "open")
    return show(request, "boards.html", cards=cards)


def _card(board: dict[str, Any], now: int) -> dict[str, Any]:
    deadline = board["deadline"]
    return {
        "board": board,
        "state": state_of(board, now),
        "over": is_over(board),
        "away": None if deadline is None else until(deadline, now),
    }
