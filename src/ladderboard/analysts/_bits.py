"""Vectors of zeros and ones, 64 to a word."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["ones_until", "pack", "random_bits", "unpack", "words_for", "wrong_bits"]

_WORD = 64
_ALL = np.uint64(2**64 - 1)
_LITTLE = np.dtype("<u8")


def words_for(n: int) -> int:
    """Return how many words hold n bits."""
    return -(-n // _WORD)


def ones_until(count: int, n: int) -> NDArray[np.uint64]:
    """Return n bits, packed, of which the first ``count`` are one."""
    words = np.zeros(words_for(n), dtype=np.uint64)
    whole, part = divmod(count, _WORD)
    words[:whole] = _ALL
    if part:
        words[whole] = (1 << part) - 1
    return words


def pack(bits: ArrayLike) -> NDArray[np.uint64]:
    """Pack a vector of zeros and ones, the first in the lowest bit of the first word.

    >>> pack([1, 0, 1, 1]).tolist()
    [13]
    """
    read = np.asarray(bits, dtype=np.bool_)
    packed = np.zeros(words_for(len(read)) * 8, dtype=np.uint8)
    packed[: -(-len(read) // 8)] = np.packbits(read, bitorder="little")
    return packed.view(_LITTLE).astype(np.uint64, copy=sys.byteorder == "big")


def unpack(words: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """Undo ``pack``."""
    octets = words.astype(_LITTLE, copy=False).view(np.uint8)
    return np.unpackbits(octets, count=n, bitorder="little").view(np.bool_)


def random_bits(rng: np.random.Generator, n: int) -> NDArray[np.uint64]:
    """Return n fair coin flips, packed."""
    words = rng.integers(0, 2**64, words_for(n), dtype=np.uint64)
    if n % _WORD:
        words[-1] &= np.uint64((1 << n % _WORD) - 1)
    return words


def wrong_bits(words: NDArray[np.uint64]) -> int:
    """Count the ones."""
    counted: Any = np.bitwise_count(words).sum()
    return int(counted)
