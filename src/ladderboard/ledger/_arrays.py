"""Arrays in canonical form: equal values are written alike, however they were held in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["read_array", "write_array"]

_WHOLE = ("i1", "i2", "i4", "i8")
_NUMBERS = {*_WHOLE, "u8", "f8"}
_EXACT = 2.0**63


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
        return _text(array)
    if kind == "O":
        return _objects(array)
    whole = _as_whole(array)
    if whole is not None:
        return _numbers(_fewest(whole), whole)
    if kind == "u":
        return _numbers("u8", array)
    return _numbers("f8", array.astype(np.float64) + 0.0)  # no negative zero


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


def _numbers(held_as: str, values: NDArray[Any]) -> dict[str, Any]:
    held = values.astype(f">{held_as}", order="C")
    return {"type": held_as, "shape": list(values.shape), "values": held.tobytes()}


def _text(array: NDArray[Any]) -> dict[str, Any]:
    each = array.ravel().tolist()
    lengths = np.fromiter(map(len, each), dtype=np.int64, count=len(each))
    return {
        "type": "text",
        "shape": list(array.shape),
        "lengths": write_array(lengths),
        "values": "".join(each).encode("utf-8", "surrogatepass"),
    }


def _objects(array: NDArray[Any]) -> dict[str, Any]:
    """Write objects as text if all of them are, otherwise one by one: 1, 1.0 and True alike."""
    each = array.ravel().tolist()
    if all(type(value) is str for value in each):
        return _text(array)
    plain = [
        int(value) if isinstance(value, bool | float) and value == int(value) else value
        for value in each
    ]
    return {"type": "mixed", "shape": list(array.shape), "values": plain}
