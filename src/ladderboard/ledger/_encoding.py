"""Canonical encoding of values and arrays, and padding.

Typed and length-prefixed, so that two different values never have the same encoding. The byte
format is described in docs/reference/ledger.md and does not change.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

PREFIX = b"ladderboard:1:"
_LENGTH = struct.Struct(">Q")
_DOUBLE = struct.Struct(">d")
_pack_length, _pack_double = _LENGTH.pack, _DOUBLE.pack
_CONSTANTS = {b"N": None, b"T": True, b"F": False}
_CONSTANT_TAGS = {constant: tag for tag, constant in _CONSTANTS.items()}
_INTEGER_TYPES = ("i1", "i2", "i4", "i8")
_NUMBER_TYPES = {*_INTEGER_TYPES, "u8", "f8"}
_INT64_LIMIT = 2.0**63
_LENGTH_BYTES = 8
_ARRAY_FIELDS = 3  # of numbers: type, shape and values
_TEXT_ONLY = frozenset({str})


class Encoded(bytes):
    """A value that is encoded already; ``encode`` inserts it as it is."""


def encode(value: Any) -> bytes:
    r"""Encode None, a bool, an int, a finite float, text, bytes, a list or a map of text keys.

    >>> encode([1, None])
    b'L\x00\x00\x00\x00\x00\x00\x00\x02I\x00\x00\x00\x00\x00\x00\x00\x011N'
    """
    kind = type(value)
    if kind is bytes:
        encoded = b"B" + _pack_length(len(value)) + value
    elif kind is int:
        content = b"%d" % value
        encoded = b"I" + _pack_length(len(content)) + content
    elif kind is str:
        content = value.encode("utf-8", "surrogatepass")
        encoded = b"S" + _pack_length(len(content)) + content
    elif kind is list or kind is tuple:
        encoded = b"L" + _pack_length(len(value)) + b"".join([encode(item) for item in value])
    elif kind is float:
        if not isfinite(value):
            raise ValueError("A number that is not finite has no canonical form.")
        encoded = b"D" + _pack_double(value + 0.0)  # no negative zero
    elif kind is Encoded:
        encoded = bytes(value)
    elif value is None or value is True or value is False:
        encoded = _CONSTANT_TAGS[value]
    else:
        encoded = _encode_map(value)
    return encoded


class MapEncoder:
    """Encodes maps whose keys are known beforehand, with the same result as ``encode``, faster.

    >>> MapEncoder("b", "a").encode(1, None) == encode({"a": None, "b": 1})
    True
    """

    def __init__(self, *names: str) -> None:
        self.names = names
        """The keys, in the order in which ``encode`` takes their values."""
        self._head = b"M" + _pack_length(len(names))
        # Sorted by code points, which is also the order of their UTF-8.
        self._keys = [(names.index(name), encode(name)) for name in sorted(names)]

    def encode(self, *values: Any) -> Encoded:
        """Encode the values of the keys, which come in the order of the keys."""
        return Encoded(self.join(values))

    def digest(self, domain: str, *values: Any) -> bytes:
        """Return the ``digest`` of the same map."""
        return hashlib.sha256(_digest_prefix(domain) + self.join(values)).digest()

    def join(self, values: Sequence[Any]) -> bytes:
        """Encode the values as plain bytes; frequent kinds here: a call costs more than they."""
        encoded = self._head
        for position, key in self._keys:
            value = values[position]
            kind = type(value)
            if kind is bytes:  # a digest or a salt, mostly
                encoded += key + b"B" + _pack_length(len(value)) + value
            elif kind is Encoded:
                encoded += key + value
            elif value is None or value is False or value is True:
                encoded += key + _CONSTANT_TAGS[value]
            else:
                encoded += key + encode(value)
        return encoded


def digest(domain: str, value: Any) -> bytes:
    """Return the SHA-256 of a value; it differs from that of the same value in another domain.

    >>> digest("holdout", 1) == digest("submission", 1)
    False
    """
    encoded = value if type(value) is Encoded else encode(value)
    return hashlib.sha256(_digest_prefix(domain) + encoded).digest()


@lru_cache(maxsize=256)
def _digest_prefix(domain: str) -> bytes:
    return PREFIX + domain.encode("ascii") + b"\n"


def _encode_map(value: Any) -> bytes:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} has no canonical form.")
    if not _TEXT_ONLY.issuperset(map(type, value)):
        raise TypeError("The keys of a map must be text to have a canonical form.")
    return _map_encoder(tuple(value)).join(list(value.values()))


@lru_cache(maxsize=256)
def _map_encoder(names: tuple[str, ...]) -> MapEncoder:
    return MapEncoder(*names)


def decode(encoded: bytes) -> Any:
    """Decode what ``encode`` wrote; refuse anything that it would not have written.

    >>> decode(encode([1, 2.5, {"a": b"x"}]))
    [1, 2.5, {'a': b'x'}]
    """
    try:
        value, end = _read(encoded, 0)
        if end == len(encoded) and encode(value) == encoded:
            return value
    except (RecursionError, TypeError, ValueError):
        pass
    raise ValueError("This is not a canonical form.")


def _read(encoded: bytes, position: int) -> tuple[Any, int]:
    tag = encoded[position : position + 1]
    position += 1
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], position
    if tag == b"D":
        return _DOUBLE.unpack_from(_slice(encoded, position, 8))[0], position + 8
    count = _LENGTH.unpack(_slice(encoded, position, 8))[0]
    position += 8
    if tag in b"ISB":
        content = _slice(encoded, position, count)
        return _read_sized(tag, content), position + count
    if tag not in (b"L", b"M") or count > len(encoded):
        raise ValueError
    items = []
    for _ in range(count * (2 if tag == b"M" else 1)):
        item, position = _read(encoded, position)
        items.append(item)
    return (items if tag == b"L" else dict(zip(items[::2], items[1::2], strict=True))), position


def _slice(encoded: bytes, position: int, count: int) -> bytes:
    if position + count > len(encoded):
        raise ValueError
    return encoded[position : position + count]


def _read_sized(tag: bytes, content: bytes) -> Any:
    if tag == b"B":
        return content
    return int(content) if tag == b"I" else content.decode("utf-8", "surrogatepass")


def write_array(array: NDArray[Any]) -> dict[str, Any]:
    r"""Return an array as a map to encode: the type, the shape and the values as bytes.

    Whole numbers take the fewest of 1, 2, 4 and 8 bytes that hold them all, so that 1, 1.0 and
    True are the same; other numbers are doubles. Text is UTF-8 with the length of each string.

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
    integers = _as_integers(array)
    if integers is not None:
        return _write_numbers(_smallest_type(integers), integers)
    if kind == "u":
        return _write_numbers("u8", array)
    return _write_numbers("f8", array.astype(np.float64) + 0.0)  # no negative zero


