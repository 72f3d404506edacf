"""The sizes that Parquet and Arrow files state in their metadata.

A few hundred bytes can claim to hold gigabytes, and a reader allocates what is claimed: an Arrow
buffer that claims a terabyte kills the process. So the claimed sizes are added up, and compared
with each other and with the limits, before anything is decompressed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_DEPTH = 16
_PARQUET_MAGIC = b"PAR1"
_ARROW_MAGIC = b"ARROW1"
_DICTIONARY, _RECORDS = 2, 3


class MalformedMetadata(Exception):
    """The metadata is invalid or inconsistent."""


class ThriftReader:
    """Reads the part of Thrift's compact protocol that Parquet uses; structs are dicts by id."""

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = min(end, len(data))
        if not 0 <= position <= self.end:
            raise MalformedMetadata

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read a struct."""
        fields: dict[int, Any] = {}
        field = 0
        while True:
            head = self._byte()
            if head == 0:
                return fields
            field = field + (head >> 4) if head >> 4 else self._signed()
            fields[field] = self._value(head & 15, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise MalformedMetadata
        if kind in {1, 2}:
            return kind == 1
        if kind in {4, 5, 6}:
            return self._signed()
        if kind in {9, 10}:
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        if kind not in {3, 7, 8}:  # a byte, a double, some bytes
            raise MalformedMetadata
        return self._bytes({3: 1, 7: 8}.get(kind) or self._unsigned())

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size, kind = head >> 4, head & 15
        if size == 15:
            size = self._unsigned()
        if size > self.end - self.position:  # every element takes at least one byte
            raise MalformedMetadata
        if kind in {1, 2}:
            return [self._byte() == 1 for _ in range(size)]
        return [self._value(kind, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        if self.position >= self.end:
            raise MalformedMetadata
        self.position += 1
        return self.data[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        if size > self.end - self.position:
            raise MalformedMetadata
        self.position += size
        return self.data[self.position - size : self.position]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise MalformedMetadata

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)


def parquet_size(data: bytes) -> tuple[int, int]:
    """Return the number of rows, and of bytes after unpacking.

    Raises MalformedMetadata if the stated sizes contradict each other.
    """
    if len(data) < 12 or not data.startswith(_PARQUET_MAGIC) or not data.endswith(_PARQUET_MAGIC):
        raise MalformedMetadata
    length = int.from_bytes(data[-8:-4], "little")
    if length > len(data) - 12:
        raise MalformedMetadata
    start = len(data) - 8 - length
    footer = ThriftReader(data, start, len(data) - 8).struct()
    rows = _get_integer(footer, 3)
    total = groups = 0
    for group in _get_list(footer, 4):
        group_rows = _get_integer(group, 3)
        groups += group_rows
        for chunk in _get_list(group, 1):
            total += _chunk_size(data, start, _get_struct(chunk, 3), group_rows)
    if groups != rows:
        raise MalformedMetadata
    return rows, total


def _chunk_size(data: bytes, end: int, chunk: dict[int, Any], rows: int) -> int:
    """Return the decompressed size of the pages of a column."""
    offsets = [_get_integer(chunk, field) for field in (9, 11) if chunk.get(field)]
    position = min(offsets, default=0)
    stop = position + _get_integer(chunk, 7)
    values = _get_integer(chunk, 5)
    if not 4 <= position <= stop <= end or (len(_get_list(chunk, 3)) == 1 and values != rows):
        raise MalformedMetadata
    total = page_values = 0
    while position < stop:
        reader = ThriftReader(data, position, stop)
        page = reader.struct()
        position = reader.position + _get_integer(page, 3)
        if position > stop:
            raise MalformedMetadata
        total += _get_integer(page, 2)
        kind = _get_integer(page, 1)
        if kind in {0, 3}:  # a data page, version 1 or 2
            page_values += _get_integer(_get_struct(page, 5 if kind == 0 else 8), 1)
        elif kind == 2:  # a dictionary
            _get_integer(_get_struct(page, 7), 1)
    if page_values != values:
        raise MalformedMetadata
    return total


def _get_integer(fields: Any, field: int) -> int:
    value = fields.get(field) if isinstance(fields, dict) else None
    if type(value) is not int or value < 0:
        raise MalformedMetadata
    return value


def _get_struct(fields: Any, field: int) -> dict[int, Any]:
    value = fields.get(field) if isinstance(fields, dict) else None
    if not isinstance(value, dict):
        raise MalformedMetadata
    return value


def _get_list(fields: Any, field: int) -> list[Any]:
    value = fields.get(field) if isinstance(fields, dict) else None
    if not isinstance(value, list):
        raise MalformedMetadata
    return value


class _FlatbufferTable:
    """A table of a flatbuffer; fields are located by its vtable."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._fields = position - _read_number("<i", data, position)
        self._size = _read_number("<H", data, self._fields)

    def field(self, number: int) -> int:
        """Return the position of a field, 0 if it is absent."""
        slot = 4 + 2 * number
        if slot + 2 > self._size:
            return 0
        offset = _read_number("<H", self._data, self._fields + slot)
        return self._position + offset if offset else 0

    def number(self, number: int, form: str) -> int:
        """Return a number, 0 if it is absent."""
        position = self.field(number)
        return _read_number(form, self._data, position) if position else 0

    def table(self, number: int) -> _FlatbufferTable | None:
        """Return a table, None if it is absent."""
        position = self.field(number)
        return (
            _FlatbufferTable(self._data, position + _read_number("<I", self._data, position))
            if position
            else None
        )

    def structs(self, number: int, size: int) -> Iterator[int]:
        """Yield the positions of the structs of a vector."""
        position = self.field(number)
        if not position:
            return
        position += _read_number("<I", self._data, position)
        count = _read_number("<I", self._data, position)
        if count * size > len(self._data) - position:
            raise MalformedMetadata
        yield from range(position + 4, position + 4 + count * size, size)


