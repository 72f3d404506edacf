"""The server's own affairs: whether it works, and its numbers."""

import asyncio

from fastapi import APIRouter, Request, Response

from ladderboard.errors import StorageFailed
from ladderboard.server._routes import Route, problems
from ladderboard.server._shapes import Health
from ladderboard.server._who import Shown, is_organiser, is_token, unauthorised
from ladderboard.server._work import PRIVATE, reply, work_of

__all__ = ["router"]

router = APIRouter(route_class=Route)
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 5.0  # seconds
_OPEN = {400: 0, 403: 0, 406: 0, 422: 0, 500: 0, 503: 0}


@router.get(
    "/healthz",
    response_model=Health,
    responses={status: said for status, said in problems().items() if status in _OPEN},
    openapi_extra={"security": []},
)
async def health(request: Request) -> Response:
    """Tell whether the server and its database work."""
    work = work_of(request)
    try:
        async with asyncio.timeout(_PATIENCE):  # whoever asks has little of it
            await work.in_thread(work.boards.list)
    except TimeoutError:
        raise StorageFailed(f"The database did not answer within {_PATIENCE:g} seconds.") from None
    return Response(
        b'{"status":"ok"}', headers={"Cache-Control": "no-store"}, media_type="application/json"
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        **problems(),
        200: {
            "description": "Numbers, as Prometheus reads them.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    },
    openapi_extra={"security": PRIVATE, "x-types": ["text/plain"]},
)
async def metrics(request: Request) -> Response:
    """Return how many requests there were, how long they took, and how many wait.

    For the organiser of all boards, or with the token that the server was started with.
    """
    work = work_of(request)
    if not is_token(request.headers.get("authorization", ""), work.settings.metrics_token):

        def look(shown: Shown | None) -> bool:
            return is_organiser(work.who.find(shown, None))

        if not await work.asked(request, look):
            raise unauthorised()
    parsers = work.parsers
    text = work.metrics.write(
        {
            "ladderboard_requests_under_way": (
                "Requests being answered, this one included.",
                lambda: work.metrics.under_way,
            ),
            "ladderboard_parsers_busy": ("Parsers at work.", lambda: parsers.busy),
            "ladderboard_parsers_waiting": (
                "Submissions that wait for a parser.",
                lambda: parsers.waiting,
            ),
        }
    )
    return reply(request, text.encode(), media_type=_TEXT)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Return what can be asked, and what is said."""
    return reply(request, request.app.openapi())
