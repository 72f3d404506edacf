"""Models that are nothing but their true risk."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._world import World
from ladderboard.errors import InvalidPredictions

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Draws"]


class Draws(World):
    """A world where a model is its true risk, and errs on each example with that probability.

    The losses of a question are drawn when it is asked, independently of all others, so a model
    asked twice is drawn twice: there are only new models here, never an old one.

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Where the losses come from.

    Examples
    --------
    >>> world = Draws(1000, np.random.default_rng(1))
    >>> world.true_risk(0.25), world.risk(0.25), world.risk(0.25)
    (0.25, 0.246, 0.231)
    """

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = _settings.whole("n", n, at_least=1)
        self._rng = rng

    def true_risk(self, model: Any) -> float:
        """Return the model itself."""
        read = float(model) if isinstance(model, Real) else math.nan
        if isinstance(model, bool) or not 0 <= read <= 1:
            raise InvalidPredictions("A model here is its true risk, one number in [0, 1].")
        return read

    def risk(self, model: Any) -> float:
        """Return the part of the holdout on which the model errs, drawn now."""
        return float(self._rng.binomial(self.n, self.true_risk(model))) / self.n

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model errs, drawn now."""
        return (self._rng.random(self.n) < self.true_risk(model)).astype(np.float64)
