"""Signing in and out."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import Role, token_hash
from ladderboard.server._auth import Shown, Unknown
from ladderboard.server._context import Work, work_of
from ladderboard.server._pages._form import read_form
from ladderboard.server._pages._page import see, show

__all__ = ["router"]

router = APIRouter(include_in_schema=False)


@router.get("/login")
async def login_page(request: Request) -> Response:
    """Show the form to sign in with."""
    return show(request, "login.html", refused=False, next=request.query_params.get("next", ""))


@router.post("/session")
async def sign_in(request: Request) -> Response:
    """Begin a session with a token."""
    work, form = work_of(request), await read_form(request)
    shown = Shown(token_hash(form.get("token", "").strip()))
    work.who.check(request, shown, form=True)
    home = await work.in_thread(lambda: _home(work, shown))
    wanted = form.get("next", "")
    if home is None:
        refused = work.who.failed(request, shown)
        if refused.status != 401:
            raise refused
        return show(request, "login.html", 401, refused=True, next=wanted)
    response = see(request, _place(wanted, home))
    work.sessions.remember(request, response, work.sessions.start(shown.hashed))
    return response


def _home(work: Work, shown: Shown) -> str | None:
    """Return where somebody belongs, if the token is good anywhere."""
    try:
        caller, slug = work.who.home(shown)
    except Unknown:
        return None
    if caller.role == Role.PUBLIC:
        return None
    return "/" if slug is None else f"/boards/{slug}"


def _place(wanted: str, home: str) -> str:
    """Return where to go on: to a page of ours only."""
    plain = wanted.isascii() and wanted.isprintable() and not {"\\", "%"} & set(wanted)
    inside = wanted.startswith("/boards/") and "//" not in wanted and ".." not in wanted
    return wanted if plain and inside and len(wanted) < 200 else home


@router.post("/session/end")
async def sign_out(request: Request) -> Response:
    """End a session."""
    work, _ = work_of(request), await read_form(request)
    response = see(request, "/")
    work.sessions.forget(request, response)
    return response
