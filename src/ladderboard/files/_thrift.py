"""Thrift's compact form, as far as Parquet's own accounts need it: structs as dicts by field id."""

from __future__ import annotations

from typing import Any

__all__ = ["Compact", "Malformed"]

_DEEPEST = 16


class Malformed(Exception):
    """The bytes are not what they should be."""


class Compact:
    """Reads from a place in some bytes and keeps the place it has come to."""

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
