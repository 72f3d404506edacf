"""What a handler needs: the boards in their threads, settings, limits, and pages that are kept."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from starlette.responses import Response

from ladderboard.errors import NotAllowed, storage_error
from ladderboard.server._auth import (
    SESSION_COOKIE,
    Authenticator,
    CookieSessions,
    InvalidToken,
    unauthorised,
)
from ladderboard.server._rate_limits import RateLimiter, UploadQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from fastapi import Request

    from ladderboard.board import Board, Boards, Caller
    from ladderboard.server._attack_jobs import AttackJobs
    from ladderboard.server._auth import Credentials
    from ladderboard.server._log import ServerLog
    from ladderboard.server._metrics import Metrics
    from ladderboard.server._sandbox import ParserPool, Spec
    from ladderboard.server._server_config import Settings
    from ladderboard.server._uploads import Spool

_MOST = 64
PRIVATE: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
"""In a route's ``openapi_extra``: nobody comes here without a token."""
_WRITER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class CachedPage(NamedTuple):
    """A page as it is, and packed."""

    content: bytes
    packed: bytes


class PageCache:
    """The pages of one server that were asked for last; for any thread."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, CachedPage] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], CachedPage]) -> CachedPage:
        """Return the page of a key, made now if it is not kept."""
        with self._lock:
            found = self._pages.get(key)
            if found is not None:
                self._pages.move_to_end(key)
                return found
        made = make()
        with self._lock:
            self._pages[key] = made
            while len(self._pages) > _MOST:
                self._pages.popitem(last=False)
        return made


Result = TypeVar("Result")


class ServerContext:
    """Everything that is shared by the handlers of one server."""

    spool: Spool
    """Where large bodies wait; from the lifespan's beginning on."""
    attack_jobs: AttackJobs
    """Attacks that are played; from then on, too."""

    def __init__(
        self,
        boards: Boards,
        parsers: ParserPool,
        *,
        settings: Settings,
        log: ServerLog,
        metrics: Metrics,
    ) -> None:
        self.boards, self.parsers = boards, parsers
        self.settings, self.log, self.metrics = settings, log, metrics
        self.sessions = CookieSessions(boards, settings)
        self.authenticator = Authenticator(boards, self.sessions, settings)
        self.registration_limiter = RateLimiter(
            settings.registrations, "Too many teams come from here; wait.", settings.timer
        )
        self.invalid_limiter = RateLimiter(
            settings.invalid, "Too many files of yours were invalid; wait.", settings.timer
        )
        self.uploads = UploadQueue()
        self.parser_specs: dict[str, tuple[Hashable, Spec]] = {}
        """What parsers are told of each board, with what that depends on."""
        self.pages = PageCache()
        self._threads = ThreadPoolExecutor(settings.threads, "board")
        self._writers = ThreadPoolExecutor(settings.threads, "desk")

    def close(self) -> None:
        """Wait for what is being done, and end."""
        self._threads.shutdown()
        self._writers.shutdown()

    async def run_in_thread(self, work: Callable[[], Result], *, write: bool = False) -> Result:
        """Do something that may wait for a database or a disk.

        With ``write`` it may wait for others who write, and keeps nobody from looking meanwhile.
        """
        threads = self._writers if write else self._threads
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except OSError as error:
            what = error.filename or "The disk"
            raise storage_error(error, f"{what} cannot be used") from error

    async def with_board(
        self,
        request: Request,
        slug: str,
        work: Callable[[Board, Caller], Result],
        *,
        form: bool = False,
    ) -> Result:
        """Do something on a board, in the name of whoever asks."""

        def look(shown: Credentials | None) -> Result:
            board = self.boards.open(slug)  # which boards there are is no secret
            return work(board, self.authenticator.resolve(shown, slug))

        return await self.run_authenticated(request, look, form=form)

    async def for_page(
        self, request: Request, slug: str, work: Callable[[Board, Caller], Result]
    ) -> Result:
        """Do something for a page; a session that is not good here is nobody's."""

        def look(shown: Credentials | None) -> Result:
            board = self.boards.open(slug)
            return work(board, self.authenticator.resolve_or_public(request, shown, slug))

        return await self.run_authenticated(request, look, form=True)

    async def run_authenticated(
        self, request: Request, work: Callable[[Credentials | None], Result], *, form: bool = False
    ) -> Result:
        """Do something, in a thread, that begins with finding out who asks.

        A ``form`` was checked by whoever read it.
        """
        shown = self.authenticator.read_credentials(request)
        self.authenticator.check(request, shown, form=form)
        try:
            return await self.run_in_thread(lambda: work(shown))
        except InvalidToken:
            raise self.authenticator.reject_token(request, shown) from None
        except NotAllowed:
            if shown is None and _is_private(request):
                raise unauthorised() from None
            raise


def _is_private(request: Request) -> bool:
    extra = getattr(request.scope.get("route"), "openapi_extra", None) or {}
    return extra.get("security") is PRIVATE


def get_context(request: Request) -> ServerContext:
    """Return what the application of a request works with."""
    context: ServerContext = request.app.state.context
    return context


def is_public(request: Request) -> bool:
    """Tell whether a request shows nothing, so that everybody gets the same reply."""
    return "authorization" not in request.headers and SESSION_COOKIE not in request.cookies


def make_response(
    request: Request,
    said: Any,
    status: int = 200,
    *,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a reply; one that everybody gets has a tag made from its bytes and nothing else."""
    body = said if isinstance(said, bytes) else _WRITER.encode(said).encode("ascii")
    more = dict(headers or {})
    if request.method != "GET" or status != 200 or not is_public(request):
        more["Cache-Control"] = "private, no-store"
        return Response(body, status, more, media_type)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    more |= {"Cache-Control": "public, no-cache", "ETag": tag}
    wanted = request.headers.get("if-none-match", "")
    held = {each.strip().removeprefix("W/") for each in wanted.split(",")}
    if held & {tag, "*"}:
        return Response(b"", 304, more)
    return Response(body, 200, more, media_type)
