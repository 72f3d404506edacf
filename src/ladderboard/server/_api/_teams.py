"""Routes of teams: registration, status, tokens and selections."""

from typing import Annotated, Any

from fastapi import Query, Request, Response

from ladderboard.board import Board, Caller, Role, TeamWithToken
from ladderboard.server._api._models import (
    Choice,
    NewTeam,
    Registration,
    SelectionList,
    Team,
    TeamList,
)
from ladderboard.server._api._routes import Slug, make_router, private_route, public_route
from ladderboard.server._context import get_context, make_response
from ladderboard.server._rate_limits import client_address

router = make_router("teams")


@router.post(
    "/boards/{board}/teams",
    status_code=201,
    response_model=NewTeam,
    **public_route(408, 409, 413, 415, tagged=False),
)
async def register_team(request: Request, board: Slug, wanted: Registration) -> Response:
    """Register a team; its token is told here, and never again."""
    context = get_context(request)
    caller = await context.with_board(request, board, lambda _, caller: caller)
    if caller.role < Role.ORGANISER:
        context.registration_limiter.check(client_address(request))
        context.registration_limiter.record(client_address(request))

    def make() -> TeamWithToken:
        return context.boards.open(board).teams.register_or_create(
            caller, wanted.name, wanted.invitation
        )

    team_with_token = await context.run_in_thread(make)
    return make_response(request, team_with_token._asdict(), 201)


@router.get("/boards/{board}/teams", response_model=TeamList, **private_route())
async def list_teams(
    request: Request,
    board: Slug,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")] = 100,
    after: Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before.")] = 0,
) -> Response:
    """Return all teams, for evaluators and organisers."""

    def read(opened: Board, caller: Caller) -> list[dict[str, Any]]:
        return opened.as_seen_by(caller).teams(limit=limit, after=after)

    teams = await get_context(request).with_board(request, board, read)
    next_cursor = teams[-1]["number"] if len(teams) == limit else None
    return make_response(request, {"teams": teams, "next": next_cursor})


@router.get("/boards/{board}/team", response_model=Team, **private_route())
async def get_team(request: Request, board: Slug) -> Response:
    """Return one's own affairs: limits, release, and when the next question may come."""
    status = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.as_seen_by(caller).team()
    )
    return make_response(request, status)


@router.post("/boards/{board}/team/token", response_model=NewTeam, **private_route())
async def rotate_own_token(request: Request, board: Slug) -> Response:
    """Give one's own team another token; the old one ends, with its sessions."""
    team_with_token = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.teams.rotate_token(caller)
    )
    return make_response(request, team_with_token._asdict())


@router.get("/boards/{board}/selections", response_model=SelectionList, **private_route())
async def get_selections(request: Request, board: Slug) -> Response:
    """Return what one's own team selected for the finals; nothing: its default."""
    submissions = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.as_seen_by(caller).selections()
    )
    return make_response(request, {"submissions": submissions})


@router.put(
    "/boards/{board}/selections", response_model=SelectionList, **private_route(408, 409, 413, 415)
)
async def select(request: Request, board: Slug, wanted: Choice) -> Response:
    """Select submissions for the finals, in place of those selected before."""

    def choose(opened: Board, caller: Caller) -> list[str]:
        opened.closer.select_submissions(caller, wanted.submissions)
        return opened.as_seen_by(caller).selections()

    submissions = await get_context(request).with_board(request, board, choose)
    return make_response(request, {"submissions": submissions})
