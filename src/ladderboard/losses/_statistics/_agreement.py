"""Agreement beyond chance of predicted and true classes: Cohen's kappa and Matthews' coefficient.

They lie in [-1, 1]; 0 is what chance reaches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels
from ladderboard.losses._arrays import read_values
from ladderboard.losses._classification import class_index, distinct_values
from ladderboard.losses._statistics._base import Estimate
from ladderboard.losses._statistics._counts import ClassStatistic, encode_classes, published_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.losses._base import Promise

WEIGHTS = ("none", "linear", "quadratic")


@dataclass(frozen=True)
class Agreement(ClassStatistic):
    """A coefficient in [-1, 1]."""

    @property
    def unit(self) -> float:
        """From -1 to 1."""
        return 2.0


@dataclass(frozen=True)
class Matthews(Agreement):
    """Matthews' correlation coefficient of two or more classes; 0 where it is not defined.

    Examples
    --------
    >>> mcc = Matthews()
    >>> mcc.estimate(np.array([1, 1, 0, 0]), np.array([1, 1, 0, 1])).value.__round__(4)
    0.5774
    """

    name: ClassVar[str] = "mcc"

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """(c n - sum a_k b_k) / sqrt((n² - sum b_k²) (n² - sum a_k²)), c being right ones."""
        n = len(labels)
        classes, truth, guess = encode_classes(labels, predictions)
        a, b = (np.bincount(codes, minlength=classes).astype(float) for codes in (truth, guess))
        right = truth == guess
        label_spread, guess_spread = n * n - a @ a, n * n - b @ b
        if not label_spread or not guess_spread:
            return Estimate(0.0, np.zeros(n))
        root = math.sqrt(label_spread * guess_spread)
        value = float((np.count_nonzero(right) * n - a @ b) / root)
        influence = n * (
            right * (n / root)
            + (value * a / label_spread - b / root)[truth]
            + (value * b / guess_spread - a / root)[guess]
        )
        return Estimate(value, influence - influence.mean())

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """Return n pi (1 - pi) examples for two classes; for more nothing is proved."""
        counts = self.class_counts(labels)
        if len(counts) != 2:
            return None
        n = len(labels)
        return published_counts(self.unit**2 * float(np.prod(counts / n)) * n, counts)


@dataclass(frozen=True)
class Kappa(Agreement):
    """Cohen's kappa: 1 minus the disagreement, as a part of that of independent raters.

    Parameters
    ----------
    classes
        In order: the weights are those of the distance of two classes in this list.
    weights
        ``"none"`` counts disagreements, ``"linear"`` weighs them by distance, ``"quadratic"`` by
        its square.

    Examples
    --------
    >>> kappa = Kappa(classes=(0, 1, 2), weights="quadratic")
    >>> kappa.estimate(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1])).value.__round__(4)
    0.8
    """

    name: ClassVar[str] = "kappa"

    weights: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        _settings.choice("weights", self.weights, WEIGHTS)

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return 1 - kappa, with the classes of labels and predictions if none are declared."""
        if self.classes is not None:
            return super().exact(labels, predictions)
        parts = [read_values(values, "values", InvalidLabels) for values in (labels, predictions)]
        distinct = sorted({value for part in parts for value in distinct_values(part)})
        complete = replace(self, classes=tuple(distinct)) if len(distinct) > 1 else self
        return super(Kappa, complete).exact(labels, predictions)

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """1 - observed disagreement / expected; 1 where there can be none."""
        n = len(labels)
        if self.classes is None:
            classes, truth, guess = encode_classes(labels, predictions)
        else:
            classes = len(self.classes)
            truth, guess = (class_index(values, self.classes) for values in (labels, predictions))
        a, b = (np.bincount(codes, minlength=classes).astype(float) for codes in (truth, guess))
        by_truth, by_guess = self._expected(b), self._expected(a)
        expected = float(a @ by_truth) / n
        costs = self._cost(truth - guess)
        observed = float(costs.sum())
        if not expected:
            return Estimate(1.0 if not observed else 0.0, np.zeros(n))
        ratio = observed / expected
        influence = n / expected * (ratio / n * (by_truth[truth] + by_guess[guess]) - costs)
        return Estimate(1 - ratio, influence - influence.mean())

    def _cost(self, distance: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.weights == "none":
            return (distance != 0).astype(np.float64)
        return (np.abs(distance) if self.weights == "linear" else distance * distance).astype(float)

    def _expected(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each class, the disagreement with ratings of these counts."""
        places = np.arange(len(counts), dtype=np.float64)
        total = counts.sum()
        if self.weights == "none":
            return np.asarray(total - counts)
        if self.weights == "quadratic":
            first, second = counts @ places, counts @ places**2
            return np.asarray(total * places**2 - 2 * places * first + second)
        below, sums = np.cumsum(counts), np.cumsum(counts * places)
        return np.asarray(places * (2 * below - total) - 2 * sums + sums[-1])

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """See docs/explanation/metrics.md."""
        n, counts = len(labels), self.class_counts(labels).astype(np.float64)
        places, largest = np.arange(len(counts)), self._cost(np.array([len(counts) - 1]))[0]
        if self.weights == "quadratic":
            mean = counts @ places / n
            share = float(counts @ (places - mean) ** 2) / n / largest
        else:
            share = (float(self._expected(counts).min()) / n / largest) ** 2
        return published_counts(self.unit**2 * n * share, counts.astype(np.int64))
