"""Losses of a row of numbers: probabilities of labels, distributions, directions."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    numbered_columns,
    raise_for_rows,
    read_numbers,
)
from ladderboard.losses._base import CostLoss, require_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SUM_TOLERANCE = 0.01
_PRECISION = float(np.finfo(np.float64).eps)
_KL_FLOOR = 1e-15


@dataclass(frozen=True)
class VectorLoss(CostLoss):
    """A loss of rows of numbers, labels and predictions in the same columns."""

    @property
    def label_kind(self) -> LabelKind:
        """Numbers."""
        return "number"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """A column for each label."""
        sentence = f"{width} columns of numbers, in the labels' order."
        return numbered_columns("number", width, "label", sentence)

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """A matrix of numbers."""
        read = read_numbers(labels, "labels", InvalidLabels)
        if read.ndim != 2 or not read.size:
            raise InvalidLabels(
                f"{self.name} needs several columns of labels; got the shape {read.shape}."
            )
        self.check(read, "labels", InvalidLabels)
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """A matrix of the same shape."""
        read = require_shape(read_numbers(predictions, "predictions", InvalidPredictions), shape)
        self.check(read, "predictions", InvalidPredictions)
        return read

    def check(self, values: NDArray[np.float64], name: str, error_class: Any) -> None:
        """Raise for rows that are not valid."""

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The mean of each column."""
        return [np.broadcast_to(labels.mean(axis=0), labels.shape).copy()]


def _check_probabilities(values: NDArray[np.float64], name: str, error_class: Any) -> None:
    outside = (values < 0) | (values > 1)
    raise_for_rows(outside, f"{name} must be probabilities in [0, 1]", error_class)


def _check_distributions(values: NDArray[np.float64], name: str, error_class: Any) -> None:
    _check_probabilities(values, name, error_class)
    wrong = np.abs(values.sum(axis=1) - 1) > _SUM_TOLERANCE
    raise_for_rows(wrong, f"the probabilities of a row of {name} must sum to 1", error_class)


@dataclass(frozen=True)
class ClippedLog(VectorLoss):
    """A loss of logarithms of probabilities, none below ``clip``."""

    clip: float = 0.01

    def __post_init__(self) -> None:
        _settings.set_frozen(self, clip=_settings.number("clip", self.clip, above=0, below=0.5))

    @property
    def unit(self) -> float:
        """The number of nats that a loss of 1 is worth."""
        return -math.log(self.clip)

    @abstractmethod
    def nats(
        self, labels: NDArray[Any], predictions: NDArray[Any], floor: float
    ) -> NDArray[np.float64]:
        """Return the cost in nats, no probability being below ``floor``."""

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """Return the cost, with probabilities as they are."""
        return self.nats(labels, predictions, _PRECISION)

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Return the clipped cost as a part of the unit."""
        return np.clip(self.nats(labels, predictions, self.clip) / self.unit, 0, 1)


@dataclass(frozen=True)
class MultiLabelLog(ClippedLog):
    """The mean over labels of -log p of what is true; labels are columns of 0 and 1.

    Examples
    --------
    >>> MultiLabelLog(clip=0.01)([[1, 0]], [[1.0, 0.9]]).round(4).tolist()
    [0.25]
    """

    name: ClassVar[str] = "multilabel_log"

    @property
    def explanation(self) -> str:
        """The mean logarithm."""
        return (
            "a prediction costs the mean over its columns of the logarithm of what is true; "
            f"probabilities below {self.clip} count as {self.clip}"
        )

    def check(self, values: NDArray[np.float64], name: str, error_class: Any) -> None:
        """Probabilities; labels are 0 or 1."""
        _check_probabilities(values, name, error_class)
        if error_class is InvalidLabels:
            raise_for_rows(~np.isin(values, (0, 1)), "labels must be 0 or 1", InvalidLabels)

    def nats(
        self, labels: NDArray[Any], predictions: NDArray[Any], floor: float
    ) -> NDArray[np.float64]:
        """The mean of -log of the probability of what is true."""
        true = np.where(labels == 1, predictions, 1 - predictions)
        return np.asarray(-np.log(np.maximum(true, floor)).mean(axis=1)) + 0.0


@dataclass(frozen=True)
class KlDivergence(ClippedLog):
    """The Kullback-Leibler divergence from a predicted distribution to the label's.

    Examples
    --------
    >>> KlDivergence()([[0.5, 0.5]], [[0.5, 0.5]]).tolist()
    [0.0]
    """

    name: ClassVar[str] = "kl_divergence"

    @property
    def explanation(self) -> str:
        """The divergence."""
        return (
            "a prediction costs its divergence from the label; "
            f"probabilities below {self.clip} count as {self.clip}"
        )

    def check(self, values: NDArray[np.float64], name: str, error_class: Any) -> None:
        """Distributions."""
        _check_distributions(values, name, error_class)

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """Return the divergence; probabilities are raised to 1e-15, as on Kaggle."""
        return self.nats(labels, predictions, _KL_FLOOR)

    def nats(
        self, labels: NDArray[Any], predictions: NDArray[Any], floor: float
    ) -> NDArray[np.float64]:
        """Return sum_c y_c log(y_c / p_c)."""
        logs = np.log(np.where(labels > 0, labels, 1)) - np.log(np.maximum(predictions, floor))
        return np.asarray((labels * logs).sum(axis=1))


@dataclass(frozen=True)
class Crps(VectorLoss):
    """The continuous ranked probability score of a distribution in steps.

    Column c is P(value <= c); a label is a row of 0, then 1 from its value on. The score is the
    mean over columns of the squared difference.
    """

    name: ClassVar[str] = "crps"

    @property
    def explanation(self) -> str:
        """The squared difference of distribution functions."""
        return "a prediction costs the mean squared difference of its distribution function"

    def check(self, values: NDArray[np.float64], name: str, error_class: Any) -> None:
        """Probabilities that never fall along a row."""
        _check_probabilities(values, name, error_class)
        falls = np.asarray((np.diff(values, axis=1) < -1e-9).any(axis=1))
        raise_for_rows(falls, f"a row of {name} must not fall", error_class)

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """The mean of (F - G)²."""
        return np.asarray(np.square(labels - predictions).mean(axis=1))


@dataclass(frozen=True)
class AngularError(VectorLoss):
    """The angle between two directions, each an azimuth and a zenith in radians."""

    name: ClassVar[str] = "angular_error"

    @property
    def explanation(self) -> str:
        """The angle."""
        return "a prediction costs its angle to the label, as a part of half a turn"

    @property
    def unit(self) -> float:
        """Half a turn."""
        return math.pi

    def check(self, values: NDArray[np.float64], name: str, error_class: Any) -> None:
        """Two columns."""
        if values.shape[1] != 2:
            raise error_class(f"{name} must have two columns, azimuth and zenith.")

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """The arc cosine of the scalar product."""
        (azimuth, zenith), (azimuth_2, zenith_2) = labels.T, predictions.T
        product = np.sin(zenith) * np.sin(zenith_2) * np.cos(azimuth - azimuth_2)
        product += np.cos(zenith) * np.cos(zenith_2)
        return np.arccos(np.clip(product, -1, 1))
