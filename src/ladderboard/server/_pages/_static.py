"""Static files of the pages, and the wheel of Ladderboard that a server offers to its users."""

import base64
import gzip
import hashlib
import io
import zipfile
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, NamedTuple

import fastapi
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ladderboard._version import __version__

router = APIRouter(include_in_schema=False)
_STATIC_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PACKAGE = Path(__file__).parents[2]
_DISTRIBUTION = f"ladderboard-{__version__}"
_WHEEL_NAME = f"{_DISTRIBUTION}-py3-none-any.whl"
_PACKAGED_SUFFIXES = {
    ".py",
    ".html",
    ".css",
    ".js",
    ".json",
    ".svg",
    ".typed",
}  # of files in the wheel
_WHEEL_METADATA = (
    "Wheel-Version: 1.0\nGenerator: ladderboard\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
)
_DATE = (1980, 1, 1, 0, 0, 0)


class _StaticFile(NamedTuple):
    content: bytes
    packed: bytes
    tag: str
    type: str


def _read_static_file(path: Path) -> _StaticFile:
    content = path.read_bytes()
    tag = hashlib.sha256(content).hexdigest()[:16]
    return _StaticFile(content, gzip.compress(content, mtime=0), tag, _TYPES[path.suffix])


_FILES = {
    path.name: _read_static_file(path)
    for path in sorted(_STATIC_FOLDER.iterdir())
    if path.suffix in _TYPES
}


def static_url(name: str) -> str:
    """Return the URL of a file, with a digest of its content so that it can be cached for long."""
    return f"/static/{name}?{_FILES[name].tag}"


def static_content(name: str) -> bytes:
    """Return the content of a file."""
    return _FILES[name].content


@router.get("/static/{name}")
async def static_file(
    request: Request, name: Annotated[str, fastapi.Path(pattern="^[a-z-]+[.][a-z]+$")]
) -> Response:
    """Return a static file."""
    file = _FILES.get(name)
    if file is None:
        raise HTTPException(404)
    is_versioned = request.scope["query_string"].decode("latin-1") == file.tag
    tag = f'"{file.tag}"'
    headers = {
        "Cache-Control": f"public, max-age={31536000 if is_versioned else 3600}",
        "ETag": tag,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(b"", 304, headers)
    content = file.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = file.packed, "gzip"
    return Response(content, 200, headers, file.type)


def wheel_url() -> str:
    """Return the URL of the wheel."""
    return f"/install/{_WHEEL_NAME}"


def wheel_file() -> tuple[str, bytes]:
    """Return the name of the wheel, and its content."""
    return _WHEEL_NAME, _build_wheel()[0]


@router.get("/install/{name}")
async def download_wheel(
    request: Request, name: Annotated[str, fastapi.Path(pattern="^[A-Za-z0-9_.+-]+$")]
) -> Response:
    """Return the wheel of the installed version, for pip."""
    if name != _WHEEL_NAME:
        raise HTTPException(404)
    content, tag = await run_in_threadpool(_build_wheel)
    headers = {"Cache-Control": "public, max-age=3600", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(b"", 304, headers)
    return Response(content, 200, headers, "application/octet-stream")


@lru_cache(maxsize=1)
def _build_wheel() -> tuple[bytes, str]:
    """Return a wheel built from the installed files, and its ETag."""
    installed = metadata.distribution("ladderboard")
    files = {
        f"ladderboard/{path.relative_to(_PACKAGE).as_posix()}": path.read_bytes()
        for path in sorted(_PACKAGE.rglob("*"))
        if path.is_file() and path.suffix in _PACKAGED_SUFFIXES and "__pycache__" not in path.parts
    }
    metadata_files = {"WHEEL": _WHEEL_METADATA}
    for name in ("METADATA", "entry_points.txt", "licenses/LICENSE"):
        metadata_files[name] = installed.read_text(name) or ""
    files |= {
        f"{_DISTRIBUTION}.dist-info/{name}": text.encode()
        for name, text in metadata_files.items()
        if text
    }
    record = f"{_DISTRIBUTION}.dist-info/RECORD"
    lines = [
        f"{name},sha256={_record_digest(content)},{len(content)}" for name, content in files.items()
    ]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return out.getvalue(), f'"{hashlib.sha256(out.getvalue()).hexdigest()[:16]}"'


def _record_digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
