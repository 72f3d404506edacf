"""Coin-flip labels, and a class that is surely or nearly surely wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._bits import ones_until, pack, unpack, wrong_bits
from ladderboard.analysts._coins import Easy
from ladderboard.analysts._world import World
from ladderboard.errors import InvalidPredictions

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RareClass"]

_OTHER = 2


class RareClass(World):
    """Labels 0 and 1 by coin flips, and the label 2 with probability ``rare``.

    A model is a vector of n predictions 0, 1 or 2, or of zeros and ones packed by ``pack``. With
    ``rare=0`` the prediction 2 is no class at all and always wrong: an abstention. No label is
    known beforehand, so the true risk of a model is that of its predictions on fresh labels.

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Where the labels come from.
    rare
        The share of labels 2, in [0, 1].

    Examples
    --------
    >>> world = RareClass(4, np.random.default_rng(1), rare=0.1)
    >>> round(world.true_risk([0, 1, 2, 2]), 3)
    0.725
    """

    def __init__(self, n: int, rng: np.random.Generator, *, rare: float = 0.0) -> None:
        self.n = _settings.whole("n", n, at_least=1)
        self.rare = _settings.number("rare", rare, at_least=0, at_most=1)
        self._ones = pack(rng.integers(0, 2, self.n))
        self._twos = pack(rng.random(self.n) < self.rare)

    @property
    def known(self) -> Easy:
        """No label."""
        return Easy(0, np.zeros_like(self._ones))

    def read(self, model: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where the model predicts 1, and where 2, both packed."""
        if isinstance(model, tuple):
            return model
        vector = np.asarray(model)
        if vector.dtype == np.uint64 and vector.shape == self._ones.shape:
            if vector[-1] & ~ones_until(self.n, self.n)[-1]:
                raise InvalidPredictions(f"Packed predictions have bits past the {self.n}th.")
            return vector, np.zeros_like(vector)
        if vector.shape != (self.n,):
            raise InvalidPredictions(
                f"A model here is one prediction, 0, 1 or 2, for each of the {self.n} examples; "
                f"got shape {vector.shape}."
            )
        ones, twos = vector == 1, vector == _OTHER
        if not (ones | twos | (vector == 0)).all():
            raise InvalidPredictions("A model here predicts 0, 1 or 2 for every example.")
        return pack(ones), pack(twos)

    def _wrong(self, model: Any) -> NDArray[np.uint64]:
        ones, twos = self.read(model)
        return (twos ^ self._twos) | (~twos & (ones ^ self._ones))

    def risk(self, model: Any) -> float:
        """Return the part of the labels that the model misses."""
        return wrong_bits(self._wrong(model)) / self.n

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model misses the label."""
        return unpack(self._wrong(model), self.n).astype(np.float64)

    def true_risk(self, model: Any) -> float:
        """Return the risk on fresh labels."""
        abstained = wrong_bits(self.read(model)[1]) / self.n
        return abstained * (1 - self.rare) + (1 - abstained) * (1 + self.rare) / 2
