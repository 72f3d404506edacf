"""What /openapi.json says beyond what the routes say themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

from ladderboard._version import __version__
from ladderboard.server._auth import SESSION

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["describe_api"]

_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token: lb_..."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": SESSION,
        "description": "The page's session; what changes anything needs X-CSRF-Token, too.",
    },
}
_TEXT = "Boards that stay honest. Numbers are losses; `display` carries the metric that is shown."


def describe_api(app: FastAPI, url: str | None) -> dict[str, Any]:
    """Return the description of a server; refusals are problem documents, and only they are."""
    if app.openapi_schema:
        return app.openapi_schema
    said = get_openapi(
        title="Ladderboard", version=__version__, description=_TEXT, routes=app.routes
    )
    if url is not None:
        said["servers"] = [{"url": url}]
    said.setdefault("components", {})["securitySchemes"] = _SCHEMES
    for unused in ("HTTPValidationError", "ValidationError"):
        said["components"]["schemas"].pop(unused, None)
    for path in said["paths"].values():
        for operation in path.values():
            operation.pop("x-types", None)
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if int(status) >= 400 and "application/json" in content:
                    content["application/problem+json"] = content.pop("application/json")
    app.openapi_schema = said
    return said
