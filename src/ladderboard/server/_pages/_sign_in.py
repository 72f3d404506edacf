"""Joining a board, signing in with a token or with a provider, signing out, and erasure."""

from typing import Annotated, Any

from fastapi import Depends, Path, Request
from starlette.responses import RedirectResponse, Response

from ladderboard.board import Role, VerifiedIdentity, hash_token
from ladderboard.errors import InvalidSetting, LadderboardError, NotFound
from ladderboard.server._api import Slug
from ladderboard.server._auth import Credentials, InvalidToken
from ladderboard.server._context import ServerContext, get_context, log_erasure, open_page
from ladderboard.server._pages._rendering import (
    PRIVATE,
    Form,
    page_response,
    page_router,
    read_form,
    redirect,
    server_url,
    typed_invitation,
)
from ladderboard.server._pages._reply import page_problem
from ladderboard.server._problems import RequestRefused

router = page_router()
_TO_A_TEAM = "lb_member_"
ProviderName = Annotated[str, Path(max_length=32, description="A provider's name.")]


@router.get("/boards/{board}/join")
def join_page(request: Request, board: Slug) -> Response:
    """Show the form to register a team."""
    return page_response(request, "join.html", **_read_join_page(request, board))


def _read_join_page(request: Request, slug: str) -> dict[str, Any]:
    board, caller = open_page(request, slug)
    view = board.as_seen_by(caller)
    summary = view.summary()
    rules = summary["sign_in"]
    return {
        "board": summary,
        "providers": {} if rules is None else _titles(request, rules["providers"]),
        "person": board.identities.own_registration(caller),
        "role": caller.role.name.lower(),
        "team": None if caller.team is None else view.team(),
        "problem": None,
        "new_team": None,
        "typed_name": "",
        "typed_invitation": "",
    }


def _titles(request: Request, only: list[str]) -> dict[str, str]:
    return get_context(request).sign_in.titles(only)


@router.post("/boards/{board}/join")
def register_team(request: Request, board: Slug, form: Form) -> Response:
    """Register a team, show its token once, and sign the browser in as that team."""
    context = get_context(request)
    name, invitation = form.get("name", ""), typed_invitation(form) or None
    opened, caller = open_page(request, board)
    try:
        if caller.role < Role.ORGANISER:
            context.limit_registrations(request)
        if invitation is not None and invitation.startswith(_TO_A_TEAM):
            opened.members.join(caller, invitation)
            return redirect(request, f"/boards/{board}/team?done=joined")
        if caller.identity is not None and invitation is None:
            new_team = opened.identities.register(caller, name)
            if new_team is None:  # the organiser must approve it
                return redirect(request, f"/boards/{board}/join")
        else:
            new_team = opened.teams.register_or_create(caller, name, invitation)
    except (LadderboardError, RequestRefused) as error:
        problem = page_problem(error)
        typed = {"typed_name": name[:64], "typed_invitation": (invitation or "")[:200]}
        variables = {**_read_join_page(request, board), **typed, "problem": problem}
        page = page_response(request, "join.html", problem.status, **variables)
        if problem.retry is not None:
            page.headers["Retry-After"] = problem.retry
        return page
    # Organisers, evaluators and people who signed in stay signed in as themselves.
    new_session = None
    if caller.role < Role.EVALUATOR and caller.identity is None:
        new_session = context.sessions.start(hash_token(new_team.token))
    variables = {**_read_join_page(request, board), "new_team": new_team}
    return page_response(request, "join.html", 201, new_session=new_session, **variables)


@router.get("/boards/{board}/erase")
def erase_page(request: Request, board: Slug) -> Response:
    """Show what an erasure of one's own name and identity removes, and what stays."""
    return page_response(request, "erase.html", **_read_erase_page(request, board))


def _read_erase_page(request: Request, slug: str) -> dict[str, Any]:
    board, caller = open_page(request, slug)
    view = board.as_seen_by(caller)
    return {
        "board": view.summary(),
        "role": caller.role.name.lower(),
        "team": None if caller.team is None else view.team(),
        "person": board.identities.own_registration(caller),
        "preview": board.erasure.preview_own(caller),
        "erased": None,
        "problem": None,
    }