def arrow_size(data: bytes) -> tuple[int, int]:
    """Return the number of rows, and of bytes after unpacking.

    Raises MalformedMetadata if the stated sizes contradict each other.
    """
    if not data.startswith(_ARROW_MAGIC) or not data.endswith(_ARROW_MAGIC) or len(data) < 24:
        raise MalformedMetadata
    end = len(data) - 10
    start = end - _read_number("<i", data, end)
    if not 8 <= start < end:
        raise MalformedMetadata
    footer = _FlatbufferTable(data, start + _read_number("<I", data, start))
    rows = total = 0
    for field in (2, 3):
        for block in footer.structs(field, 24):
            group_rows, size = _batch_size(data, block, start)
            rows += group_rows if field == 3 else 0
            total += size
    return rows, total


def _batch_size(data: bytes, block: int, end: int) -> tuple[int, int]:
    """Return the rows of a batch and the decompressed size of its buffers."""
    position, head, body = (
        _read_number(form, data, block + off) for form, off in (("<q", 0), ("<i", 8), ("<q", 16))
    )
    if position < 8 or head < 16 or body < 0 or position + head + body > end:
        raise MalformedMetadata
    batch = _read_batch(data, position, body)
    rows = batch.number(0, "<q")
    if rows < 0:
        raise MalformedMetadata
    total = 0
    for node in batch.structs(1, 16):
        if not 0 <= _read_number("<q", data, node + 8) <= _read_number("<q", data, node):
            raise MalformedMetadata
        total += (
            _read_number("<q", data, node) // 8
        )  # one validity bit per row, even without a buffer
    compressed = batch.table(3) is not None
    for buffer in batch.structs(2, 16):
        offset, length = _read_number("<q", data, buffer), _read_number("<q", data, buffer + 8)
        if offset < 0 or length < 0 or offset + length > body:
            raise MalformedMetadata
        total += _buffer_size(data, position + head + offset, length, compressed=compressed)
    return rows, total


def _read_batch(data: bytes, position: int, body: int) -> _FlatbufferTable:
    """Return the record batch or dictionary batch in a message."""
    if _read_number("<I", data, position) != 0xFFFFFFFF:
        raise MalformedMetadata
    message = _FlatbufferTable(data, position + 8 + _read_number("<I", data, position + 8))
    batch, kind = message.table(2), message.number(1, "<B")
    if kind == _DICTIONARY and batch is not None:
        batch = batch.table(1)
    if batch is None or kind not in {_DICTIONARY, _RECORDS} or message.number(3, "<q") != body:
        raise MalformedMetadata
    return batch


def _buffer_size(data: bytes, position: int, length: int, *, compressed: bool) -> int:
    if not compressed or not length:
        return length
    size = _read_number("<q", data, position) if length >= 8 else -2
    if size < -1:
        raise MalformedMetadata
    return length - 8 if size == -1 else size


def _read_number(form: str, data: bytes, position: int) -> int:
    if position < 0:
        raise MalformedMetadata
    try:
        (value,) = struct.unpack_from(form, data, position)
    except struct.error:
        raise MalformedMetadata from None
    return int(value)
