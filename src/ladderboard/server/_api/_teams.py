"""Routes of teams: registration, status, tokens and selections."""

from typing import Annotated

from fastapi import Query, Request, Response

from ladderboard.board import Role
from ladderboard.server._api._models import (
    Choice,
    NewTeam,
    Registration,
    SelectionList,
    Team,
    TeamList,
)
from ladderboard.server._api._routes import Slug, make_router, private_route, public_route
from ladderboard.server._context import get_context, make_response, open_board
from ladderboard.server._rate_limits import client_address

router = make_router("teams")


@router.post(
    "/boards/{board}/teams",
    status_code=201,
    response_model=NewTeam,
    **public_route(408, 409, 413, 415, tagged=False),
)
def register_team(request: Request, board: Slug, wanted: Registration) -> Response:
    """Register a team; its token is told here, and never again."""
    context = get_context(request)
    opened, caller = open_board(request, board)
    if caller.role < Role.ORGANISER:
        context.registration_limiter.check(client_address(request))
        context.registration_limiter.record(client_address(request))
    team_with_token = opened.teams.register_or_create(caller, wanted.name, wanted.invitation)
    return make_response(request, team_with_token._asdict(), 201)


@router.get("/boards/{board}/teams", response_model=TeamList, **private_route())
def list_teams(
    request: Request,
    board: Slug,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")] = 100,
    after: Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before.")] = 0,
) -> Response:
    """Return all teams, for evaluators and organisers."""
    opened, caller = open_board(request, board)
    teams = opened.as_seen_by(caller).teams(limit=limit, after=after)
    next_cursor = teams[-1]["number"] if len(teams) == limit else None
    return make_response(request, {"teams": teams, "next": next_cursor})


@router.get("/boards/{board}/team", response_model=Team, **private_route())
def get_team(request: Request, board: Slug) -> Response:
    """Return one's own affairs: limits, release, and when the next question may come."""
    opened, caller = open_board(request, board)
    status = opened.as_seen_by(caller).team()
    return make_response(request, status)


@router.post("/boards/{board}/team/token", response_model=NewTeam, **private_route())
def rotate_own_token(request: Request, board: Slug) -> Response:
    """Give one's own team another token; the old one ends, with its sessions."""
    opened, caller = open_board(request, board)
    team_with_token = opened.teams.rotate_token(caller)
    return make_response(request, team_with_token._asdict())


@router.get("/boards/{board}/selections", response_model=SelectionList, **private_route())
def get_selections(request: Request, board: Slug) -> Response:
    """Return what one's own team selected for the finals; nothing: its default."""
    opened, caller = open_board(request, board)
    submissions = opened.as_seen_by(caller).selections()
    return make_response(request, {"submissions": submissions})


@router.put(
    "/boards/{board}/selections", response_model=SelectionList, **private_route(408, 409, 413, 415)
)
def select(request: Request, board: Slug, wanted: Choice) -> Response:
    """Select submissions for the finals, in place of those selected before."""
    opened, caller = open_board(request, board)
    opened.closer.select_submissions(caller, wanted.submissions)
    submissions = opened.as_seen_by(caller).selections()
    return make_response(request, {"submissions": submissions})
