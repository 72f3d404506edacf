"""The application: boards over HTTP."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ladderboard._version import __version__
from ladderboard.errors import LadderboardError, NotAllowed, Problem
from ladderboard.server import _api, _pages
from ladderboard.server._auth import unauthorised
from ladderboard.server._context import ServerContext, get_context, needs_token
from ladderboard.server._log import (
    CLOCK_JUMPS,
    PARSERS_RESTARTED,
    ClockWatch,
    Gauge,
    Metrics,
    ServerLog,
    machine_time,
)
from ladderboard.server._middleware import BODY_REFUSAL, RequestMiddleware
from ladderboard.server._pages import remove_stale_dumps
from ladderboard.server._problems import RequestRefused, problem, problem_from_exception
from ladderboard.server._settings import Settings
from ladderboard.server._uploads import Spool
from ladderboard.server._webhook_sender import WebhookSender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from fastapi import Request
    from starlette.responses import Response

    from ladderboard.board import Boards
    from ladderboard.server._sandbox import ParserPool

_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False}
_TICK_SECONDS = 1.0
_DATABASE = 5.0  # seconds that a page or a read waits for a database that does not answer


def make_app(
    boards: Boards,
    parsers: ParserPool,
    *,
    settings: Settings | None = None,
    on_close: Callable[[], None] | None = None,
    metrics: Metrics | None = None,
) -> FastAPI:
    """Return the application that serves some boards.

    Its lifespan starts the parsers, and at the end stops everything it started and calls
    ``on_close``. Closing the boards is up to the caller. Pass ``metrics`` when several processes
    count together; the parent process then watches the clock for them.
    """
    settings = Settings() if settings is None else settings
    boards.storage.limit_read_wait(_DATABASE)
    environment = boards.environment
    clock_of_log = machine_time if environment.uses_system_clock else environment.clock
    log = ServerLog(settings.log, clock_of_log)
    single_process = metrics is None
    metrics = Metrics() if metrics is None else metrics
    clock = ClockWatch(log, partial(metrics.add, CLOCK_JUMPS))
    context = ServerContext(boards, parsers, settings=settings, log=log, metrics=metrics)
    parsers.on_restart = lambda: metrics.add(PARSERS_RESTARTED)
    metrics.gauges = {
        "ladderboard_workers": Gauge("Processes that answer.", lambda: 1),
        "ladderboard_requests_under_way": Gauge(
            "Requests being answered, this one included.", lambda: metrics.under_way
        ),
        "ladderboard_parsers_busy": Gauge("Parsers at work.", lambda: parsers.busy),
        "ladderboard_parsers_waiting": Gauge(
            "Submissions that wait for a parser.", lambda: parsers.waiting
        ),
    }

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        with tempfile.TemporaryDirectory(prefix="ladderboard-") as folder:
            context.spool = spool = Spool(settings.spool or folder)
            remove_stale_dumps(spool.path)
            try:
                await parsers.start()
                callbacks = [
                    metrics.publish,
                    *(
                        [clock.check]
                        if single_process and boards.environment.uses_system_clock
                        else []
                    ),
                ]
                tasks = [
                    asyncio.create_task(_run_every_second(callbacks)),
                    asyncio.create_task(WebhookSender(boards, settings, log).run()),
                ]
                try:
                    yield
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.wait(tasks)
            finally:
                await parsers.close()
                context.close()
                if on_close is not None:
                    on_close()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with running():
                yield
        except Exception as error:
            log.write_error(error)  # uvicorn reports only the failure
            raise

    app = FastAPI(
        title="Ladderboard",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Its spans and logs could hold what our log leaves out; looking for exporters takes time.
        telemetry=_NO_TELEMETRY,
        exception_handlers={
            LadderboardError: _on_refused,
            RequestRefused: _on_refused,
            RequestValidationError: _on_invalid,
            HTTPException: _on_http_error,
        },
    )
    app.state.context = context
    for part in (_api, _pages):
        app.router.routes.extend(part.router.routes)  # flat, so that matching is one loop
    app.openapi = lambda: _api.describe_api(app, settings.url)  # type: ignore[method-assign]

    app.add_middleware(
        RequestMiddleware, settings=settings, log=log, metrics=metrics, salt=boards.environment.salt
    )
    return app


async def _run_every_second(callbacks: Sequence[Callable[[], None]]) -> None:
    """Call the callbacks once a second for as long as the server runs."""
    while True:
        for callback in callbacks:
            callback()
        await asyncio.sleep(_TICK_SECONDS)


def _render_refusal(request: Request, response: Response) -> Response:
    """Return a refusal, to browsers as a page."""
    if _pages.is_page(request):
        return _pages.refusal_page(request, response)
    response.headers["Cache-Control"] = "private, no-store"
    return response


async def _on_refused(request: Request, error: Exception) -> Response:
    if isinstance(error, NotAllowed) and needs_token(request):
        credentials = get_context(request).authenticator.read_credentials(request)
        error = unauthorised() if credentials is None else error
    response, _, server_fault = problem_from_exception(error)
    if server_fault:
        get_context(request).log.write_error(error, request.scope["ladderboard.request"])
    return _render_refusal(request, response)


async def _on_invalid(request: Request, error: RequestValidationError) -> Response:
    """Return which parameters are invalid, without repeating their values."""
    errors = []
    for detail in error.errors()[:100]:
        location = ".".join(str(part) for part in detail["loc"])[:200]
        errors.append(
            Problem(str(detail["type"]), location, 1, (), f"{location}: {detail['msg']}.")
        )
    message = " ".join(detail.message for detail in errors[:3])
    return _render_refusal(request, problem(422, "invalid", message, errors=errors))


_CODES = {404: "not_found", 405: "method"}
_DETAILS = {404: "There is nothing at this address.", 405: "This method is not allowed here."}


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    """Return a problem document for an unknown path, a wrong method or an unreadable request."""
    refused = request.scope.get(BODY_REFUSAL)
    if refused is not None:
        return await _on_refused(request, refused)
    status, headers = error.status_code, dict(error.headers or {})
    if status == 405:
        headers["Allow"] = ", ".join(_allowed_methods(request))
    detail = _DETAILS.get(status, "The request cannot be read.")
    return _render_refusal(
        request, problem(status, _CODES.get(status, "bad_request"), detail, headers=headers)
    )


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes that match the path."""
    allowed: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches(request.scope)
        if match.value:
            methods: set[str] = getattr(route, "methods", None) or set()
            allowed |= methods | ({"HEAD"} if "GET" in methods else set())
    return sorted(allowed)
