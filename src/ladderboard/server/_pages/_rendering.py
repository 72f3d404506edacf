"""Rendering of templates as responses, and reading of forms."""

from __future__ import annotations

import gzip
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from ladderboard._formatting import format_decimals, format_fixed, format_interval, shared_decimals
from ladderboard.errors import NotAllowed, NotFound
from ladderboard.server._context import ThreadedRoute, get_context, is_public
from ladderboard.server._pages._static import static_url, wheel_url
from ladderboard.server._pages._wording import (
    board_state,
    count,
    format_bytes,
    is_full,
    is_over,
    metric_title,
    relative_element,
    relative_time,
    time_element,
)
from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.server._auth import CookieSession

_API_PATHS = ("/api/", "/healthz", "/metrics", "/openapi.json", "/static/")
_EXTERNAL_SCHEMES = ("http://", "https://", "mailto:")  # links that work outside the server
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,  # checking the files for changes on each request is slow
)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d UTC)")
PRIVATE = {"Cache-Control": "private, no-store"}
_HTML = "text/html; charset=utf-8"
_MAX_FIELDS = 200


class _ArchiveMarkdown(MarkdownIt):
    """Markdown in an archive, where only external links work."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - overrides a method
        """Tell whether a URL may be a link."""
        return url.lower().startswith(_EXTERNAL_SCHEMES)


_MARKDOWN, _ARCHIVE_MARKDOWN = (
    kind("commonmark", {"html": False}).disable("image") for kind in (MarkdownIt, _ArchiveMarkdown)
)
_TEMPLATES.globals |= {
    "static": static_url,
    "full": is_full,
    "wheel": wheel_url(),
    "board_state": board_state,
    "ended": is_over,
}


def is_page(request: Request) -> bool:
    """Tell whether a request is for a page, not for the API, a probe or a static file."""
    return not request.url.path.startswith(_API_PATHS)


def format_times(text: str) -> Markup:
    """Return a text with its timestamps as ``<time>`` elements.

    >>> print(format_times("The next is at 2026-11-16 14:05 UTC."))
    The next is at <time datetime="2026-11-16T14:05:00Z">2026-11-16 14:05 UTC</time>.
    """
    parts = _TIMESTAMP.split(text)
    return Markup("").join(
        time_element(f"{part[:10]}T{part[11:16]}:00Z") if index % 2 else part
        for index, part in enumerate(parts)
    )


def format_value(value: float | None, digits: int, history: Mapping[str, Any] | None = None) -> str:
    """Return a released number, at most with as many decimals as given.

    It has its own digits, or as many as the numbers of a history have together.

    >>> format_value(0.78, 3), format_value(None, 3)
    ('0.78', 'none yet')
    >>> format_value(0.9, 3, {"points": [{"display": 0.88}, {"display": 0.9}]})
    '0.90'
    """
    if value is None:
        return "none yet"
    if history is None:
        return format_decimals(value, digits)
    shown = [point["display"] for point in history["points"] if point["display"] is not None]
    return format_fixed(value, shared_decimals([value, *shown], digits))


@lru_cache(maxsize=64)
def render_markdown(text: str, archived: bool = False) -> Markup:
    """Return a board's description as HTML; HTML in it is escaped.

    In an archive, links to pages of the server stay plain text.
    """
    return Markup((_ARCHIVE_MARKDOWN if archived else _MARKDOWN).render(text))  # noqa: S704 - html is off


def render_public_page(name: str, **variables: Any) -> str:
    """Return the HTML of a page without forms, for visitors who are not signed in."""
    return _TEMPLATES.get_template(name).render(csrf="", signed_in=False, **variables)


def page_response(
    request: Request,
    name: str,
    status: int = 200,
    *,
    new_session: CookieSession | None = None,
    **variables: Any,
) -> Response:
    """Return a page. If it has a form, it holds a CSRF token and sets the cookie for it.

    ``new_session`` is a session that starts with this response.
    """
    sessions = get_context(request).sessions
    session = sessions.read(request) if new_session is None else new_session
    csrf_token, visitor = sessions.csrf_token(request, session), None
    if csrf_token is None:
        visitor, csrf_token = sessions.new_visitor()
    text = _TEMPLATES.get_template(name).render(
        csrf=csrf_token,
        url=server_url(request),
        root=get_context(request).settings.prefix,
        **{
            "now": int(get_context(request).boards.environment.clock()),
            "signed_in": session is not None,
            **variables,
        },
    )
    if csrf_token not in text:  # no form, so a public page has no secret
        return html_response(
            request, text.encode(), compress_page if is_public(request) else None, status
        )
    response = Response(text, status, PRIVATE, _HTML)
    if visitor is not None:
        sessions.set_visitor_cookie(request, response, visitor)
    if new_session is not None:
        sessions.set_session_cookie(request, response, new_session)
    return response


def compress_page(content: bytes) -> bytes:
    """Return a compressed page. Not for pages with secrets: the size could reveal them."""
    return gzip.compress(content, 4, mtime=0)


def html_response(
    request: Request,
    content: bytes,
    compress: Callable[[bytes], bytes] | None = None,
    status: int = 200,
) -> Response:
    """Return a response with rendered HTML, compressed if allowed and accepted."""
    headers = dict(PRIVATE)
    if compress is not None:
        headers["Vary"] = "Accept-Encoding"
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["Content-Encoding"] = compress(content), "gzip"
    return Response(content, status, headers, _HTML)


def refusal_page(request: Request, response: Response) -> Response:
    """Return the page for an API problem response."""
    problem = json.loads(bytes(response.body))
    next_path = request.url.path if request.method == "GET" else ""
    page = page_response(
        request, "refusal.html", response.status_code, problem=problem, next_path=next_path
    )
    for name in ("allow", "retry-after"):
        if name in response.headers:
            page.headers[name] = response.headers[name]
    return page


def redirect(request: Request, path: str) -> Response:
    """Return a redirect to a path of this server, after a form."""
    return RedirectResponse(get_context(request).settings.prefix + path, 303, PRIVATE)


def server_url(request: Request) -> str:
    """Return the server's public URL."""
    configured = get_context(request).settings.url
    return (configured or f"{request.url.scheme}://{request.headers['host']}").rstrip("/")


