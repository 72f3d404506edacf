"""A Parquet file's accounts: what its footer and every page header say, added up before reading.

A few hundred bytes can promise gigabytes, and a reader makes room for what is promised. Here the
promises are compared with each other and with the limits, and nothing is unpacked.
"""

from __future__ import annotations

from typing import Any

from ladderboard.files._thrift import Compact, Malformed

__all__ = ["parquet_size"]

_MAGIC = b"PAR1"


def parquet_size(data: bytes) -> tuple[int, int]:
    """Return rows and bytes after unpacking; raise Malformed if the accounts do not agree."""
    if len(data) < 12 or not data.startswith(_MAGIC) or not data.endswith(_MAGIC):
        raise Malformed
    length = int.from_bytes(data[-8:-4], "little")
    if length > len(data) - 12:
        raise Malformed
    start = len(data) - 8 - length
    footer = Compact(data, start, len(data) - 8).struct()
    rows = _whole(footer, 3)
    total = groups = 0
    for group in _list(footer, 4):
        here = _whole(group, 3)
        groups += here
        for chunk in _list(group, 1):
            total += _chunk_size(data, start, _struct(chunk, 3), here)
    if groups != rows:
        raise Malformed
    return rows, total


def _chunk_size(data: bytes, end: int, chunk: dict[int, Any], rows: int) -> int:
    """Walk the pages of a column; return their bytes after unpacking."""
    offsets = [_whole(chunk, each) for each in (9, 11) if chunk.get(each)]
    at = min(offsets, default=0)
    stop = at + _whole(chunk, 7)
    values = _whole(chunk, 5)
    if not 4 <= at <= stop <= end or (len(_list(chunk, 3)) == 1 and values != rows):
        raise Malformed
    total = found = 0
    while at < stop:
        reader = Compact(data, at, stop)
        page = reader.struct()
        at = reader.at + _whole(page, 3)
        if at > stop:
            raise Malformed
        total += _whole(page, 2)
        kind = _whole(page, 1)
        if kind in {0, 3}:  # a page of data, in either version
            found += _whole(_struct(page, 5 if kind == 0 else 8), 1)
        elif kind == 2:  # a dictionary
            _whole(_struct(page, 7), 1)
    if found != values:
        raise Malformed
    return total


def _whole(fields: Any, field: int) -> int:
    value = fields.get(field) if isinstance(fields, dict) else None
    if type(value) is not int or value < 0:
        raise Malformed
    return value


def _struct(fields: Any, field: int) -> dict[int, Any]:
    value = fields.get(field) if isinstance(fields, dict) else None
    if not isinstance(value, dict):
        raise Malformed
    return value


def _list(fields: Any, field: int) -> list[Any]:
    value = fields.get(field) if isinstance(fields, dict) else None
    if not isinstance(value, list):
        raise Malformed
    return value
