"""The opened secret side of a question, read from the very bytes that were committed to.

Most of the time of a check that is not the tape's own would go into decoding these. Their form is
one of a kind, so one pattern reads it; whatever is not exactly so is refused.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from typing import Any, NamedTuple

from ladderboard.ledger import encode

__all__ = ["Opened", "form_of", "read_opened"]

_DOUBLE = struct.Struct(">d")
_COUNT = 8  # bytes of a length


def _sized(tag: bytes, size: int) -> bytes:
    return tag + size.to_bytes(_COUNT, "big")


_BYTES = _sized(b"B", 32)
_TO_SALT = encode("salt") + _BYTES
_WHOLE = [_sized(b"I", digits) for digits in range(33)]


def _named(name: str) -> bytes:
    return re.escape(encode(name))


_HASH = re.escape(_BYTES) + b"(.{32})"
_NUMBER = b"D(.{8})"
_DRAW = rb"I\0{7}[\1-\x20]-?[0-9]+|D.{8}|B\0{7}\x20.{32}"
_FORM = re.compile(
    re.escape(_sized(b"M", 4)) + _named("content")
    + b"(" + re.escape(_sized(b"M", 6)) + _named("after") + _HASH + _named("before") + _HASH
    + _named("broken") + b"([TF])" + _named("draws") + b"(L.{8}(?:" + _DRAW + b")*)"
    + _named("risk") + _NUMBER + _named("training") + b"(?:N|" + _NUMBER + b"))"
    + _named("salt") + _HASH + _named("submission") + _HASH + _named("submission_salt") + _HASH,
    re.DOTALL,
)  # fmt: skip

_COMMITTED = _sized(b"M", 2) + encode("content")
_SECRET = b"ladderboard:1:secret\n" + _COMMITTED
_SUBMISSION = b"ladderboard:1:submission\n" + _COMMITTED + _BYTES


class Opened(NamedTuple):
    """What decided a release, and what the entry shows of it if it is the truth."""

    risk: float
    training: float | None
    broken: bool
    draws: bytes
    """The canonical form of the list of draws."""
    before: bytes
    after: bytes
    submission: bytes
    shown_secret: str
    shown_submission: str


def read_opened(form: bytes) -> Opened:
    """Return what a form holds; ``ValueError`` where it is not one that we write."""
    found = _FORM.fullmatch(form)
    if found is None:
        raise ValueError
    content, after, before, broken, draws, risk, training, salt, submission, other = found.groups()
    return Opened(
        _number(risk),
        None if training is None else _number(training),
        broken == b"T",
        draws,
        before,
        after,
        submission,
        hashlib.sha256(_SECRET + content + _TO_SALT + salt).hexdigest(),
        hashlib.sha256(_SUBMISSION + submission + _TO_SALT + other).hexdigest(),
    )


def form_of(draws: tuple[Any, ...]) -> bytes:
    """Return the canonical form of draws. Most are whole numbers, for which this is quicker.

    >>> [form_of(draws) == encode(list(draws)) for draws in ((3, -12), (0.5, 2), (10**40,))]
    [True, True, True]
    """
    try:
        digits = [b"%d" % each for each in draws if type(each) is int]
        if len(digits) == len(draws):
            return _sized(b"L", len(draws)) + b"".join([_WHOLE[len(own)] + own for own in digits])
    except IndexError:  # a number with more digits than any law draws
        pass
    return encode(list(draws))


def _number(raw: bytes) -> float:
    number: float = _DOUBLE.unpack(raw)[0]
    if not math.isfinite(number) or (number == 0 and any(raw)):  # no negative zero
        raise ValueError
    return number
