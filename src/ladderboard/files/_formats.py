"""Formats: by name, else by the first bytes, else by the suffix, else CSV."""

from __future__ import annotations

from pathlib import PurePath

from ladderboard import _settings

__all__ = ["FORMATS", "format_of"]

FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl", "npy")

_NAMES = {
    "txt": "csv", "tab": "tsv", "pq": "parquet", "feather": "arrow", "ipc": "arrow",
    "ndjson": "jsonl", "json lines": "jsonl",
}  # fmt: skip
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy"}


def format_of(data: bytes, name: str, told: str | None) -> str:
    """Return the format of a file's bytes.

    >>> format_of(b"PAR1...", "predictions.csv", None), format_of(b"a,b", "p.tsv", None)
    ('parquet', 'tsv')
    """
    if told is not None:
        plain = told.strip().lower().lstrip(".") if isinstance(told, str) else told
        return _settings.one_of("format", _NAMES.get(plain, plain), FORMATS)
    for magic, found in _MAGIC.items():
        if data.startswith(magic):
            return found
    suffix = PurePath(name).suffix.lower().lstrip(".")
    found = _NAMES.get(suffix, suffix)
    return found if found in {"csv", "tsv", "jsonl"} else "csv"
