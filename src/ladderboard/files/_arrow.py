"""An Arrow file's accounts: what its footer and every batch say, added up before reading.

Each packed buffer begins with its size after unpacking, and a reader makes room for as much: one
that lies by a terabyte ends the whole process. So the sizes are added up first.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ladderboard.files._thrift import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["arrow_size"]

_MAGIC = b"ARROW1"
_DICTIONARY, _RECORDS = 2, 3


class _Table:
    """A table of a flatbuffer: fields are found through its vtable."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - _read("<i", data, at)
        self._size = _read("<H", data, self._fields)

    def field(self, number: int) -> int:
        """Return where a field is, 0 if it is not there."""
        slot = 4 + 2 * number
        if slot + 2 > self._size:
            return 0
        offset = _read("<H", self._data, self._fields + slot)
        return self._at + offset if offset else 0

    def number(self, number: int, form: str) -> int:
        """Return a number, 0 if it is not there."""
        at = self.field(number)
        return _read(form, self._data, at) if at else 0

    def table(self, number: int) -> _Table | None:
        """Return a table, if it is there."""
        at = self.field(number)
        return _Table(self._data, at + _read("<I", self._data, at)) if at else None

    def structs(self, number: int, size: int) -> Iterator[int]:
        """Yield where the structs of a vector are."""
        at = self.field(number)
        if not at:
            return
        at += _read("<I", self._data, at)
        count = _read("<I", self._data, at)
        if count * size > len(self._data) - at:
            raise Malformed
        yield from range(at + 4, at + 4 + count * size, size)


def arrow_size(data: bytes) -> tuple[int, int]:
    """Return rows and bytes after unpacking; raise Malformed if the accounts do not agree."""
    if not data.startswith(_MAGIC) or not data.endswith(_MAGIC) or len(data) < 24:
        raise Malformed
    end = len(data) - 10
    start = end - _read("<i", data, end)
    if not 8 <= start < end:
        raise Malformed
    footer = _Table(data, start + _read("<I", data, start))
    rows = total = 0
    for field in (2, 3):
        for block in footer.structs(field, 24):
            here, size = _batch_size(data, block, start)
            rows += here if field == 3 else 0
            total += size
    return rows, total


def _batch_size(data: bytes, block: int, end: int) -> tuple[int, int]:
    """Return rows of a batch, and bytes of its buffers after unpacking."""
    at, head, body = (
        _read(form, data, block + off) for form, off in (("<q", 0), ("<i", 8), ("<q", 16))
    )
    if at < 8 or head < 16 or body < 0 or at + head + body > end:
        raise Malformed
    batch = _batch(data, at, body)
    rows = batch.number(0, "<q")
    if rows < 0:
        raise Malformed
    total = 0
    for node in batch.structs(1, 16):
        if not 0 <= _read("<q", data, node + 8) <= _read("<q", data, node):
            raise Malformed
        total += _read("<q", data, node) // 8  # a bit for each, also where no buffer holds it
    packed = batch.table(3) is not None
    for buffer in batch.structs(2, 16):
        offset, length = _read("<q", data, buffer), _read("<q", data, buffer + 8)
        if offset < 0 or length < 0 or offset + length > body:
            raise Malformed
        total += _buffer_size(data, at + head + offset, length, packed=packed)
    return rows, total


def _batch(data: bytes, at: int, body: int) -> _Table:
    """Return the batch of records, or of a dictionary, that a message holds."""
    if _read("<I", data, at) != 0xFFFFFFFF:
        raise Malformed
    message = _Table(data, at + 8 + _read("<I", data, at + 8))
    batch, kind = message.table(2), message.number(1, "<B")
    if kind == _DICTIONARY and batch is not None:
        batch = batch.table(1)
    if batch is None or kind not in {_DICTIONARY, _RECORDS} or message.number(3, "<q") != body:
        raise Malformed
    return batch


def _buffer_size(data: bytes, at: int, length: int, *, packed: bool) -> int:
    if not packed or not length:
        return length
    size = _read("<q", data, at) if length >= 8 else -2
    if size < -1:
        raise Malformed
    return length - 8 if size == -1 else size


def _read(form: str, data: bytes, at: int) -> int:
    if at < 0:
        raise Malformed
    try:
        (value,) = struct.unpack_from(form, data, at)
    except struct.error:
        raise Malformed from None
    return int(value)
