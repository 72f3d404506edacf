"""What pages are made with: how they look, and what a script adds."""

import gzip
import hashlib
from pathlib import Path
from typing import Annotated, NamedTuple

import fastapi
from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

__all__ = ["content_of", "place_of", "router"]

router = APIRouter(include_in_schema=False)
_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class _File(NamedTuple):
    content: bytes
    packed: bytes
    tag: str
    type: str


def _read(path: Path) -> _File:
    content = path.read_bytes()
    tag = hashlib.sha256(content).hexdigest()[:16]
    return _File(content, gzip.compress(content, mtime=0), tag, _TYPES[path.suffix])


_FILES = {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


def place_of(name: str) -> str:
    """Return where a file is; another version is another place, so it may be kept for long."""
    return f"/static/{name}?{_FILES[name].tag}"


def content_of(name: str) -> bytes:
    """Return what is in a file."""
    return _FILES[name].content


@router.get("/static/{name}")
async def static(
    request: Request, name: Annotated[str, fastapi.Path(pattern="^[a-z-]+[.][a-z]+$")]
) -> Response:
    """Return a file of the pages."""
    file = _FILES.get(name)
    if file is None:
        raise HTTPException(404)
    kept = request.scope["query_string"].decode("latin-1") == file.tag
    tag = f'"{file.tag}"'
    headers = {
        "Cache-Control": f"public, max-age={31536000 if kept else 3600}",
        "ETag": tag,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(b"", 304, headers)
    content = file.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = file.packed, "gzip"
    return Response(content, 200, headers, file.type)
