"""The opened secret side of a question, read from the very bytes that were committed to.

Much of the time of a check that is not the tape's own would go into decoding these. But for the
draws everything in them is where it always is, so it is taken from there; what stands between must
be what we write.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any, NamedTuple

from ladderboard.ledger import decode, encode

__all__ = ["Opened", "are_draws", "form_of", "read_opened"]

_COUNT = 8  # bytes of a length


def _sized(tag: bytes, size: int) -> bytes:
    return tag + size.to_bytes(_COUNT, "big")


_BYTES = _sized(b"B", 32)
_TO_SALT = encode("salt") + _BYTES
_WHOLE = [_sized(b"I", digits) for digits in range(33)]


class _Layout:
    """Parts that have one length each, and what stands before each of them."""

    def __init__(self, *parts: tuple[bytes, str]) -> None:
        self._between = tuple(between for between, _ in parts)
        form = "".join(f"{len(between)}s{part}" for between, part in parts)
        self._struct = struct.Struct(f">{form}")
        self.size = self._struct.size

    def read(self, form: bytes, start: int) -> tuple[Any, ...] | None:
        """Return the parts from a place on; None where something else stands between them."""
        found = self._struct.unpack_from(form, start)
        return found[1::2] if found[::2] == self._between else None


_BEFORE_CONTENT = _sized(b"M", 4) + encode("content")
_HEAD = _Layout(
    (_BEFORE_CONTENT + _sized(b"M", 6) + encode("after") + _BYTES, "32s"),
    (encode("before") + _BYTES, "32s"),
    (encode("broken"), "1s"),
    (encode("draws"), "0s"),
)
_SALTS = (
    (_TO_SALT, "32s"),
    (encode("submission") + _BYTES, "32s"),
    (encode("submission_salt") + _BYTES, "32s"),
)
_RISK = (encode("risk") + b"D", "d")
_TAIL = _Layout(_RISK, (encode("training") + b"N", "0s"), *_SALTS)
_TRAINED = _Layout(_RISK, (encode("training") + b"D", "d"), *_SALTS)
_CONTENT = len(_BEFORE_CONTENT)
_AFTER_CONTENT = _Layout(*_SALTS).size

_COMMITTED = _sized(b"M", 2) + encode("content")
_SECRET = b"ladderboard:1:secret\n" + _COMMITTED
_SUBMISSION = b"ladderboard:1:submission\n" + _COMMITTED + _BYTES


class Opened(NamedTuple):
    """What decided a release, and what the entry shows of it if it is the truth."""

    risk: float
    training: float | None
    broken: bool
    draws: bytes
    """The canonical form of the list of draws, if it is one: whoever draws again compares it."""
    before: bytes
    after: bytes
    submission: bytes
    shown_secret: str
    shown_submission: str


def read_opened(form: bytes) -> Opened:
    """Return what a form holds; ``ValueError`` where it is not one that we write."""
    if len(form) < _HEAD.size + _TRAINED.size:
        raise ValueError
    head = _HEAD.read(form, 0)
    end, tail = len(form) - _TAIL.size, _TAIL.read(form, len(form) - _TAIL.size)
    if tail is None:
        end, tail = len(form) - _TRAINED.size, _TRAINED.read(form, len(form) - _TRAINED.size)
    if head is None or tail is None:
        raise ValueError
    after, before, broken, _ = head
    risk, training, salt, submission, other = tail
    training = None if training == b"" else training
    if broken not in {b"T", b"F"} or not (_is_plain(risk) and _is_plain(training)):
        raise ValueError
    return Opened(
        risk,
        training,
        broken == b"T",
        form[_HEAD.size : end],
        before,
        after,
        submission,
        hashlib.sha256(_SECRET + form[_CONTENT:-_AFTER_CONTENT] + _TO_SALT + salt).hexdigest(),
        hashlib.sha256(_SUBMISSION + submission + _TO_SALT + other).hexdigest(),
    )


def _is_plain(number: float | None) -> bool:
    """Return whether a number is finite and no negative zero, or there is none."""
    if number is None or 0 < number < math.inf:
        return True
    return -math.inf < number < 0 or (number == 0 and math.copysign(1, number) > 0)


def are_draws(form: bytes) -> bool:
    """Return whether a form is one of draws, where nobody can draw again and compare.

    >>> are_draws(encode([3, 0.5])), are_draws(encode(["text"])), are_draws(b"L")
    (True, False, False)
    """
    try:
        draws = decode(form)
    except ValueError:
        return False
    return type(draws) is list and all(type(each) in {int, float, bytes} for each in draws)


def form_of(draws: tuple[Any, ...]) -> bytes:
    """Return the canonical form of draws. Most are whole numbers, for which this is quicker.

    >>> form_of((3, -12)) == encode([3, -12]), form_of((0.5, 2)) == encode([0.5, 2])
    (True, True)
    """
    try:
        digits = [b"%d" % each for each in draws if type(each) is int]
        if len(digits) == len(draws):
            return _sized(b"L", len(draws)) + b"".join([_WHOLE[len(own)] + own for own in digits])
    except IndexError:  # a number with more digits than any law draws
        pass
    return encode(list(draws))
