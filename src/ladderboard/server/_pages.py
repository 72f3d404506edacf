"""The pages: plain HTML, made here, that works without a script."""

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from ladderboard.board import PUBLIC, Answer, Board, Caller, Role, token_hash
from ladderboard.errors import InvalidPredictions, LadderboardError, NotAllowed, NotFound
from ladderboard.server._problems import Refused, problem_of
from ladderboard.server._routes import Slug
from ladderboard.server._submit import submit
from ladderboard.server._who import Shown, Unknown
from ladderboard.server._work import Work, work_of

__all__ = ["is_page", "refusal", "router"]

router = APIRouter(include_in_schema=False)
_HERE = Path(__file__).parent
_MACHINES = ("/api/", "/healthz", "/metrics", "/openapi.json", "/static/")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).disable("image")
_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["markdown"] = lambda text: Markup(_MARKDOWN.render(text))  # noqa: S704
_STYLE = (_HERE / "static" / "style.css").read_bytes()
_STYLE_TAG = f'"{hashlib.sha256(_STYLE).hexdigest()[:32]}"'


def is_page(request: Request) -> bool:
    """Tell whether people look at what is here."""
    return not request.url.path.startswith(_MACHINES)


def refusal(request: Request, said: Response) -> Response:
    """Return a page that says what a problem document says."""
    told = json.loads(bytes(said.body))
    page = _page(request, "refusal.html", said.status_code, problem=told)
    for name in ("allow", "retry-after"):
        if name in said.headers:
            page.headers[name] = said.headers[name]
    return page


def _page(request: Request, name: str, status: int = 200, **what: Any) -> Response:
    """Return a page, with a word for its forms; who has no cookie yet gets one."""
    sessions = work_of(request).sessions
    session = sessions.read(request)
    word, visit = sessions.csrf(request, session), None
    if word is None:
        visit, word = sessions.visit()
    text = _TEMPLATES.get_template(name).render(
        csrf=word, signed_in=session is not None, url=_url(request), **what
    )
    response = Response(
        text, status, {"Cache-Control": "private, no-store"}, "text/html; charset=utf-8"
    )
    if visit is not None:
        sessions.greet(request, response, visit)
    return response


def _url(request: Request) -> str:
    told = work_of(request).settings.url
    return (told or f"{request.url.scheme}://{request.headers['host']}").rstrip("/")


@router.get("/static/style.css")
async def style(request: Request) -> Response:
    """Return how the pages look."""
    headers = {"Cache-Control": "public, max-age=3600", "ETag": _STYLE_TAG}
    if request.headers.get("if-none-match") == _STYLE_TAG:
        return Response(b"", 304, headers)
    return Response(_STYLE, 200, headers, "text/css; charset=utf-8")


@router.get("/")
async def boards_page(request: Request) -> Response:
    """Show all boards."""
    work = work_of(request)

    def look(_: Board | None, __: Caller) -> list[dict[str, Any]]:
        return [work.boards.open(each).as_seen_by(PUBLIC).summary() for each in work.boards.list()]

    return _page(request, "boards.html", boards=await work.on_page(request, None, look))


@router.get("/boards/{board}")
async def board_page(request: Request, board: Slug) -> Response:
    """Show a board: standings, rules, and how to submit."""
    cursor = request.query_params.get("cursor") or None

    def look(found: Board | None, caller: Caller) -> dict[str, Any]:
        assert found is not None  # noqa: S101 - it was asked for
        view = found.as_seen_by(caller)
        return {
            "board": view.summary(),
            "standings": _or_none(lambda: view.leaderboard(cursor=cursor)),
            "finals": _or_none(view.finals),
            "role": caller.role.name.lower(),
            "team": view.team() if caller.team is not None else None,
        }

    return _page(request, "board.html", **await work_of(request).on_page(request, board, look))


def _or_none(look: Any) -> Any:
    try:
        return look()
    except (NotAllowed, NotFound):
        return None


@router.get("/boards/{board}/submit")
async def submit_page(request: Request, board: Slug) -> Response:
    """Show the form to submit with."""
    return await _submit_page(request, board)


async def _submit_page(request: Request, board: str, status: int = 200, **what: Any) -> Response:
    def look(found: Board | None, caller: Caller) -> dict[str, Any]:
        assert found is not None  # noqa: S101 - it was asked for
        view = found.as_seen_by(caller)
        own = caller.team is not None
        return {
            "board": view.summary(),
            "team": view.team() if own else None,
            "submissions": view.submissions(limit=20) if own else [],
        }

    said = await work_of(request).on_page(request, board, look)
    shown = {"answer": None, "problem": None, **said, **what}
    return _page(request, "submit.html", status, **shown)


@router.post("/boards/{board}/submit")
async def send_page(request: Request, board: Slug) -> Response:
    """Take the form, and show the answer."""
    work = work_of(request)
    work.who.check_form(request, work.sessions.read(request), request.query_params.get("csrf", ""))
    try:
        answer: Answer = await submit(request, board, form=True)
    except InvalidPredictions as error:
        said, _ = problem_of(error)
        told = {"detail": str(error), "errors": error.problems}
        return await _submit_page(request, board, said.status_code, problem=told)
    except (LadderboardError, Refused) as error:
        said, ours = problem_of(error)
        if ours or said.status_code in {401, 403, 404}:
            raise
        return await _submit_page(
            request, board, said.status_code, problem={"detail": str(error), "errors": []}
        )
    return await _submit_page(request, board, 200, answer=answer.describe())


@router.get("/login")
async def login_page(request: Request) -> Response:
    """Show the form to sign in with."""
    return _page(request, "login.html", refused=False, next=request.query_params.get("next", ""))


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "content_type", "Send this as a form.")
    body = await request.body()
    return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=20))


@router.post("/session")
async def sign_in(request: Request) -> Response:
    """Begin a session with a token."""
    work = work_of(request)
    form = await _form(request)
    work.who.check_form(request, work.sessions.read(request), form.get("csrf", ""))
    shown = Shown(token_hash(form.get("token", "").strip()))
    work.who.check(request, shown, form=True)
    home = await work.in_thread(lambda: _home(work, shown))
    wanted = form.get("next", "")
    if home is None:
        refused = work.who.failed(request, shown)
        if refused.status != 401:
            raise refused
        return _page(request, "login.html", 401, refused=True, next=wanted)
    response = RedirectResponse(_place(wanted, home), 303)
    response.headers["Cache-Control"] = "private, no-store"
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
    plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    inside = wanted.startswith("/boards/") and "//" not in wanted and ".." not in wanted
    return wanted if plain and inside and len(wanted) < 200 else home


@router.post("/session/end")
async def sign_out(request: Request) -> Response:
    """End a session."""
    work = work_of(request)
    form = await _form(request)
    work.who.check_form(request, work.sessions.read(request), form.get("csrf", ""))
    response = RedirectResponse("/", 303)
    response.headers["Cache-Control"] = "private, no-store"
    work.sessions.forget(request, response)
    return response