_PREDICTIONS = MapEncoder("predictions", "training")
_PREDICTED_DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64}


def digest_predictions(written: Mapping[str, Any], training: float | None = None) -> bytes:
    """Return the digest of predictions in the holdout's order, from what ``write_array`` returned.

    It covers the mean loss on the training data, too, if the mechanism uses it.
    """
    values = written["values"]
    if type(values) is not bytes or len(written) != _ARRAY_FIELDS:
        return _PREDICTIONS.digest("predictions", written, training)
    shape = tuple(written["shape"])
    head, tail = _around_predictions(written["type"], shape, len(values), training)
    hashed = hashlib.sha256(head)
    hashed.update(values)
    hashed.update(tail)
    return hashed.digest()


@lru_cache(maxsize=64, typed=True)
def _around_predictions(
    type_name: str, shape: tuple[int, ...], size: int, training: float | None
) -> tuple[bytes, bytes]:
    """Return what is hashed before and after this many bytes of numbers."""
    start = Encoded(b"B" + _pack_length(size))
    written = {"type": type_name, "shape": list(shape), "values": start}
    encoded = _digest_prefix("predictions") + _PREDICTIONS.encode(written, training)
    tail = encode("training") + encode(training)
    return encoded.removesuffix(tail), tail


def decode_predictions(
    kind: str, written: Mapping[str, Any], training: float | None = None
) -> tuple[bytes, NDArray[Any], dict[str, Any]]:
    """Return the digest of an array of predictions, the array, and how ``write_array`` writes it.

    ``kind`` is its dtype's. It need not be written in the fewest bytes, which the digest is of,
    unless it has one byte for each value.
    """
    values = read_array(written)
    dtype = _PREDICTED_DTYPES.get(kind)
    values = values if dtype is None else values.astype(dtype, copy=False)
    if written["type"] == "i1":
        again = {"type": "i1", "shape": list(values.shape), "values": written["values"]}
    else:
        again = write_array(values)
    return digest_predictions(again, training), values, again


