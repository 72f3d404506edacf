"""The replies of parsers, which are not trusted.

A malicious body may have taken the parser over. So nothing it sends is executed or unpickled, its
size is limited, and predictions must have the shape and type that the loss needs.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidPredictions, Problem
from ladderboard.holdout import AlignedPredictions
from ladderboard.ledger import read_array
from ladderboard.server._sandbox import _worker as wire

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files import Limits, Roster
    from ladderboard.losses import Loss

MAX_REFUSAL_BYTES = 2**22  # a hundred problems of ten ids, each character escaped
_FRAME_BYTES = 1000  # besides the values
_MAX_PROBLEMS, _MAX_IDS, _MAX_NAME, _MAX_MESSAGE = 100, 10, 100, 10_000
_DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64}
_INTEGERS = ("i1", "i2", "i4", "i8")
_TYPES = {"i": _INTEGERS, "f": (*_INTEGERS, "f8"), "T": ("text",)}


class InvalidWorkerReply(Exception):
    """A parser sent an invalid reply."""


class Spec:
    """What a parser needs to read predictions: ids, a loss and limits, but no label.

    ``seconds`` is the time limit, if it is below that of the pool. ``max_reply_bytes`` is how many
    bytes a reply with predictions can have at most.
    """

    def __init__(
        self, roster: Roster, loss: Loss, limits: Limits, seconds: float | None = None
    ) -> None:
        self.roster, self.loss, self.limits, self.seconds = roster, loss, limits, seconds
        self._expected = expected = loss.columns(kind=roster.kind, width=roster.width)
        self._dtypes = ("i", "f") if expected.number else ("T",)
        values = 8 * roster.n * (expected.width or limits.columns)
        if expected.width is None:
            values = min(values, 8 * (roster.n + limits.bytes))
        text = 0 if expected.number else 2 * limits.bytes
        self.max_reply_bytes = _FRAME_BYTES + values + text

    def pack(self) -> bytes:
        """Return the specification as sent to a parser."""
        return wire.pack_spec(self.roster, self.loss, self.limits)

    def submission(self, content: bytes) -> AlignedPredictions:
        """Return the predictions in a reply."""
        try:
            return AlignedPredictions.from_values(self._read_array(content))
        except (struct.error, ValueError, IndexError, OverflowError):
            raise InvalidWorkerReply from None

    def _read_array(self, content: bytes) -> NDArray[Any]:
        head, kind, counted, *shape, size = wire.ARRAY_HEAD.unpack_from(content)
        dtype = head.decode("latin-1")
        start = wire.ARRAY_HEAD.size + size
        array: dict[str, Any] = {
            "type": wire.TYPES[kind],
            "shape": self._check_shape(*shape),
            "values": content[start:],
            "lengths": {
                "type": wire.TYPES[counted],
                "values": content[wire.ARRAY_HEAD.size : start],
            },
        }
        if dtype not in self._dtypes or start > len(content):
            raise InvalidWorkerReply
        if array["type"] not in _TYPES[dtype]:
            raise InvalidWorkerReply
        if dtype == "T":
            return _read_texts(array)
        if size or len(array["values"]) != math.prod(array["shape"]) * int(array["type"][1]):
            raise InvalidWorkerReply
        read = read_array(array).astype(_DTYPES[dtype], copy=False)
        if dtype == "f" and not np.isfinite(read).all():
            raise InvalidWorkerReply
        return read

    def _check_shape(self, dimensions: int, rows: int, columns: int) -> tuple[int, ...]:
        """Return the shape; refuse one that does not fit the loss."""
        expected = self._expected
        if rows != self.roster.n:
            raise InvalidWorkerReply
        if dimensions == 1 and (
            expected.form == "one" or expected.single or expected.width is None
        ):
            return (rows,)
        if dimensions != 2 or expected.form == "one":
            raise InvalidWorkerReply
        if not 1 <= columns <= self.limits.columns or expected.width not in {None, columns}:
            raise InvalidWorkerReply
        return (rows, columns)


def _read_texts(array: dict[str, Any]) -> NDArray[Any]:
    count, lengths = math.prod(array["shape"]), array["lengths"]
    if lengths["type"] not in _INTEGERS or len(lengths["values"]) != count * int(
        lengths["type"][1]
    ):
        raise InvalidWorkerReply
    lengths["shape"] = (count,)
    sizes = read_array(lengths).astype(np.int64)
    total = len(array["values"].decode("utf-8"))
    # The sum could overflow, so each length is checked, too.
    if sizes.min() < 0 or sizes.max() > total or int(sizes.sum()) != total:
        raise InvalidWorkerReply
    return read_array(array)


def read_refusal(content: bytes) -> InvalidPredictions:
    """Return the refusal in a reply."""
    try:
        document = json.loads(content)
        message, problems = document["message"], document["problems"]
        if len(problems) > _MAX_PROBLEMS:
            raise InvalidWorkerReply
        items = tuple(_read_problem(*item) for item in problems)
        return InvalidPredictions(_read_message(message), problems=items)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidWorkerReply from None


def _read_problem(code: Any, column: Any, count: Any, ids: Any, message: Any) -> Problem:
    plain = isinstance(code, str) and code.isascii() and code.replace("_", "a").isalnum()
    if not plain or len(code) > 40 or type(count) is not int or type(ids) is not list:
        raise InvalidWorkerReply
    if not 0 <= count < 2**63 or len(ids) > _MAX_IDS:
        raise InvalidWorkerReply
    name = None if column is None else _read_name(column)
    return Problem(code, name, count, tuple(map(_read_name, ids)), _read_message(message))


def _read_name(value: Any) -> str:
    """Return a name from the file; it is untrusted text."""
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise InvalidWorkerReply
    return value.encode("utf-8", "replace").decode()


def _read_message(value: Any) -> str:
    """Return a message with control characters replaced by ``?``."""
    if not isinstance(value, str) or len(value) > _MAX_PROBLEMS * _MAX_MESSAGE:
        raise InvalidWorkerReply
    return "".join(
        character if character.isprintable() or character == "\n" else "?" for character in value
    )
