"""Squared loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard.losses._targets import RangedLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Squared"]


@dataclass(frozen=True)
class Squared(RangedLoss):
    """The squared difference, divided by the square of the declared range's length.

    Examples
    --------
    >>> Squared(range=(0, 10))([1, 10], [2, 5]).round(4).tolist()
    [0.01, 0.25]
    """

    name: ClassVar[str] = "squared"

    @property
    def unit(self) -> float:
        """A loss of 1 is the square of the whole range."""
        return self.width**2

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """(y - p)² / width²."""
        return np.minimum(((labels - predictions) / self.width) ** 2, 1)
