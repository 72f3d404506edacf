"""Canonical encoding of values and arrays, and padding.

Typed and length-prefixed: no two values share a form, whatever text they hold. The byte format is
in docs/reference/ledger.md and does not change.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PREFIX = b"ladderboard:1:"
_LENGTH = struct.Struct(">Q")
_DOUBLE = struct.Struct(">d")
_SINGLE = {b"N": None, b"T": True, b"F": False}
_WHOLE = ("i1", "i2", "i4", "i8")
_NUMBERS = {*_WHOLE, "u8", "f8"}
_EXACT = 2.0**63
_LENGTH_BYTES = 8


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


class MapEncoder:
    """A map whose keys are known beforehand: the same form, written faster.

    >>> MapEncoder("b", "a").encode({"a": 1, "b": None}) == encode({"a": 1, "b": None})
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


def _read_sized(tag: bytes, content: bytes) -> Any:
    if tag == b"B":
        return content
    return int(content) if tag == b"I" else content.decode("utf-8", "surrogatepass")


def write_array(array: NDArray[Any]) -> dict[str, Any]:
    r"""Return what has a canonical form: the type, the shape and the values as bytes.

    Whole numbers take the fewest of 1, 2, 4 and 8 bytes that hold them all, so that 1, 1.0 and
    True are the same; other numbers are doubles. Text is UTF-8 with the length of each.

    >>> write_array(np.array([1.0, 0.0])) == write_array(np.array([True, False]))
    True
    >>> write_array(np.array([1, 300]))
    {'type': 'i2', 'shape': [2], 'values': b'\x00\x01\x01,'}
    """
    kind = array.dtype.kind
    if kind in "UT":
        return _write_text(array)
    if kind == "O":
        return _write_objects(array)
    whole = _as_whole(array)
    if whole is not None:
        return _write_numbers(_fewest(whole), whole)
    if kind == "u":
        return _write_numbers("u8", array)
    return _write_numbers("f8", array.astype(np.float64) + 0.0)  # no negative zero


def read_array(written: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array; text as NumPy's text of any length.

    >>> read_array(write_array(np.array(["a", "bc"], dtype=object))).tolist()
    ['a', 'bc']
    """
    shape = tuple(written["shape"])
    if any(type(each) is not int or each < 0 for each in shape) or (0 in shape and len(shape) > 1):
        raise ValueError("An array cannot be read: its shape is none that we write.")
    if written["type"] == "mixed":
        out = np.empty(len(written["values"]), dtype=object)
        out[:] = written["values"]
        return out.reshape(shape)
    if written["type"] != "text":
        if written["type"] not in _NUMBERS:
            raise ValueError("An array cannot be read: it is of no type that we write.")
        held = np.frombuffer(written["values"], dtype=f">{written['type']}")
        return held.astype(held.dtype.newbyteorder("=")).reshape(shape)
    text = written["values"].decode("utf-8", "surrogatepass")
    lengths = read_array(written["lengths"])
    if lengths.ndim != 1 or (lengths < 0).any() or int(lengths.sum(dtype=np.int64)) != len(text):
        raise ValueError("An array of text cannot be read: its lengths are not those of its text.")
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    each = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return np.array(each, dtype=np.dtypes.StringDType()).reshape(shape)


def _as_whole(array: NDArray[Any]) -> NDArray[Any] | None:
    """Return whole numbers as such, or None where they are not, or do not fit."""
    kind = array.dtype.kind
    if kind in "bi":
        return array
    if kind == "u":
        return array if not array.size or array.max() < _EXACT else None
    if not (np.trunc(array) == array).all() or (array.size and np.abs(array).max() >= _EXACT):
        return None
    return array.astype(np.int64)


def _fewest(whole: NDArray[Any]) -> str:
    if not whole.size:
        return _WHOLE[0]
    least, most = int(whole.min()), int(whole.max())
    bits = max(most.bit_length(), (~least).bit_length() if least < 0 else 0)
    return _WHOLE[(bits >= 8) + (bits >= 16) + (bits >= 32)]


def _write_numbers(held_as: str, values: NDArray[Any]) -> dict[str, Any]:
    held = values.astype(f">{held_as}", order="C")
    return {"type": held_as, "shape": list(values.shape), "values": held.tobytes()}


def _write_text(array: NDArray[Any]) -> dict[str, Any]:
    each = array.ravel().tolist()
    lengths = np.fromiter(map(len, each), dtype=np.int64, count=len(each))
    return {
        "type": "text",
        "shape": list(array.shape),
        "lengths": write_array(lengths),
        "values": "".join(each).encode("utf-8", "surrogatepass"),
    }


def _write_objects(array: NDArray[Any]) -> dict[str, Any]:
    """Write objects as text if all of them are, otherwise one by one: 1, 1.0 and True alike."""
    each = array.ravel().tolist()
    if all(type(value) is str for value in each):
        return _write_text(array)
    plain = [
        int(value) if isinstance(value, bool | float) and value == int(value) else value
        for value in each
    ]
    return {"type": "mixed", "shape": list(array.shape), "values": plain}


def pad(content: bytes, block: int) -> bytes:
    """Return the content after its length, filled with zeros to a multiple of the block.

    >>> len(pad(b"abc", 256)), len(pad(b"", 256))
    (256, 256)
    """
    size = _LENGTH_BYTES + len(content)
    return len(content).to_bytes(_LENGTH_BYTES, "big") + content + bytes(-size % block)


def unpad(padded: bytes) -> bytes:
    """Return the content, or raise ``ValueError``.

    >>> unpad(pad(b"abc", 256))
    b'abc'
    """
    end = _LENGTH_BYTES + int.from_bytes(padded[:_LENGTH_BYTES], "big")
    if len(padded) < end or padded.count(0, end) != len(padded) - end:
        raise ValueError("This was not padded so.")
    return padded[_LENGTH_BYTES:end]
