"""What a team changes about itself: its selection for the finals, and its token."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import Board, Caller, NewTeam, token_hash
from ladderboard.errors import LadderboardError
from ladderboard.server._api import Slug
from ladderboard.server._context import work_of
from ladderboard.server._pages._form import read_fields, read_form
from ladderboard.server._pages._page import see
from ladderboard.server._pages._refused import trouble_of
from ladderboard.server._pages._submit import Said, show_submit
from ladderboard.server._problems import Refused

__all__ = ["router"]

router = APIRouter(include_in_schema=False)


@router.post("/boards/{board}/selections")
async def select_page(request: Request, board: Slug) -> Response:
    """Select submissions for the finals, in place of those selected before."""
    fields = await read_fields(request)
    wanted = [value for name, value in fields if name == "submission"]

    def choose(found: Board, caller: Caller) -> None:
        found.finishing.choose(caller, wanted)

    try:
        await work_of(request).on_board(request, board, choose, form=True)
    except (LadderboardError, Refused) as error:
        return await show_submit(request, board, Said(trouble=trouble_of(error)))
    return see(request, f"/boards/{board}/submit#finals")


@router.post("/boards/{board}/token")
async def token_page(request: Request, board: Slug) -> Response:
    """Give one's own team another token, which is shown once; this browser stays signed in."""
    work, _ = work_of(request), await read_form(request)

    def rotate(found: Board, caller: Caller) -> NewTeam:
        return found.seats.rotate(caller)

    try:
        made = await work.on_board(request, board, rotate, form=True)
    except (LadderboardError, Refused) as error:
        return await show_submit(request, board, Said(trouble=trouble_of(error)))
    begun = work.sessions.start(token_hash(made.token))
    return await show_submit(request, board, Said(token=made.token, begun=begun))
