"""Joining a board, signing in and signing out."""

from typing import Any

from fastapi import Depends, Request
from starlette.responses import Response

from ladderboard.board import Role, hash_token
from ladderboard.errors import LadderboardError
from ladderboard.server._api import Slug
from ladderboard.server._auth import Credentials, InvalidToken
from ladderboard.server._context import ServerContext, get_context, open_page
from ladderboard.server._pages._rendering import (
    Form,
    page_response,
    page_router,
    read_form,
    redirect,
)
from ladderboard.server._pages._reply import page_problem
from ladderboard.server._problems import RequestRefused
from ladderboard.server._rate_limits import client_address

router = page_router()


@router.get("/boards/{board}/join")
def join_page(request: Request, board: Slug) -> Response:
    """Show the form to register a team."""
    return page_response(request, "join.html", **_read_join_page(request, board))


def _read_join_page(request: Request, slug: str) -> dict[str, Any]:
    board, caller = open_page(request, slug)
    view = board.as_seen_by(caller)
    return {
        "board": view.summary(),
        "role": caller.role.name.lower(),
        "team": None if caller.team is None else view.team(),
        "problem": None,
        "new_team": None,
        "typed_name": "",
    }


@router.post("/boards/{board}/join")
def register_team(request: Request, board: Slug, form: Form) -> Response:
    """Register a team, show its token once, and sign the browser in as that team."""
    context = get_context(request)
    name, invitation = form.get("name", ""), form.get("invitation", "").strip() or None
    opened, caller = open_page(request, board)
    try:
        if caller.role < Role.ORGANISER:
            context.registration_limiter.check(client_address(request))
            context.registration_limiter.record(client_address(request))
        new_team = opened.teams.register_or_create(caller, name, invitation)
    except (LadderboardError, RequestRefused) as error:
        problem = page_problem(error)
        variables = _read_join_page(request, board)
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
    variables = {**_read_join_page(request, board), "new_team": new_team}
    return page_response(request, "join.html", 201, new_session=new_session, **variables)


@router.get("/login")
def login_page(request: Request) -> Response:
    """Show the sign-in form."""
    return page_response(
        request, "login.html", refused=False, next=request.query_params.get("next", "")
    )


@router.post("/session")
def sign_in(request: Request, form: Form) -> Response:
    """Start a session with a token."""
    context = get_context(request)
    credentials = Credentials(hash_token(form.get("token", "").strip()))
    default_path = _default_page(context, credentials)
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
        caller, slug = context.authenticator.resolve_with_board(credentials)
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


@router.post("/session/end", dependencies=[Depends(read_form)])
def sign_out(request: Request) -> Response:
    """End a session."""
    response = redirect(request, "/")
    get_context(request).sessions.clear_session_cookie(request, response)
    return response
