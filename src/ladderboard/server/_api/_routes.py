"""The route class and shared route settings of the API, and /openapi.json."""

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path
from fastapi.openapi.utils import get_openapi
from starlette.responses import Response

from ladderboard._version import __version__
from ladderboard.server._api._models import Problem
from ladderboard.server._auth import SESSION_COOKIE
from ladderboard.server._context import PRIVATE, ApiRoute

API = "/api/v1"
OPEN: list[dict[str, list[str]]] = [{}, *PRIVATE]
"""In a route's ``openapi_extra``: a token is optional."""
Slug = Annotated[
    str, Path(pattern="^[a-z0-9][a-z0-9-]{0,62}$", description="The board's name in addresses.")
]
TeamId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The team's id.")]
TokenId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The token's id.")]
PersonNumber = Annotated[int, Path(ge=1, le=2**53, description="The person's number.")]
WebhookNumber = Annotated[int, Path(ge=1, le=2**53, description="The webhook's number.")]
SubmissionId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="The submission's id.")]
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETags of cached responses; 304 if one is still current.",
    "schema": {"type": "string"},
}
_SENTENCES = {
    400: "The request cannot be read.",
    401: "The token is missing or not valid here.",
    403: "Not allowed.",
    404: "Not found, or not visible to you.",
    405: "This method is not allowed here.",
    406: "The response has none of the accepted formats.",
    408: "The rest of the request did not arrive in time.",
    409: "Conflict: the board is not open, a budget is spent, or a name is taken.",
    413: "Too large.",
    415: "The media type or encoding of the body is not supported.",
    422: "The input is not valid; `errors` says why.",
    429: "Too many requests; `Retry-After` says when to try again.",
    500: "Internal server error.",
    503: "Not available now; a retry is safe.",
    507: "The disk is full.",
}
_ALWAYS = (400, 401, 403, 404, 406, 422, 429, 500, 503)
_WAITS = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}}},
    429: _WAITS,
    503: _WAITS,
}
_ETAG = {
    "ETag": {
        "description": "Identifies this version of a public response.",
        "schema": {"type": "string"},
    }
}
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token: lb_..."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": SESSION_COOKIE,
        "description": "A sign-in session; requests that change something need X-CSRF-Token.",
    },
}
_TEXT = (
    "Leaderboards that resist overfitting. Scores are in the board's metric; `loss` is the loss "
    "behind a score."
)


def problem_responses(*extra_statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route for /openapi.json: the common ones and some more."""
    return {
        status: {
            "model": Problem,
            "description": _SENTENCES[status],
            "headers": _HEADERS.get(status, {}),
        }
        for status in sorted({*_ALWAYS, *extra_statuses})
    }


def public_route(
    *extra_statuses: int, tagged: bool = True, types: list[str] | None = None
) -> dict[str, Any]:
    """Return the settings of a public route; ``types`` are its response media types."""
    responses = problem_responses(*extra_statuses)
    extra: dict[str, Any] = {"x-types": types or ["application/json"]}
    if tagged:
        extra["parameters"] = [_IF_NONE_MATCH]
        responses[200] = {"headers": _ETAG}
        responses[304] = {"description": "The cached response is still current.", "headers": _ETAG}
    return {"responses": responses, "openapi_extra": {"security": OPEN, **extra}}


def private_route(*extra_statuses: int, **extra: Any) -> dict[str, Any]:
    """Return the settings of a route that needs a token."""
    return {
        "responses": problem_responses(*extra_statuses),
        "openapi_extra": {"security": PRIVATE, **extra},
    }


def no_content_route(*extra_statuses: int) -> dict[str, Any]:
    """Return the settings of a route that needs a token and returns nothing."""
    settings = private_route(409, *extra_statuses)
    settings["responses"][204] = {"description": "Done."}
    return {"status_code": 204, "response_class": Response, **settings}


def no_content() -> Response:
    """Return an empty response."""
    return Response(status_code=204, headers={"Cache-Control": "private, no-store"})


def make_router(tag: str, *, prefix: str = API) -> APIRouter:
    """Return a router whose operations have a tag and are named after their functions.

    Clients generated from /openapi.json take their module and method names from these.
    """
    return APIRouter(
        prefix=prefix,
        route_class=ApiRoute,
        tags=[tag],
        generate_unique_id_function=lambda route: route.name,
    )


def describe_api(app: FastAPI, url: str | None) -> dict[str, Any]:
    """Return the OpenAPI document; error responses are problem documents."""
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(
        title="Ladderboard", version=__version__, description=_TEXT, routes=app.routes
    )
    if url is not None:
        document["servers"] = [{"url": url}]
    document.setdefault("components", {})["securitySchemes"] = _SCHEMES
    for unused in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(unused, None)
    for path in document["paths"].values():
        for operation in path.values():
            operation.pop("x-types", None)
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= 400 and "application/json" in content:
                    content["application/problem+json"] = content.pop("application/json")
    app.openapi_schema = document
    return document
