"""Joining a board, signing in and signing out."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import Board, Caller, Role, TeamWithToken, hash_token
from ladderboard.errors import LadderboardError
from ladderboard.server._api import Slug
from ladderboard.server._auth import Credentials, InvalidToken
from ladderboard.server._context import ServerContext, get_context
from ladderboard.server._pages._rendering import page_response, read_form, redirect
from ladderboard.server._pages._reply import page_problem
from ladderboard.server._problems import RequestRefused
from ladderboard.server._rate_limits import client_address

router = APIRouter(include_in_schema=False)


@router.get("/boards/{board}/join")
async def join_page(request: Request, board: Slug) -> Response:
    """Show the form to register a team."""
    return page_response(request, "join.html", **await _read_join_page(request, board))


async def _read_join_page(request: Request, slug: str) -> dict[str, Any]:
    def read(board: Board, caller: Caller) -> dict[str, Any]:
        view = board.as_seen_by(caller)
        return {
            "board": view.summary(),
            "role": caller.role.name.lower(),
            "team": None if caller.team is None else view.team(),
            "problem": None,
            "new_team": None,
            "typed_name": "",
        }

    return await get_context(request).for_page(request, slug, read)


@router.post("/boards/{board}/join")
async def register_team(request: Request, board: Slug) -> Response:
    """Register a team, show its token once, and sign the browser in as that team."""
    context, form = get_context(request), await read_form(request)
    name, invitation = form.get("name", ""), form.get("invitation", "").strip() or None

    def create_team(opened_board: Board, caller: Caller) -> TeamWithToken:
        return opened_board.teams.register_or_create(caller, name, invitation)

    caller = await context.for_page(request, board, lambda _, caller: caller)
    try:
        if caller.role < Role.ORGANISER:
            context.registration_limiter.check(client_address(request))
            context.registration_limiter.record(client_address(request))
        new_team = await context.for_page(request, board, create_team)
    except (LadderboardError, RequestRefused) as error:
        problem = page_problem(error)
        variables = await _read_join_page(request, board)
        page = page_response(
            request,
            "join.html",
            problem.status,
            **{**variables, "problem": problem, "typed_name": name[:64]},
        )
        if problem.retry is not None:
            page.headers["Retry-After"] = problem.retry
        return page
    # Organisers and evaluators stay signed in as themselves.
    new_session = None
    if caller.role < Role.EVALUATOR:
        new_session = context.sessions.start(hash_token(new_team.token))
    variables = {**await _read_join_page(request, board), "new_team": new_team}
    return page_response(request, "join.html", 201, new_session=new_session, **variables)


@router.get("/login")
async def login_page(request: Request) -> Response:
    """Show the sign-in form."""
    return page_response(
        request, "login.html", refused=False, next=request.query_params.get("next", "")
    )


@router.post("/session")
async def sign_in(request: Request) -> Response:
    """Start a session with a token."""
    context, form = get_context(request), await read_form(request)
    credentials = Credentials(hash_token(form.get("token", "").strip()))
    context.authenticator.check(request, credentials, form=True)
    default_path = await context.run_in_thread(lambda: _default_page(context, credentials))
    next_path = form.get("next", "")
    if default_path is None:
        refused = context.authenticator.reject_token(request, credentials)
        if refused.status != 401:
            raise refused
        return page_response(request, "login.html", 401, refused=True, next=next_path)
    response = redirect(request, _safe_redirect_path(next_path, default_path))
    context.sessions.set_session_cookie(
        request, response, context.sessions.start(credentials.token_hash)
    )
    return response


def _default_page(context: ServerContext, credentials: Credentials) -> str | None:
    """Return the page to show after signing in; None if the token is not valid."""
    try:
        caller, slug = context.authenticator.default_board(credentials)
    except InvalidToken:
        return None
    if caller.role == Role.PUBLIC:
        return None
    return "/" if slug is None else f"/boards/{slug}"


def _safe_redirect_path(path: str, default_path: str) -> str:
    """Return the path if it is a board page of this server, else the default."""
    is_plain = path.isascii() and path.isprintable() and not {"\\", "%"} & set(path)
    is_board_page = path.startswith("/boards/") and "//" not in path and ".." not in path
    return path if is_plain and is_board_page and len(path) < 200 else default_path


@router.post("/session/end")
async def sign_out(request: Request) -> Response:
    """End a session."""
    context, _ = get_context(request), await read_form(request)
    response = redirect(request, "/")
    context.sessions.clear_session_cookie(request, response)
    return response
