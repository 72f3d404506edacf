"""Absolute loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard.losses._targets import RangedLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Absolute"]


@dataclass(frozen=True)
class Absolute(RangedLoss):
    """The absolute difference, divided by the length of the declared range.

    Examples
    --------
    >>> Absolute(range=(0, 10))([1, 10], [2, 5]).tolist()
    [0.1, 0.5]
    """

    name: ClassVar[str] = "absolute"

    @property
    def unit(self) -> float:
        """A loss of 1 is the whole range."""
        return self.width

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """|y - p| / width."""
        return np.minimum(np.abs(labels - predictions) / self.width, 1)
