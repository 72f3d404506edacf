"""The canonical form: one way to write a value, so that it has one hash.

Typed and length-prefixed: no two values share a form, whatever text they hold. The byte format is
in docs/reference/ledger.md and does not change.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["PREFIX", "Encoded", "Record", "decode", "digest", "encode"]

PREFIX = b"ladderboard:1:"
_LENGTH = struct.Struct(">Q")
_DOUBLE = struct.Struct(">d")


class Encoded(bytes):
    """A value that was encoded already, to be put where it belongs without doing so again."""


def encode(value: Any) -> bytes:
    r"""Write None, a bool, an int, a finite float, text, bytes, a list or a map of text keys.

    >>> encode([1, None])
    b'L\x00\x00\x00\x00\x00\x00\x00\x02I\x00\x00\x00\x00\x00\x00\x00\x011N'
    """
    out = bytearray()
    _write(value, out)
    return bytes(out)


class Record:
    """A map whose keys are known beforehand: the same form, written faster.

    >>> Record("b", "a").encode({"a": 1, "b": None}) == encode({"a": 1, "b": None})
    True
    """

    def __init__(self, *names: str) -> None:
        self._keys = [(name, encode(name)) for name in sorted(names)]
        self._head = b"M" + _LENGTH.pack(len(names))

    def encode(self, values: Mapping[str, Any]) -> Encoded:
        """Write the values under these keys."""
        out = bytearray(self._head)
        for name, key in self._keys:
            out += key
            _write(values[name], out)
        return Encoded(out)


def digest(domain: str, value: Any) -> bytes:
    """Return the SHA-256 of a value, apart from the same value in every other domain.

    >>> digest("holdout", 1) == digest("submission", 1)
    False
    """
    out = bytearray(PREFIX + domain.encode("ascii") + b"\n")
    _write(value, out)
    return hashlib.sha256(out).digest()


def _write(value: Any, out: bytearray) -> None:
    writer = _WRITERS.get(type(value))
    if writer is not None:
        writer(value, out)
    elif isinstance(value, Mapping):
        _map(value, out)
    else:
        raise TypeError(f"{type(value).__name__} has no canonical form.")


def _sized(tag: bytes, content: bytes, out: bytearray) -> None:
    out += tag + _LENGTH.pack(len(content)) + content


def _bool(value: bool, out: bytearray) -> None:
    out += b"T" if value else b"F"


def _float(value: float, out: bytearray) -> None:
    if not math.isfinite(value):
        raise ValueError("A number that is not finite has no canonical form.")
    out += b"D" + _DOUBLE.pack(value + 0.0)  # no negative zero


def _list(value: list[Any] | tuple[Any, ...], out: bytearray) -> None:
    out += b"L" + _LENGTH.pack(len(value))
    for each in value:
        _write(each, out)


def _map(value: Mapping[Any, Any], out: bytearray) -> None:
    if any(type(key) is not str for key in value):
        raise TypeError("The keys of a map must be text to have a canonical form.")
    out += b"M" + _LENGTH.pack(len(value))
    # By code points, which is also the order of their UTF-8.
    for key in sorted(value):
        _sized(b"S", _utf8(key), out)
        _write(value[key], out)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_WRITERS: dict[type, Callable[[Any, bytearray], None]] = {
    Encoded: lambda value, out: out.extend(value),
    type(None): lambda _, out: out.extend(b"N"),
    bool: _bool,
    int: lambda value, out: _sized(b"I", b"%d" % value, out),
    float: _float,
    str: lambda value, out: _sized(b"S", _utf8(value), out),
    bytes: lambda value, out: _sized(b"B", value, out),
    list: _list,
    tuple: _list,
    dict: _map,
}


def decode(form: bytes) -> Any:
    """Read what ``encode`` wrote; refuse anything it would not have written.

    >>> decode(encode([1, 2.5, {"a": b"x"}]))
    [1, 2.5, {'a': b'x'}]
    """
    try:
        value, end = _read(form, 0)
        if end == len(form) and encode(value) == form:
            return value
    except (RecursionError, TypeError, ValueError):
        pass
    raise ValueError("This is not a canonical form.")


def _read(form: bytes, at: int) -> tuple[Any, int]:
    tag = form[at : at + 1]
    at += 1
    if tag in _SINGLE:
        return _SINGLE[tag], at
    if tag == b"D":
        return _DOUBLE.unpack_from(_part(form, at, 8))[0], at + 8
    count = _LENGTH.unpack(_part(form, at, 8))[0]
    at += 8
    if tag in b"ISB":
        content = _part(form, at, count)
        return _read_sized(tag, content), at + count
    if tag not in (b"L", b"M") or count > len(form):
        raise ValueError
    items = []
    for _ in range(count * (2 if tag == b"M" else 1)):
        each, at = _read(form, at)
        items.append(each)
    return (items if tag == b"L" else dict(zip(items[::2], items[1::2], strict=True))), at


def _part(form: bytes, at: int, count: int) -> bytes:
    if at + count > len(form):
        raise ValueError
    return form[at : at + count]


_SINGLE = {b"N": None, b"T": True, b"F": False}


def _read_sized(tag: bytes, content: bytes) -> Any:
    if tag == b"B":
        return content
    return int(content) if tag == b"I" else content.decode("utf-8", "surrogatepass")
