"""Content types of predictions, and the file format that each stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.apache.arrow.file": "arrow",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-npy": "npy",
    "application/octet-stream": None,
    "": None,
}
CONTENT_TYPES = tuple(content_type for content_type in _TYPES if content_type)
_LISTED = ", ".join(CONTENT_TYPES)


def declared_format(request: Request) -> str | None:
    """Return the format that the headers declare; None if it must be detected.

    Types that a web form can send without a CORS preflight are not in the list.
    """
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    media_type = media_type.strip().lower()
    charset = parameters.partition("charset=")[2].split(";")[0].strip(' "').lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if media_type not in _TYPES:
        raise RequestRefused(
            415, "content_type", f"Send predictions with a Content-Type of {_LISTED}."
        )
    if charset not in {"", "utf-8", "utf8", "us-ascii"}:
        raise RequestRefused(415, "content_type", "Send text as UTF-8.")
    if encoding not in {"", "identity", "gzip"}:  # gzip is detected by its bytes
        raise RequestRefused(415, "content_type", "Send the body plain, or packed with gzip.")
    return _TYPES[media_type]
