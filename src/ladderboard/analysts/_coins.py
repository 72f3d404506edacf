"""Coin-flip labels: nothing can be learned but the holdout itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._bits import ones_until, pack, unpack, words_for, wrong_bits
from ladderboard.analysts._world import World
from ladderboard.errors import InvalidPredictions

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Coins", "Easy", "part_of"]


class Easy(NamedTuple):
    """What the analyst knows: the labels of the first ``until`` examples, packed; the rest zero."""

    until: int
    labels: NDArray[np.uint64]


def part_of(easy: float, n: int) -> int:
    """Return how many of n labels are easy; 0.29 of 100 are 29, whatever the product rounds to."""
    part = _settings.number("easy", easy, at_least=0, at_most=1)
    return min(math.floor(part * n + 1e-9), n)


class Coins(World):
    """Binary labels by coin flips, of which the analyst knows the first ``easy`` part.

    A model is a vector of n zeros and ones, or the same packed by ``pack``. Whatever it predicts
    on an example that is not easy, it is wrong half of the time in truth, so its true risk counts
    one half there. (The inputs of the holdout are held fixed: this is the input-conditional risk.)

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Where the labels come from.
    easy
        The part of the labels that the analyst knows, in [0, 1].
    """

    def __init__(self, n: int, rng: np.random.Generator, *, easy: float = 0.0) -> None:
        self.n = _settings.whole("n", n, at_least=1)
        self.easy = part_of(easy, self.n)
        flips = rng.integers(0, 2**64, words_for(self.n), dtype=np.uint64)
        self._labels = flips & ones_until(self.n, self.n)
        self._easy = ones_until(self.easy, self.n)

    @property
    def known(self) -> Easy:
        """The easy labels."""
        return Easy(self.easy, self._labels & self._easy)

    def read(self, model: Any) -> NDArray[np.uint64]:
        """Return the model's predictions, packed."""
        vector = np.asarray(model)
        if vector.dtype == np.uint64 and vector.shape == self._labels.shape:
            if vector[-1] & ~ones_until(self.n, self.n)[-1]:
                raise InvalidPredictions(f"Packed predictions have bits past the {self.n}th.")
            return vector
        if vector.shape != (self.n,):
            raise InvalidPredictions(
                f"A model here is one prediction, 0 or 1, for each of the {self.n} examples; "
                f"got shape {vector.shape}."
            )
        if vector.dtype != np.bool_ and not ((vector == 0) | (vector == 1)).all():
            raise InvalidPredictions("A model here predicts 0 or 1 for every example.")
        return pack(vector != 0)

    def risk(self, model: Any) -> float:
        """Return the part of the labels that the model misses."""
        return wrong_bits(self.read(model) ^ self._labels) / self.n

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model misses the label."""
        return unpack(self.read(model) ^ self._labels, self.n).astype(np.float64)

    def true_risk(self, model: Any) -> float:
        """Return the part of the easy labels that the model misses, and half of the others."""
        wrong = wrong_bits((self.read(model) ^ self._labels) & self._easy) if self.easy else 0
        return (wrong + (self.n - self.easy) / 2) / self.n
