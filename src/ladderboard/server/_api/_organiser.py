"""Routes of organisers: tokens, invitations, disqualification, pausing, amending, closing."""

from fastapi import Request, Response

from ladderboard.board import Board, Caller, Role
from ladderboard.server._api._models import (
    Amendment,
    BoardSummary,
    Charge,
    Days,
    Finals,
    Invitation,
    NewTeam,
    NewToken,
    State,
    TokenList,
    Trust,
)
from ladderboard.server._api._routes import Slug, TeamId, TokenId, make_router, private_route
from ladderboard.server._context import get_context, make_response
from ladderboard.server._sandbox import sandbox

router = make_router("organiser")
_NOTHING = {204: {"description": "Done."}}
_SILENT = private_route()
_SILENT["responses"] |= _NOTHING


@router.post("/boards/{board}/teams/{team}/token", response_model=NewTeam, **private_route())
async def rotate_team_token(request: Request, board: Slug, team: TeamId) -> Response:
    """Give a team another token; the old one ends, with its sessions."""
    team_with_token = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.rotate_token(caller, team)
    )
    return make_response(request, team_with_token._asdict())


@router.delete(
    "/boards/{board}/teams/{team}/token", status_code=204, response_class=Response, **_SILENT
)
async def revoke_team_token(request: Request, board: Slug, team: TeamId) -> Response:
    """End a team's token, with its sessions."""
    await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.revoke_team_tokens(caller, team)
    )
    return _no_content()


@router.put(
    "/boards/{board}/teams/{team}/disqualification",
    status_code=204,
    response_class=Response,
    **_SILENT,
)
async def disqualify_team(request: Request, board: Slug, team: TeamId) -> Response:
    """Take a team off what is shown; no ladder, meter or state changes."""
    await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.disqualify(caller, team)
    )
    return _no_content()


@router.delete(
    "/boards/{board}/teams/{team}/disqualification",
    status_code=204,
    response_class=Response,
    **_SILENT,
)
async def reinstate_team(request: Request, board: Slug, team: TeamId) -> Response:
    """Show a team again."""
    await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.disqualify(caller, team, reinstate=True)
    )
    return _no_content()


@router.post(
    "/boards/{board}/invitations",
    status_code=201,
    response_model=Invitation,
    **private_route(408, 413, 415),
)
async def invite(request: Request, board: Slug, wanted: Days | None = None) -> Response:
    """Make an invitation for one team."""
    days = 7.0 if wanted is None else wanted.days
    invitation = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.invite(caller, days=days)
    )
    return make_response(request, {"invitation": invitation}, 201)


@router.post(
    "/boards/{board}/tokens",
    status_code=201,
    response_model=NewToken,
    **private_route(408, 413, 415),
)
async def create_token(request: Request, board: Slug, wanted: Trust) -> Response:
    """Make a token for an evaluator or another organiser of this board."""
    role = Role[wanted.role.upper()]
    token = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.issue_staff_token(caller, role)
    )
    return make_response(request, {"token": token}, 201)


@router.get("/boards/{board}/tokens", response_model=TokenList, **private_route())
async def list_tokens(request: Request, board: Slug) -> Response:
    """Return which tokens and invitations of this board are good, without telling them."""
    tokens = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.list_tokens(caller)
    )
    return make_response(request, {"tokens": tokens})


@router.delete(
    "/boards/{board}/tokens/{token}", status_code=204, response_class=Response, **_SILENT
)
async def revoke_token(request: Request, board: Slug, token: TokenId) -> Response:
    """End a token or an invitation of this board, with its sessions."""
    await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.revoke_token(caller, token)
    )
    return _no_content()


@router.post("/boards/{board}/pause", response_model=State, **private_route(409))
async def pause_board(request: Request, board: Slug) -> Response:
    """Take no questions until further notice."""

    def pause(opened: Board, caller: Caller) -> str:
        opened.amendments.pause(caller)
        return opened.row().status

    status = await get_context(request).with_board(request, board, pause)
    return make_response(request, {"board": board, "status": status})


@router.post("/boards/{board}/resume", response_model=State, **private_route(408, 409, 413, 415))
async def resume_board(request: Request, board: Slug, wanted: Charge | None = None) -> Response:
    """Go on; after a restore, `charge` says how many questions may have been lost."""
    charge = None if wanted is None else wanted.charge

    def resume(opened: Board, caller: Caller) -> str:
        opened.amendments.resume(caller, charge)
        return opened.row().status

    status = await get_context(request).with_board(request, board, resume)
    return make_response(request, {"board": board, "status": status})


@router.patch(
    "/boards/{board}/rules", response_model=BoardSummary, **private_route(408, 409, 413, 415)
)
async def amend_rules(request: Request, board: Slug, changes: Amendment) -> Response:
    """Change deadlines, limits, the budget, texts or who sees what; all of it is in the ledger."""

    def amend(opened: Board, caller: Caller) -> dict[str, object]:
        opened.amendments.amend(caller, changes.root)
        return opened.as_seen_by(caller).summary()

    return make_response(request, await get_context(request).with_board(request, board, amend))


_CLOSE = private_route(409)
_CLOSE["responses"][200] = {"description": "The final ranking; null without a private split."}


@router.post("/boards/{board}/close", response_model=Finals | None, **_CLOSE)
async def close_board(request: Request, board: Slug) -> Response:
    """End the board for good, and score what was selected on the private split, once."""

    def close(opened: Board, caller: Caller) -> dict[str, object] | None:
        final = opened.closer.close(caller, sandbox=sandbox)
        return None if final is None else opened.as_seen_by(caller).finals()

    return make_response(request, await get_context(request).with_board(request, board, close))


def _no_content() -> Response:
    return Response(status_code=204, headers={"Cache-Control": "private, no-store"})
