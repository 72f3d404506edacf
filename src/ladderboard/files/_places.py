"""Places: where a key stands among many, looked up a million at a time.

Keys are sorted once and the top bits of a key lead to its short bucket, so that a lookup is three
gathers from small arrays. A hash join builds its table anew for every file, and takes ten times as
long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Places", "scrambled"]

# 2^64 over the golden ratio: an odd factor, so no two numbers share a product.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def scrambled(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a key for each whole number: another one for each, with well-mixed top bits."""
    return numbers.view(np.uint64) * _FACTOR


class Places:
    """Where each of many 64-bit keys stands. ``clash`` says that two keys are the same."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        bits = len(keys).bit_length() + 1  # a key for every two to four buckets
        self._shift = np.uint64(64 - bits)
        order = np.argsort(keys, kind="stable")
        self._sorted = keys[order]
        self._order = order.astype(np.uint32 if len(keys) < 2**32 else np.int64)
        self.clash = bool((self._sorted[1:] == self._sorted[:-1]).any())
        sizes = np.bincount((self._sorted >> self._shift).astype(np.intp), minlength=2**bits)
        self._starts = np.append(0, np.cumsum(sizes)).astype(self._order.dtype)

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the place of each key, -1 for those that have none."""
        found = np.full(len(keys), -1, dtype=np.int64)
        if not len(self._sorted):
            return found
        buckets = (keys >> self._shift).astype(np.intp)
        at = self._starts[buckets].astype(np.intp)
        last = len(self._sorted) - 1
        hit = self._sorted[np.minimum(at, last)] == keys
        hit &= at <= last
        if hit.all():
            return self._order[at].astype(np.int64)
        found[hit] = self._order[at[hit]]
        # What is not first in its bucket is looked for further on, fewer every time.
        rest = np.flatnonzero(~hit)
        at, ends = at[rest] + 1, self._starts[buckets[rest] + 1].astype(np.intp)
        while len(rest):
            inside = at < ends
            rest, at, ends = rest[inside], at[inside], ends[inside]
            hit = self._sorted[at] == keys[rest]
            found[rest[hit]] = self._order[at[hit]]
            rest, at, ends = rest[~hit], at[~hit] + 1, ends[~hit]
        return found
