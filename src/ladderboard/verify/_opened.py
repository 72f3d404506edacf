"""The opened secret side of a question, read from the very bytes that were committed to.

Most of the time of a check that is not the tape's own would go into decoding these. Their form is
one of a kind, so it is read place by place; whatever is not exactly so is refused.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any, NamedTuple

from ladderboard.ledger import encode

__all__ = ["Opened", "read_opened"]

_WHOLE = struct.Struct(">Q")
_DOUBLE = struct.Struct(">d")
_BYTES = b"B" + _WHOLE.pack(32)
_NEGATIVE_ZERO = _DOUBLE.pack(-0.0)


def _map(size: int) -> bytes:
    return b"M" + _WHOLE.pack(size)


_TO_CONTENT = _map(4) + encode("content")
_TO_AFTER = _map(6) + encode("after") + _BYTES
_TO_BEFORE = encode("before") + _BYTES
_TO_BROKEN = encode("broken")
_TO_DRAWS = encode("draws") + b"L"
_TO_RISK = encode("risk")
_TO_TRAINING = encode("training")
_TO_SALT = encode("salt") + _BYTES
_TO_SUBMISSION = encode("submission") + _BYTES
_TO_SUBMISSION_SALT = encode("submission_salt") + _BYTES
_COMMITTED = _map(2) + encode("content")
_SECRET = b"ladderboard:1:secret\n" + _COMMITTED
_SUBMISSION = b"ladderboard:1:submission\n" + _COMMITTED + _BYTES


class Opened(NamedTuple):
    """What decided a release, and what the entry shows of it if it is the truth."""

    risk: float
    training: float | None
    broken: bool
    draws: tuple[Any, ...]
    before: bytes
    after: bytes
    submission: bytes
    shown_secret: str
    shown_submission: str


def read_opened(form: bytes) -> Opened:
    """Return what a form holds; ``ValueError`` where it is not one that we write."""
    place = _Place(form)
    place.pass_by(_TO_CONTENT)
    start = place.at
    place.pass_by(_TO_AFTER)
    after = place.take(32)
    place.pass_by(_TO_BEFORE)
    before = place.take(32)
    place.pass_by(_TO_BROKEN)
    broken = {b"T": True, b"F": False}[place.take(1)]
    place.pass_by(_TO_DRAWS)
    draws = tuple([place.draw() for _ in range(_WHOLE.unpack(place.take(8))[0])])
    place.pass_by(_TO_RISK)
    risk = place.draw()
    place.pass_by(_TO_TRAINING)
    training = place.draw(nothing=True)
    content = form[start : place.at]
    place.pass_by(_TO_SALT)
    salt = place.take(32)
    place.pass_by(_TO_SUBMISSION)
    submission = place.take(32)
    place.pass_by(_TO_SUBMISSION_SALT)
    other = place.take(32)
    if place.at != len(form) or type(risk) is not float or type(training) not in _REAL:
        raise ValueError
    return Opened(
        risk, training, broken, draws, before, after, submission,
        hashlib.sha256(_SECRET + content + _TO_SALT + salt).hexdigest(),
        hashlib.sha256(_SUBMISSION + submission + _TO_SALT + other).hexdigest(),
    )  # fmt: skip


_REAL = {float, type(None)}


class _Place:
    """A place in a form."""

    __slots__ = ("_form", "at")

    def __init__(self, form: bytes) -> None:
        self._form, self.at = form, 0

    def pass_by(self, known: bytes) -> None:
        """Go on after what must be there."""
        if not self._form.startswith(known, self.at):
            raise ValueError
        self.at += len(known)

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        at = self.at
        self.at = end = at + count
        if end > len(self._form):
            raise ValueError
        return self._form[at:end]

    def draw(self, *, nothing: bool = False) -> Any:
        """Return the next number or seed; None only where there may be nothing."""
        tag = self.take(1)
        if tag == b"D":
            raw = self.take(8)
            number = _DOUBLE.unpack(raw)[0]
            if raw == _NEGATIVE_ZERO or not math.isfinite(number):
                raise ValueError
            return number
        if tag == b"N" and nothing:
            return None
        raw = self.take(_WHOLE.unpack(self.take(8))[0])
        if tag == b"B":
            return raw
        if tag != b"I" or b"%d" % (whole := int(raw)) != raw:
            raise ValueError
        return whole
