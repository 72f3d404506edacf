"""Pinball loss: for predictions of a quantile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.losses._targets import RangedLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Pinball"]


@dataclass(frozen=True)
class Pinball(RangedLoss):
    """quantile x (y - p) above the prediction, (1 - quantile) x (p - y) below, scaled to [0, 1].

    Examples
    --------
    >>> Pinball(range=(0, 10), quantile=0.75)([10, 0], [5, 5]).round(4).tolist()
    [0.5, 0.1667]
    """

    name: ClassVar[str] = "pinball"

    quantile: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _settings.settle(
            self, quantile=_settings.number("quantile", self.quantile, above=0, below=1)
        )

    @property
    def unit(self) -> float:
        """A loss of 1 is the whole range on the dearer side."""
        return self.width * max(self.quantile, 1 - self.quantile)

    def constants(self, labels: NDArray[Any]) -> list[Any]:
        """The quantile."""
        return [np.full(len(labels), np.quantile(labels, self.quantile))]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """max(q (y - p), (q - 1) (y - p)) / unit."""
        above = labels - predictions
        cost = np.maximum(self.quantile * above, (self.quantile - 1) * above)
        return np.minimum(cost / self.unit, 1)
