"""The keyed tape: every draw is a pure function of its address."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidSetting
from ladderboard.tape._samplers import Stream

if TYPE_CHECKING:
    from ladderboard.tape._laws import Law

Draws = tuple[Any, ...]
DrawsMany = tuple[np.ndarray[Any, Any], ...]

_KEY_BYTES = 32
_SEED_LIMIT = 2**256


class Tape:
    """Exact noise from a secret key.

    Parameters
    ----------
    seed
        A number for simulations and tests. Anyone can try small numbers, so a guard or a board
        refuses a tape made from a seed.
    key
        Thirty-two secret bytes, for real use.

    Without either the key comes from the operating system. Neither ``repr`` nor any message ever
    shows it.

    Examples
    --------
    >>> from ladderboard.tape import DiscreteGaussian
    >>> laws = (DiscreteGaussian(1000), DiscreteGaussian(1000))
    >>> Tape(seed=7).draw(laws, ladder=0, question=1)
    (1303, 61)
    >>> Tape(seed=7).draw(laws, ladder=0, question=1)  # the same address, the same draw
    (1303, 61)
    >>> Tape()
    Tape(<key hidden>)
    """

    def __init__(self, *, seed: int | None = None, key: bytes | None = None) -> None:
        if seed is not None and key is not None:
            raise InvalidSetting("A tape takes a seed or a key, not both.")
        if key is not None and (not isinstance(key, bytes) or len(key) != _KEY_BYTES):
            raise InvalidSetting(
                f"key must be {_KEY_BYTES} bytes; make one with secrets.token_bytes({_KEY_BYTES})."
            )
        if seed is not None:
            seed = read_seed(seed)
            key = hashlib.sha256(b"ladderboard.tape seed %d" % seed).digest()
        self._key = secrets.token_bytes(_KEY_BYTES) if key is None else key
        self._seeded = seed is not None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{'seed' if self._seeded else 'key'} hidden>)"

    @property
    def seeded(self) -> bool:
        """Whether the tape was made from a seed, and so is only for simulation."""
        return self._seeded

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that distinguish tapes. Stored with secret state, never published."""
        kind = type(self).__name__.encode()
        return hmac.digest(self._key, b"ladderboard.tape fingerprint " + kind, "sha256")[:8].hex()

    def draw(
        self, laws: tuple[Law, ...], *, ladder: int, question: int, context: bytes = b""
    ) -> Draws:
        """Draw one number for each law; the law's index in the tuple is its slot."""
        try:
            address = Stream.address(ladder, question, context)
        except struct.error:
            raise invalid_address() from None
        return tuple(law.sample(Stream(self._key, address, slot)) for slot, law in enumerate(laws))

    def draw_many(self, laws: tuple[Law, ...], *, ladder: int, first: int, count: int) -> DrawsMany:
        """Draw for ``count`` questions from ``first`` on: one array for each law."""
        rows = [
            self.draw(laws, ladder=ladder, question=question)
            for question in range(first, first + count)
        ]
        return tuple(
            np.array([row[slot] for row in rows], dtype=law.dtype) for slot, law in enumerate(laws)
        )


def read_seed(seed: int) -> int:
    """Return a valid seed. Messages never show it: it may be a key passed by mistake."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < _SEED_LIMIT:
        raise InvalidSetting(
            "seed must be a whole number of at least 0 and below 2^256; a key goes to key=."
        )
    return seed


def invalid_address() -> InvalidSetting:
    """Return the error for an address outside the tape."""
    return InvalidSetting("ladder and question must be whole numbers from 0 to 2^64 - 1.")
