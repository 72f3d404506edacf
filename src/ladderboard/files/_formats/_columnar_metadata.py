"""The size that Parquet and Arrow files claim, from their metadata alone.

A few hundred bytes can promise gigabytes, and a reader allocates what is promised: an Arrow buffer
that lies by a terabyte ends the whole process. So the promises are added up, and compared with
each other and with the limits, before anything is unpacked.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 16
_PARQUET_MAGIC = b"PAR1"
_ARROW_MAGIC = b"ARROW1"
_DICTIONARY, _RECORDS = 2, 3


class Malformed(Exception):
    """The bytes are not what they should be."""


class Compact:
    """Reads Thrift's compact protocol as far as Parquet needs it: structs as dicts by id."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data = data
        self.at = at
        self.end = min(end, len(data))
        if not 0 <= at <= self.end:
            raise Malformed

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return a struct."""
        fields: dict[int, Any] = {}
        field = 0
        while True:
            head = self._byte()
            if head == 0:
                return fields
            field = field + (head >> 4) if head >> 4 else self._signed()
            fields[field] = self._value(head & 15, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise Malformed
        if kind in {1, 2}:
            return kind == 1
        if kind in {4, 5, 6}:
            return self._signed()
        if kind in {9, 10}:
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        if kind not in {3, 7, 8}:  # a byte, a double, some bytes
            raise Malformed
        return self._bytes({3: 1, 7: 8}.get(kind) or self._unsigned())

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size, kind = head >> 4, head & 15
        if size == 15:
            size = self._unsigned()
        if size > self.end - self.at:  # every element takes a byte at least
            raise Malformed
        if kind in {1, 2}:
            return [self._byte() == 1 for _ in range(size)]
        return [self._value(kind, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        if self.at >= self.end:
            raise Malformed
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, size: int) -> bytes:
        if size > self.end - self.at:
            raise Malformed
        self.at += size
        return self.data[self.at - size : self.at]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise Malformed

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)


def parquet_size(data: bytes) -> tuple[int, int]:
    """Return rows and bytes after unpacking; raise Malformed if the accounts do not agree."""
    if len(data) < 12 or not data.startswith(_PARQUET_MAGIC) or not data.endswith(_PARQUET_MAGIC):
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
    if not data.startswith(_ARROW_MAGIC) or not data.endswith(_ARROW_MAGIC) or len(data) < 24:
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
