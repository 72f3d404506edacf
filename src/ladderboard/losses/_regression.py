"""Losses for numbers in a declared range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import raise_for_rows, read_numbers
from ladderboard.losses._base import Loss, require_one_per_example
from ladderboard.losses._columns import ExpectedColumns, LabelKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Widths whose square is still a normal double.
_NARROWEST, _WIDEST = 1e-100, 1e100


@dataclass(frozen=True)
class RangedLoss(Loss):
    """A loss of numbers in a declared ``range``, in which the owner's labels must lie.

    A prediction outside the range is clipped to it, which never makes it worse, so the loss is
    bounded.
    """

    range: tuple[float, float] = None  # type: ignore[assignment,misc]  # checked below, with a helpful message

    def __post_init__(self) -> None:
        if self.range is None:
            raise InvalidSetting(
                f"{self.name} needs a range, the declared interval of the labels; "
                f'try loss("{self.name}", range=(0, 100)).'
            )
        _settings.set_frozen(self, range=_settings.interval("range", self.range))
        if not _NARROWEST <= self.width <= _WIDEST:
            raise InvalidSetting(
                f"range must be between {_NARROWEST:g} and {_WIDEST:g} wide; got {self.range!r}."
            )

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.range[1] - self.range[0]

    @property
    def label_kind(self) -> LabelKind:
        """Numbers."""
        return "number"

    @property
    def predicted(self) -> str:
        """What a prediction is, for people."""
        return "a number"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of numbers."""
        low, high = self.range
        rule = f"{self.predicted}; outside {low:g} to {high:g} it counts as the nearer end."
        return ExpectedColumns(
            "number", "one", rules=(f"prediction: {rule}",), example=(f"{(low + high) / 2:g}",)
        )

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """Numbers in the declared range."""
        read = read_numbers(super().read_labels(labels), "labels", InvalidLabels)
        low, high = self.range
        outside = (read < low) | (read > high)
        raise_for_rows(outside, f"labels must lie in [{low:g}, {high:g}]", InvalidLabels)
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return numbers, clipped to the declared range."""
        read = require_one_per_example(
            read_numbers(predictions, "predictions", InvalidPredictions), shape[0]
        )
        return np.clip(read, *self.range)

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The mean and the median."""
        return [np.full(len(labels), value) for value in (labels.mean(), np.median(labels))]


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
    def explanation(self) -> str:
        """The square of the distance."""
        return (
            "a prediction costs its squared distance from the label, as a part of the whole range"
        )

    @property
    def unit(self) -> float:
        """A loss of 1 is the square of the whole range."""
        return self.width**2

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """(y - p)² / width²."""
        return np.minimum(((labels - predictions) / self.width) ** 2, 1)


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
    def explanation(self) -> str:
        """The distance."""
        return "a prediction costs its distance from the label, as a part of the whole range"

    @property
    def unit(self) -> float:
        """A loss of 1 is the whole range."""
        return self.width

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """|y - p| / width."""
        return np.minimum(np.abs(labels - predictions) / self.width, 1)


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
        _settings.set_frozen(
            self, quantile=_settings.number("quantile", self.quantile, above=0, below=1)
        )

    @property
    def explanation(self) -> str:
        """The pinball loss."""
        return (
            f"a prediction of the quantile {self.quantile} costs its pinball loss, as a part of "
            "the whole range"
        )

    @property
    def predicted(self) -> str:
        """The quantile."""
        return f"the {self.quantile:g} quantile"

    @property
    def unit(self) -> float:
        """A loss of 1 is the whole range on the costlier side."""
        return self.width * max(self.quantile, 1 - self.quantile)

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The quantile."""
        return [np.full(len(labels), np.quantile(labels, self.quantile))]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """max(q (y - p), (q - 1) (y - p)) / unit."""
        above = labels - predictions
        cost = np.maximum(self.quantile * above, (self.quantile - 1) * above)
        return np.minimum(cost / self.unit, 1)
