"""The page to join a board with: a name, where it takes one an invitation, and then a token."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import Board, Caller, NewTeam, Role, token_hash
from ladderboard.errors import LadderboardError
from ladderboard.server._api import Slug
from ladderboard.server._context import work_of
from ladderboard.server._pages._form import read_form
from ladderboard.server._pages._page import show
from ladderboard.server._pages._refused import trouble_of
from ladderboard.server._problems import Refused
from ladderboard.server._rate_limits import address_of

__all__ = ["router"]

router = APIRouter(include_in_schema=False)


@router.get("/boards/{board}/join")
async def join_page(request: Request, board: Slug) -> Response:
    """Show how one becomes a team."""
    return show(request, "join.html", **await _look(request, board))


async def _look(request: Request, slug: str) -> dict[str, Any]:
    def look(found: Board | None, caller: Caller) -> dict[str, Any]:
        assert found is not None  # noqa: S101 - it was asked for
        view = found.as_seen_by(caller)
        return {
            "board": view.summary(),
            "role": caller.role.name.lower(),
            "team": None if caller.team is None else view.team(),
            "trouble": None,
            "made": None,
            "typed": "",
        }

    return await work_of(request).on_page(request, slug, look)


@router.post("/boards/{board}/join")
async def register_page(request: Request, board: Slug) -> Response:
    """Make a team, show its token once, and sign this browser in as that team."""
    work, form = work_of(request), await read_form(request)
    name, invitation = form.get("name", ""), form.get("invitation", "").strip() or None

    def make(found: Board | None, caller: Caller) -> NewTeam:
        assert found is not None  # noqa: S101 - it was asked for
        return found.seats.admit(caller, name, invitation)

    caller = await work.on_page(request, board, lambda _, caller: caller)
    try:
        if caller.role < Role.ORGANISER:
            work.registrations.check(address_of(request))
            work.registrations.spend(address_of(request))
        made = await work.on_page(request, board, make)
    except (LadderboardError, Refused) as error:
        trouble = trouble_of(error)
        what = await _look(request, board)
        page = show(
            request, "join.html", trouble.status, **{**what, "trouble": trouble, "typed": name[:64]}
        )
        if trouble.retry is not None:
            page.headers["Retry-After"] = trouble.retry
        return page
    # An organiser stays who they are.
    begun = None
    if caller.role < Role.EVALUATOR:
        begun = work.sessions.start(token_hash(made.token))
    what = {**await _look(request, board), "made": made}
    return show(request, "join.html", 201, begun=begun, **what)
