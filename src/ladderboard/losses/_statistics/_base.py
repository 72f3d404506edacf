"""The base class of statistics: metrics that are computed from all examples together."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard.errors import InvalidLabels, InvalidPredictions
from ladderboard.losses._base import Evaluation, Loss, Promise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_ONE_WRONG_OF = 5
_COMPLEX_STEP = 1e-30  # a derivative without cancellation: no difference is formed


class Estimate(NamedTuple):
    """The value of a statistic, and how much each example moves it.

    ``influence`` has one number for each example, with mean 0: adding the weight e to an example
    moves the value by about e times its influence. The standard error of the value is
    sqrt(mean(influence²) / n).
    """

    value: float
    influence: NDArray[np.float64]

    @property
    def standard_error(self) -> float:
        """The standard error of the value."""
        n = len(self.influence)
        return math.sqrt(float(np.mean(self.influence**2)) / n) if n else 0.0


@dataclass(frozen=True)
class Statistic(Loss):
    """A metric of all examples together, such as AUC, F1 or a correlation.

    ``estimate`` returns its value and influence values; ``risk`` maps the value to [0, 1], 0 being
    best: (1 - value) / unit where ``higher`` is better, value / unit where it is not. A statistic
    has no loss of an example. ``per_example`` returns linearised costs instead: their mean is the
    risk, and their spread gives its standard error. They may leave [0, 1].
    """

    is_mean: ClassVar[bool] = False
    higher: ClassVar[bool] = True

    @property
    def explanation(self) -> str:
        """What the statistic is computed from."""
        return "all predictions together"

    def for_labels(self, labels: Any) -> Statistic:
        """Return the statistic with the classes of these labels, if it needs classes."""
        return self

    @abstractmethod
    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """Return value and influence, from the results of the two ``read_`` methods."""

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return 1 - value where higher is better, the value where lower is."""
        complete = self.for_labels(labels)
        read = complete.read_labels(labels)
        value = complete.estimate(read, complete.read_predictions(predictions, read.shape)).value
        return 1 - value if self.higher else value

    def risk(self, labels: NDArray[Any], predictions: Any) -> float:
        """Return the risk in [0, 1] of predictions against labels that ``read_labels`` returned."""
        read = self.read_predictions(predictions, labels.shape)
        return self.to_risk(self.estimate(labels, read).value)

    def to_risk(self, value: float) -> float:
        """Return the risk in [0, 1] of a value; what is worse than the worst risk counts as 1."""
        cost = (1 - value if self.higher else value) / self.unit
        return min(max(cost, 0.0), 1.0)

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Return the linearised cost of each example."""
        return self._linearise(self.estimate(labels, predictions))

    def evaluate(self, labels: NDArray[Any], predictions: Any) -> Evaluation:
        """Return the risk and the linearised costs."""
        estimate = self.estimate(labels, self.read_predictions(predictions, labels.shape))
        return Evaluation(self._linearise(estimate), self.to_risk(estimate.value))

    def _linearise(self, estimate: Estimate) -> NDArray[np.float64]:
        sign = -1 if self.higher else 1
        return self.to_risk(estimate.value) + sign * estimate.influence / self.unit

    def score(self, labels: NDArray[Any], predictions: Any) -> NDArray[np.float64]:
        """Return the linearised cost of each example."""
        read = self.read_predictions(predictions, labels.shape)
        return np.asarray(self.per_example(labels, read), dtype=np.float64)

    def plausible_evaluation(self, labels: NDArray[Any]) -> Evaluation:
        """Return risk and linearised costs of ``plausible_predictions``."""
        estimate = self.estimate(labels, self.plausible_predictions(labels))
        return Evaluation(self._linearise(estimate), self.to_risk(estimate.value))

    def plausible_predictions(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return predictions of a plausible good model, as ``read_predictions`` would.

        Four of five are right; the fifth is the label of another example. The same labels give the
        same predictions.
        """
        predictions = labels.copy()
        mixed = np.random.default_rng(0).permutation(len(labels))
        wrong = mixed[::_ONE_WRONG_OF]
        predictions[wrong] = labels[mixed[1::_ONE_WRONG_OF]][np.arange(len(wrong)) - 1]
        return predictions

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """Return what a certificate may use of the statistic; None if nothing is proved."""
        return None


def function_of_means(
    features: NDArray[np.float64], combine: Callable[[NDArray[Any]], Any]
) -> Estimate:
    """Return an analytic function of the means of features, with its influence values.

    ``features`` has a row for each example. ``combine`` must accept complex numbers: its gradient
    is taken with a complex step, which is exact to rounding.

    >>> estimate = function_of_means(np.array([[1.0], [3.0]]), lambda means: means[0] ** 2)
    >>> estimate.value, estimate.influence.tolist()
    (4.0, [-4.0, 4.0])
    """
    means = features.mean(axis=0)
    steps = means.astype(complex) + 1j * _COMPLEX_STEP * np.eye(len(means))
    gradient = np.array([complex(combine(step)).imag for step in steps]) / _COMPLEX_STEP
    influence = (features - means) @ np.nan_to_num(gradient, posinf=0.0, neginf=0.0)
    return Estimate(float(np.real(combine(means))), influence)


def mean_estimate(
    estimates: list[Estimate], weights: NDArray[np.float64] | None = None
) -> Estimate:
    """Return the mean of several statistics of the same examples."""
    shares = np.full(len(estimates), 1 / len(estimates)) if weights is None else weights
    values = np.array([estimate.value for estimate in estimates])
    influence = np.zeros_like(estimates[0].influence)
    for share, estimate in zip(shares, estimates, strict=True):
        influence += share * estimate.influence
    return Estimate(float(values @ shares), influence)


def constant_columns(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices of the columns in which all values are equal; a vector is one column."""
    columns = values if values.ndim == 2 else values[:, None]
    return np.flatnonzero((columns == columns[0]).all(axis=0))


def refuse_constant_labels(labels: NDArray[Any], name: str) -> None:
    """Refuse a column of labels with a single value, for which a correlation has no value."""
    if len(constant_columns(labels)):
        raise InvalidLabels(f"All labels are equal; {name} is not defined then.")


def refuse_constant(predictions: NDArray[Any], name: str) -> None:
    """Refuse a column of predictions with a single value, for which a correlation has no value."""
    constant = constant_columns(predictions)
    if len(constant):
        which = f" in column {constant[0] + 1}" if predictions.ndim == 2 else ""
        raise InvalidPredictions(f"All predictions are equal{which}; {name} is not defined then.")
