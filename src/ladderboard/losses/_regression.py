"""Losses for numbers in a declared range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    raise_for_rows,
    read_numbers,
    refuse_labels_outside,
)
from ladderboard.losses._base import CostLoss, Loss, require_one_per_example

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Widths whose square is still a normal double.
_NARROWEST, _WIDEST = 1e-100, 1e100
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class RangedLoss(CostLoss):
    """A loss of numbers in a declared ``range``, in which the owner's labels must lie.

    A prediction outside the range is clipped to it, which never makes it worse, so the loss is
    bounded.
    """

    range: tuple[float, float] = None  # type: ignore[assignment,misc]  # checked below, with a helpful message

    def __post_init__(self) -> None:
        if self.range is None:
            return
        _settings.set_frozen(self, range=_settings.interval("range", self.range))
        if not _NARROWEST <= self.width <= _WIDEST:
            raise InvalidSetting(
                f"range must be between {_NARROWEST:g} and {_WIDEST:g} wide; got {self.range!r}."
            )

    def check_settings(self) -> None:
        """Raise without a range; only ``exact`` needs none."""
        if self.range is None:
            raise InvalidSetting(
                f"{self.name} needs a range, the declared interval of the labels; "
                f'try lb.loss("{self.name}", range=(0, 100)).'
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
    def clipping(self) -> str:
        """What the range means for a prediction, for people."""
        low, high = self.range
        return f"predictions outside {low:,.15g} to {high:,.15g} count as the nearer end"

    @property
    def predicted(self) -> str:
        """What a prediction is, for people."""
        return "a number"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of numbers."""
        low, high = self.range
        rule = f"{self.predicted}; outside {low:,.15g} to {high:,.15g} it counts as the nearer end."
        return ExpectedColumns(
            "number", "one", rules=(f"prediction: {rule}",), example=(f"{(low + high) / 2:g}",)
        )

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """Numbers in the declared range."""
        read = read_numbers(super().read_labels(labels), "labels", InvalidLabels)
        refuse_labels_outside(self.range, read)
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

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return the mean cost; no number is clipped."""
        read = read_numbers(Loss.read_labels(self, labels), "labels", InvalidLabels)
        guesses = read_numbers(predictions, "predictions", InvalidPredictions)
        return float(np.mean(self.cost(read, require_one_per_example(guesses, len(read)))))


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
            "a prediction costs its squared distance from the label, as a part of the whole range; "
            f"{self.clipping}"
        )

    @property
    def unit(self) -> float:
        """A loss of 1 is the square of the whole range."""
        return self.width**2

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """(y - p)² / width²."""
        return np.minimum(((labels - predictions) / self.width) ** 2, 1)

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """(y - p)²."""
        return np.square(labels - predictions)


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
        return (
            "a prediction costs its distance from the label, as a part of the whole range; "
            f"{self.clipping}"
        )

    @property
    def unit(self) -> float:
        """A loss of 1 is the whole range."""
        return self.width

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """|y - p|."""
        return np.abs(labels - predictions)


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
            f"the whole range; {self.clipping}"
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

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """max(q (y - p), (q - 1) (y - p))."""
        above = labels - predictions
        return np.maximum(self.quantile * above, (self.quantile - 1) * above)


@dataclass(frozen=True)
class SquaredLog(RangedLoss):
    """The squared difference of log(1 + value), divided by its largest within the range.

    Its mean is the mean squared logarithmic error; the root of that is RMSLE.

    Examples
    --------
    >>> SquaredLog(range=(0, 99))([0, 99], [0, 9]).round(4).tolist()
    [0.0, 0.25]
    """

    name: ClassVar[str] = "squared_log"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range is not None and self.range[0] < 0:
            raise InvalidSetting(f"The range of {self.name} must not begin below 0.")

    @property
    def explanation(self) -> str:
        """The square of the distance of logarithms."""
        return f"a prediction costs the squared difference of log(1 + value); {self.clipping}"

    @property
    def unit(self) -> float:
        """A loss of 1 is the square of the whole range of logarithms."""
        return (math.log1p(self.range[1]) - math.log1p(self.range[0])) ** 2

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """(log(1 + y) - log(1 + p))²."""
        for values, name, error_class in (
            (labels, "labels", InvalidLabels),
            (predictions, "predictions", InvalidPredictions),
        ):
            raise_for_rows(values <= -1, f"{name} must be above -1 for {self.name}", error_class)
        return np.square(np.log1p(labels) - np.log1p(predictions))


@dataclass(frozen=True)
class CappedError(CostLoss):
    """An error relative to the label or prediction, which needs a cap instead of a range.

    ``cap`` is the largest error that counts: 1 is 100%.
    """

    cap: float = 1.0

    def __post_init__(self) -> None:
        _settings.set_frozen(self, cap=_settings.number("cap", self.cap, above=0, at_most=_WIDEST))

    @property
    def label_kind(self) -> LabelKind:
        """Numbers."""
        return "number"

    @property
    def unit(self) -> float:
        """A loss of 1 is the cap."""
        return self.cap

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of numbers."""
        return ExpectedColumns("number", "one", rules=("prediction: a number.",), example=("1.5",))

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """Numbers."""
        return read_numbers(super().read_labels(labels), "labels", InvalidLabels)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Numbers, one for each example."""
        read = read_numbers(predictions, "predictions", InvalidPredictions)
        return require_one_per_example(read, shape[0])

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The median."""
        return [np.full(len(labels), np.median(labels))]


@dataclass(frozen=True)
class Percentage(CappedError):
    """The absolute error as a part of the label's size, at most ``cap``. Its mean is MAPE.

    Examples
    --------
    >>> Percentage()([100, 10], [90, 40]).tolist()
    [0.1, 1.0]
    """

    name: ClassVar[str] = "percentage"

    @property
    def explanation(self) -> str:
        """The relative error."""
        return f"a prediction costs its error as a part of the label, at most {self.cap:g}"

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """|y - p| / |y|, the divisor being at least the precision of a double."""
        return np.abs(labels - predictions) / np.maximum(np.abs(labels), _EPSILON)


@dataclass(frozen=True)
class SquaredPercentage(CappedError):
    """The squared relative error, at most ``cap``; the root of its mean is RMSPE.

    Examples where the label is 0 cost 0, as on Kaggle.

    Examples
    --------
    >>> SquaredPercentage()([100, 10, 0], [90, 40, 5]).round(4).tolist()
    [0.01, 1.0, 0.0]
    """

    name: ClassVar[str] = "squared_percentage"

    @property
    def explanation(self) -> str:
        """The square of the relative error."""
        return f"a prediction costs its squared relative error, at most {self.cap:g}"

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """((y - p) / y)², 0 where y is 0."""
        return np.where(
            labels == 0, 0, np.square((labels - predictions) / np.where(labels == 0, 1, labels))
        )


@dataclass(frozen=True)
class SymmetricPercentage(CappedError):
    """2 |y - p| / (|y| + |p|), which is at most 2; 0 where both are 0. Its mean is sMAPE.

    Examples
    --------
    >>> SymmetricPercentage()([3, 0, 2], [1, 0, 0]).tolist()
    [0.5, 0.0, 1.0]
    """

    name: ClassVar[str] = "symmetric_percentage"

    cap: float = 2.0

    @property
    def explanation(self) -> str:
        """The error as a part of the mean of label and prediction."""
        return "a prediction costs its error as a part of the mean size of label and prediction"

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """2 |y - p| / (|y| + |p|)."""
        size = np.abs(labels) + np.abs(predictions)
        return 2 * np.abs(labels - predictions) / np.where(size == 0, 1, size)