def read_array(fields: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array that ``write_array`` wrote; text becomes NumPy's ``StringDType``.

    >>> read_array(write_array(np.array(["a", "bc"], dtype=object))).tolist()
    ['a', 'bc']
    """
    shape = tuple(fields["shape"])
    if any(type(length) is not int or length < 0 for length in shape) or (
        0 in shape and len(shape) > 1
    ):
        raise ValueError("An array cannot be read: Ladderboard never writes its shape.")
    if fields["type"] == "mixed":
        objects = np.empty(len(fields["values"]), dtype=object)
        objects[:] = fields["values"]
        return objects.reshape(shape)
    if fields["type"] != "text":
        if fields["type"] not in _NUMBER_TYPES:
            raise ValueError("An array cannot be read: Ladderboard never writes its type.")
        numbers = np.frombuffer(fields["values"], dtype=f">{fields['type']}")
        return numbers.astype(numbers.dtype.newbyteorder("=")).reshape(shape)
    text = fields["values"].decode("utf-8", "surrogatepass")
    lengths = read_array(fields["lengths"])
    if lengths.ndim != 1 or (lengths < 0).any() or int(lengths.sum(dtype=np.int64)) != len(text):
        raise ValueError("An array of text cannot be read: its lengths are not those of its text.")
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    texts = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return np.array(texts, dtype=np.dtypes.StringDType()).reshape(shape)


def _as_integers(array: NDArray[Any]) -> NDArray[Any] | None:
    """Return an array of integers, or None if some values are not whole or do not fit."""
    kind = array.dtype.kind
    if kind in "bi":
        return array
    if kind == "u":
        return array if not array.size or array.max() < _INT64_LIMIT else None
    if not (np.trunc(array) == array).all() or (array.size and np.abs(array).max() >= _INT64_LIMIT):
        return None
    return array.astype(np.int64)


def _smallest_type(integers: NDArray[Any]) -> str:
    if not integers.size:
        return _INTEGER_TYPES[0]
    # Together the numbers have the bits of the largest, and its sign if one is negative.
    together = int(np.bitwise_or.reduce(integers, axis=None))
    bits = together.bit_length()
    if together < 0:
        smallest, largest = int(integers.min()), int(integers.max())
        bits = max(largest.bit_length(), (~smallest).bit_length())
    return _INTEGER_TYPES[(bits >= 8) + (bits >= 16) + (bits >= 32)]


def _write_numbers(type_name: str, values: NDArray[Any]) -> dict[str, Any]:
    big_endian = values.astype(f">{type_name}", order="C")
    return {"type": type_name, "shape": list(values.shape), "values": big_endian.tobytes()}


def _write_text(array: NDArray[Any]) -> dict[str, Any]:
    texts = array.ravel().tolist()
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    return {
        "type": "text",
        "shape": list(array.shape),
        "lengths": write_array(lengths),
        "values": "".join(texts).encode("utf-8", "surrogatepass"),
    }


def _write_objects(array: NDArray[Any]) -> dict[str, Any]:
    """Write objects as text if all of them are, otherwise one by one: 1, 1.0 and True alike."""
    values = array.ravel().tolist()
    if all(type(value) is str for value in values):
        return _write_text(array)
    plain = [
        int(value) if isinstance(value, bool | float) and value == int(value) else value
        for value in values
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
        raise ValueError("This was not padded by Ladderboard.")
    return padded[_LENGTH_BYTES:end]
