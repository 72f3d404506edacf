"""Routes for monitoring: health and metrics."""

import asyncio
import shutil

from fastapi import Request, Response

from ladderboard.errors import StorageFailed
from ladderboard.ledger import SqliteStorage
from ladderboard.server._api._models import Health
from ladderboard.server._api._routes import make_router, problem_responses
from ladderboard.server._auth import has_bearer_token, is_organiser, unauthorised
from ladderboard.server._context import PRIVATE, ServerContext, get_context, make_response

router = make_router("server", prefix="")
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_TIMEOUT_SECONDS = 5.0
_OPEN = {400: 0, 403: 0, 406: 0, 422: 0, 500: 0, 503: 0}


@router.get(
    "/healthz",
    response_model=Health,
    responses={
        status: response for status, response in problem_responses().items() if status in _OPEN
    },
    openapi_extra={"security": []},
)
async def health(request: Request) -> Response:
    """Check that the server and its database work."""
    context = get_context(request)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):  # health checks have short timeouts
            await context.run_in_thread(context.boards.list)
    except TimeoutError:
        raise StorageFailed(
            f"The database did not answer within {_TIMEOUT_SECONDS:g} seconds."
        ) from None
    return Response(
        b'{"status":"ok"}', headers={"Cache-Control": "no-store"}, media_type="application/json"
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        **problem_responses(),
        200: {
            "description": "Metrics in Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    },
    openapi_extra={"security": PRIVATE, "x-types": ["text/plain"]},
)
async def metrics(request: Request) -> Response:
    """Return request counts and durations, restarts and free disk, summed over all processes.

    For the organiser of all boards, or with the token that the server was started with.
    """
    context = get_context(request)
    authorization = request.headers.get("authorization", "")
    if not has_bearer_token(authorization, context.settings.metrics_token):
        caller = await context.run_in_thread(context.authenticator.authenticate, request, None)
        if not is_organiser(caller):
            raise unauthorised()
    disks = await context.run_in_thread(_free_disk, context)
    help_ = "Bytes that are free on the disk of the database and of large submissions (spool)."
    text = context.metrics.write({"ladderboard_disk_free_bytes": (help_, disks)})
    return make_response(request, text.encode(), media_type=_TEXT)


def _free_disk(context: ServerContext) -> dict[str, float]:
    """Return the free bytes of the disks that may fill up, by label."""
    storage, folders = context.boards.storage, {"spool": context.spool.path}
    if isinstance(storage, SqliteStorage):
        folders["database"] = storage.path.parent
    return {f'of="{name}"': shutil.disk_usage(folder).free for name, folder in folders.items()}


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return make_response(request, request.app.openapi())
