"""Targets: numbers in a declared range, for the losses of regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import read_numbers, refuse_rows
from ladderboard.losses._loss import Loss, one_for_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RangedLoss"]

# Widths whose square is a double too.
_NARROWEST, _WIDEST = 1e-100, 1e100


@dataclass(frozen=True)
class RangedLoss(Loss):
    """A loss of numbers. ``range`` is declared: the owner's labels must lie in it.

    A prediction outside the range is moved to its nearer end, which never makes it worse, so the
    loss is bounded.
    """

    range: tuple[float, float] = None  # type: ignore[assignment,misc]  # said in words below

    def __post_init__(self) -> None:
        if self.range is None:
            raise InvalidSetting(
                f"{self.name} needs a range, the declared interval of the labels; "
                f'try loss("{self.name}", range=(0, 100)).'
            )
        _settings.settle(self, range=_settings.interval("range", self.range))
        if not _NARROWEST <= self.width <= _WIDEST:
            raise InvalidSetting(
                f"range must be between {_NARROWEST:g} and {_WIDEST:g} wide; got {self.range!r}."
            )

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.range[1] - self.range[0]

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """Numbers in the declared range."""
        read = read_numbers(super().read_labels(labels), "labels", InvalidLabels)
        low, high = self.range
        outside = (read < low) | (read > high)
        refuse_rows(outside, f"labels must lie in [{low:g}, {high:g}]", InvalidLabels)
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Numbers, moved into the declared range."""
        read = one_for_each(read_numbers(predictions, "predictions", InvalidPredictions), shape[0])
        return np.clip(read, *self.range)

    def constants(self, labels: NDArray[Any]) -> list[Any]:
        """The mean and the median."""
        return [np.full(len(labels), each) for each in (labels.mean(), np.median(labels))]