@router.post("/boards/{board}/erase")
def erase(request: Request, board: Slug, form: Form) -> Response:
    """Erase the caller's name and identity, and end the session."""
    variables = _read_erase_page(request, board)
    try:
        if form.get("confirm") != "yes":
            raise InvalidSetting("Tick the box to confirm that you have read what stays.")
        opened, caller = open_page(request, board)
        erased = opened.erasure.erase_own(caller)
        log_erasure(request, opened.slug, erased.team, caller.identity)
        variables |= {"erased": erased, "role": "public", "signed_in": False}
    except (LadderboardError, RequestRefused) as error:
        problem = page_problem(error)
        return page_response(
            request, "erase.html", problem.status, **{**variables, "problem": problem}
        )
    response = page_response(request, "erase.html", **variables)
    get_context(request).sessions.clear_session_cookie(request, response)
    return response


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
    credentials = Credentials(form.get("token", "").strip())
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
    suffix = "/organise" if caller.role == Role.ORGANISER else ""
    return "/" if slug is None else f"/boards/{slug}{suffix}"


def _safe_redirect_path(path: str, default_path: str) -> str:
    """Return the path if it is a board page of this server, else the default."""
    is_plain = path.isascii() and path.isprintable() and not {"\\", "%"} & set(path)
    is_board_page = path.startswith("/boards/") and "//" not in path and ".." not in path
    return path if is_plain and is_board_page and len(path) < 200 else default_path


@router.post("/session/end", dependencies=[Depends(read_form)])
def sign_out(request: Request) -> Response:
    """End a session."""
    context = get_context(request)
    session = context.sessions.read(request)
    if session is not None:
        context.boards.sign_out(session.token_hash)
    response = redirect(request, "/")
    context.sessions.clear_session_cookie(request, response)
    return response


@router.get("/boards/{board}/sign-in/{provider}")
async def start_sign_in(request: Request, board: Slug, provider: ProviderName) -> Response:
    """Send the browser to a provider."""
    context = get_context(request)
    await context.run_in_thread(_check_sign_in, request, board, provider)
    url, cookie = await context.sign_in.start(provider, board, _callback_url(request, provider))
    response = RedirectResponse(url, 303, PRIVATE)
    context.sessions.set_sign_in_cookie(request, response, cookie)
    return response


def _check_sign_in(request: Request, slug: str, provider: str) -> None:
    """Refuse a provider that people cannot sign in with on a board."""
    board, _ = open_page(request, slug)
    rules = board.rules.sign_in
    if rules is None or (rules.providers and provider not in rules.providers):
        raise NotFound("There is no such provider here.")


def _callback_url(request: Request, provider: str) -> str:
    return f"{server_url(request)}/sign-in/{provider}/callback"


@router.get("/sign-in/{provider}/callback")
async def finish_sign_in(request: Request, provider: ProviderName) -> Response:
    """Start a session for the person that the provider vouches for, on their board."""
    context, answer = get_context(request), request.query_params
    cookie = context.sessions.read_sign_in_cookie(request)
    started = context.sign_in.read(cookie, provider, answer)
    person = await context.sign_in.finish(started, answer, _callback_url(request, provider))
    hashed, path = await context.run_in_thread(
        _start_session, context, started.board, person, write=True
    )
    response = redirect(request, path)
    # Always a new session: none that somebody else put into this browser is continued.
    context.sessions.set_session_cookie(request, response, context.sessions.start(hashed))
    context.sessions.set_sign_in_cookie(request, response, "")
    return response


def _start_session(
    context: ServerContext, slug: str, person: VerifiedIdentity
) -> tuple[bytes, str]:
    """Return the hash of a new session, and the page to show."""
    board = context.boards.open(slug)
    hashed = board.identities.sign_in(person, seconds=context.settings.session_seconds)
    caller = context.boards.caller_by_token_hash(hashed, slug)
    return hashed, f"/boards/{slug}/{'join' if caller.team is None else 'submit'}"
