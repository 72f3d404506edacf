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
CONTENT_TYPES = tuple(each for each in _TYPES if each)
_LISTED = ", ".join(CONTENT_TYPES)


def declared_format(request: Request) -> str | None:
    """Return the format that the headers tell, None where it has to be found out.

    What a web form may send without asking is not in the list.
    """
    kind, _, more = request.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    charset = more.partition("charset=")[2].split(";")[0].strip(' "').lower()
    packed = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in _TYPES:
        raise RequestRefused(
            415, "content_type", f"Send predictions with a Content-Type of {_LISTED}."
        )
    if charset not in {"", "utf-8", "utf8", "us-ascii"}:
        raise RequestRefused(415, "content_type", "Send text as UTF-8.")
    if packed not in {"", "identity", "gzip"}:  # what is packed with gzip is known by its bytes
        raise RequestRefused(415, "content_type", "Send the body plain, or packed with gzip.")
    return _TYPES[kind]
