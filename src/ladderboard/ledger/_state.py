"""A ladder's state as it is kept: what moves, in canonical form and padded."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ladderboard.errors import BrokenLedger
from ladderboard.ledger._canonical import PREFIX, Record, decode, encode
from ladderboard.ledger._padding import pad, unpad

if TYPE_CHECKING:
    from typing import Any

    from ladderboard.mechanisms import Session

__all__ = ["pad_state", "read_state", "state_digest", "unpad_state", "write_state"]

_BLOCK = 256
_DOUBLE = len(encode(0.0))
_MOVING = ("question", "closed", "state")
_FORM = Record(*_MOVING)


def write_state(session: Session) -> bytes:
    """Return the form of what moves; mechanism, n and tape are the book's, and stay."""
    return _FORM.encode(session.progress)


def read_state(form: bytes) -> dict[str, Any]:
    """Return what moves, or refuse."""
    try:
        moving = decode(form)
        return {each: moving[each] for each in _MOVING}
    except (KeyError, TypeError, ValueError):
        raise _damaged() from None


def state_digest(form: bytes) -> bytes:
    """Return the digest of a state from its form: the same as ``digest("state", ...)``."""
    return hashlib.sha256(PREFIX + b"state\n" + form).digest()


def pad_state(form: bytes, losses: int) -> bytes:
    """Return a form of constant size, with room for so many losses."""
    return pad(form, _BLOCK + losses * _DOUBLE)


def unpad_state(padded: bytes) -> bytes:
    """Return the form, or refuse."""
    try:
        return unpad(padded)
    except ValueError:
        raise _damaged() from None


def _damaged() -> BrokenLedger:
    return BrokenLedger("A ladder's state cannot be read; it was damaged.")