def typed_invitation(form: Form) -> str:
    """Return the invitation in a form, which may be typed as its whole link.

    >>> typed_invitation({"invitation": " https://a.example/boards/b/join#lb_member_c"})
    'lb_member_c'
    """
    return form.get("invitation", "").strip().rpartition("#")[2].removeprefix("invitation=")


def none_if_hidden(read: Callable[[], Any]) -> Any:
    """Return what ``read`` returns, or None if it is hidden or missing."""
    try:
        return read()
    except (NotAllowed, NotFound):
        return None


def _interval_text(ends: Mapping[str, float], digits: int) -> str:
    """Return the ends of an interval with the digits that its width carries."""
    return " to ".join(format_interval(ends["low"], ends["high"], digits))


def _capitalise(text: str) -> str:
    """Return a text, or Markup, with a capital letter at its start."""
    return text[:1].upper() + text[1:]


_TEMPLATES.filters |= {
    "capitalise": _capitalise,
    "count": count,
    "interval": _interval_text,
    "figure": format_value,
    "ago": relative_element,
    "markdown": render_markdown,
    "metric": metric_title,
    "relative": relative_time,
    "size": format_bytes,
    "times": format_times,
    "when": time_element,
}


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, after checking its CSRF token."""
    return dict(await read_fields(request))


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """Return the same as pairs, for forms with repeated fields."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise RequestRefused(415, "content_type", "Send this request as an HTML form.")
    body = await request.body()
    try:
        fields = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        raise RequestRefused(422, "invalid", f"A form has at most {_MAX_FIELDS} fields.") from None
    context = get_context(request)
    context.authenticator.check_form(
        request, context.sessions.read(request), dict(fields).get("csrf", "")
    )
    return fields


FormFields = Annotated[list[tuple[str, str]], Depends(read_fields)]
"""A handler's parameter: the fields of a form from a page of ours, with repeated ones."""
Form = Annotated[dict[str, str], Depends(read_form)]
"""A handler's parameter: the same by name."""


def page_router() -> APIRouter:
    """Return a router for pages; its plain functions run in threads."""
    return APIRouter(route_class=ThreadedRoute, include_in_schema=False)
