"""Statistics of numbers: correlations, R2, and means over columns of root mean squares."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    numbered_columns,
    raise_for_rows,
    read_numbers,
    refuse_labels_outside,
)
from ladderboard.losses._base import require_shape
from ladderboard.losses._statistics._base import (
    Estimate,
    Statistic,
    function_of_means,
    mean_estimate,
    refuse_constant,
    refuse_constant_labels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 1e50  # a prediction whose squared error, and its square, are finite


@dataclass(frozen=True)
class NumberStatistic(Statistic):
    """A statistic of numbers; with several columns the mean over the columns."""

    @property
    def label_kind(self) -> LabelKind:
        """Numbers."""
        return "number"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of numbers, or several."""
        if width is not None:
            return numbered_columns("number", width, "label", f"{width} columns of numbers.")
        return ExpectedColumns("number", "one", rules=("prediction: a number.",), example=("1.5",))

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """A vector or a matrix of numbers."""
        read = read_numbers(labels, "labels", InvalidLabels)
        if read.ndim not in {1, 2} or not read.size:
            raise InvalidLabels(f"labels must be numbers, not empty; got the shape {read.shape}.")
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Numbers in the same shape."""
        return require_shape(read_numbers(predictions, "predictions", InvalidPredictions), shape)

    @abstractmethod
    def of_column(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Estimate:
        """Return the statistic of one column."""

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """The statistic, or the mean over columns."""
        if labels.ndim == 1:
            return self.of_column(labels, predictions)
        columns = zip(labels.T, predictions.T, strict=True)
        return mean_estimate([self.of_column(*pair) for pair in columns])


@dataclass(frozen=True)
class Correlation(NumberStatistic):
    """A correlation in [-1, 1]; predictions that are all equal are refused."""

    @property
    def unit(self) -> float:
        """From -1 to 1."""
        return 2.0

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """Numbers, not all equal."""
        read = super().read_labels(labels)
        refuse_constant_labels(read, self.name)
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Numbers, not all equal."""
        read = super().read_predictions(predictions, shape)
        refuse_constant(read, self.name)
        return read


def centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with mean 0, scaled so that sums and squares neither overflow nor vanish."""
    largest = float(np.abs(values).max())
    scaled = values / largest if largest else values
    shifted = scaled - scaled.mean()
    size = float(np.abs(shifted).max())
    return shifted / size if size else shifted


@dataclass(frozen=True)
class Pearson(Correlation):
    """Pearson's correlation.

    Examples
    --------
    >>> Pearson().estimate(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])).value.__round__(9)
    1.0
    """

    name: ClassVar[str] = "pearson"

    def of_column(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Estimate:
        """Cov(y, p) / (sd(y) sd(p))."""
        y, p = centred(labels), centred(predictions)
        spread = float(np.sqrt((y @ y) * (p @ p)))
        if not spread:
            return Estimate(0.0, np.zeros(len(y)))
        value = min(max(float(y @ p) / spread, -1.0), 1.0)
        y, p = y / np.sqrt(np.mean(y**2)), p / np.sqrt(np.mean(p**2))
        return Estimate(value, y * p - value * (y**2 + p**2) / 2)


def mid_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return ranks from 1, equal values sharing the mean of theirs.

    >>> mid_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[codes])


def _rank_covariance(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the covariance of ranks as shares of n, and its influence values.

    With F and G the shares of values below (ties by half), it is E F(X) G(Y) - 1/4. An example
    enters by itself, and by the ranks of all that are above it.
    """
    n = len(x)
    f, g = (mid_ranks(x) - 0.5) / n, (mid_ranks(y) - 0.5) / n
    value = float(np.mean(f * g)) - 0.25
    influence = f * g + _sum_above(x, g) / n + _sum_above(y, f) / n
    return value, influence - influence.mean()


def _sum_above(x: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each example, the sum of values over examples with a larger x, ties by half."""
    _, codes = np.unique(x, return_inverse=True)
    sums = np.bincount(codes, values)
    return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2)[codes])


@dataclass(frozen=True)
class Spearman(Correlation):
    """Spearman's correlation: Pearson's of ranks."""

    name: ClassVar[str] = "spearman"

    def of_column(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Estimate:
        """Pearson's correlation of the ranks."""
        value = Pearson().of_column(mid_ranks(labels), mid_ranks(predictions)).value
        both, moved = _rank_covariance(labels, predictions)
        label_spread, moved_labels = _rank_covariance(labels, labels)
        guess_spread, moved_guesses = _rank_covariance(predictions, predictions)
        if label_spread <= 0 or guess_spread <= 0:
            return Estimate(value, np.zeros(len(labels)))
        spread_change = moved_labels / label_spread + moved_guesses / guess_spread
        root = np.sqrt(label_spread * guess_spread)
        return Estimate(value, moved / root - both / root / 2 * spread_change)


def count_dominated(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each example, how many others have both a smaller x and a smaller y.

    Ranks of y are split bit by bit. Among examples that agree in all higher bits, each with the bit
    set dominates those before it without: one pass for each bit.

    >>> count_dominated(np.array([0, 1, 2, 2]), np.array([1, 0, 2, 3])).tolist()
    [0, 0, 2, 2]
    """
    n = len(x)
    # In order of x; within equal x larger y first, so that equal x never dominate.
    order = np.lexsort((-y, x))
    # Equal y: later ones first, so that they do not dominate each other.
    ranks = np.empty(n, np.int64)
    ranks[np.lexsort((-np.arange(n), y[order]))] = np.arange(n)
    counts = np.zeros(n, np.int64)
    positions, values = np.arange(n), ranks
    for bit in reversed(range(max(n - 1, 1).bit_length())):
        is_set = (values >> bit) & 1
        prefix = values >> (bit + 1)
        zeros = np.cumsum(1 - is_set)
        first = np.flatnonzero(np.concatenate(([True], prefix[1:] != prefix[:-1])))
        before = np.repeat(zeros[first] - (1 - is_set[first]), np.diff(np.append(first, n)))
        counts[positions] += is_set * (zeros - before)
        split = np.argsort(values >> bit, kind="stable")
        positions, values = positions[split], values[split]
    dominated = np.empty(n, np.int64)
    dominated[order] = counts
    return dominated


@dataclass(frozen=True)
class Kendall(Correlation):
    """Kendall's tau-b: concordant minus discordant pairs, as a part of those without ties."""

    name: ClassVar[str] = "kendall"

    def of_column(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Estimate:
        """The share of pairs in the same order, less that in the opposite order."""
        n = len(labels)
        x, y = (np.unique(values, return_inverse=True)[1] for values in (labels, predictions))
        same = count_dominated(x, y) + count_dominated(-x, -y)
        opposite = count_dominated(x, -y) + count_dominated(-x, y)
        concord = same - opposite
        untied = [n - np.bincount(codes)[codes] for codes in (x, y)]
        totals = [int(part.sum()) for part in untied]
        root = float(np.sqrt(float(totals[0]) * float(totals[1])))
        if not root:
            return Estimate(0.0, np.zeros(n))
        value = int(concord.sum()) / root
        untied_shares = untied[0] / totals[0] + untied[1] / totals[1]
        influence = 2 * n * (concord / root - value / 2 * untied_shares)
        return Estimate(value, influence - influence.mean())


@dataclass(frozen=True)
class R2(NumberStatistic):
    """The coefficient of determination: 1 - mean squared error / variance of the labels.

    It has no lower limit; below ``floor`` it counts as ``floor``.
    """

    name: ClassVar[str] = "r2"

    floor: float = -1.0

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self, floor=_settings.number("floor", self.floor, at_least=-1e6, below=1)
        )

    @property
    def unit(self) -> float:
        """From the floor to 1."""
        return 1 - self.floor

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """Numbers, not all equal."""
        read = super().read_labels(labels)
        refuse_constant_labels(read, self.name)
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Numbers whose squares can be added."""
        read = super().read_predictions(predictions, shape)
        rule = f"predictions must lie within ±{_LARGEST:g} for {self.name}"
        raise_for_rows(np.abs(read) > _LARGEST, rule, InvalidPredictions)
        return read

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The mean."""
        return [np.broadcast_to(labels.mean(axis=0), labels.shape).copy()]

    def errors(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Any:
        """Return the squared errors."""
        return np.square(labels - predictions)

    def of_column(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Estimate:
        """1 - mean of the errors / variance."""
        errors = self.errors(labels, predictions)
        spread = np.square(labels - labels.mean())
        ratio = float(errors.sum() / spread.sum())
        return Estimate(1 - ratio, (ratio * spread - errors) / spread.mean())


@dataclass(frozen=True)
class ExplainedVariance(R2):
    """1 - variance of the errors / variance of the labels."""

    name: ClassVar[str] = "explained_variance"

    def errors(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Any:
        """Return the squared errors around their mean."""
        difference = labels - predictions
        return np.square(difference - difference.mean())


@dataclass(frozen=True)
class MeanColumnRmse(NumberStatistic):
    """The mean over columns of the root mean squared error (MCRMSE).

    Labels of every column lie in ``range``; a prediction outside counts as the nearer end.
    """

    name: ClassVar[str] = "mcrmse"
    higher: ClassVar[bool] = False

    range: tuple[float, float] = None  # type: ignore[assignment,misc]  # only exact() needs none

    def __post_init__(self) -> None:
        if self.range is not None:
            _settings.set_frozen(self, range=_settings.interval("range", self.range))

    def check_settings(self) -> None:
        """Raise without a range."""
        if self.range is None:
            raise InvalidSetting(
                f"{self.name} needs a range, the declared interval of all labels; "
                f'try lb.metric("{self.name}", range=(0, 100)).'
            )

    def transform(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers whose differences count."""
        return values

    @property
    def unit(self) -> float:
        """The whole range."""
        low, high = self.transform(np.array(self.range))
        return float(high - low)

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """Numbers in the declared range."""
        read = super().read_labels(labels)
        if self.range is not None:
            refuse_labels_outside(self.range, read)
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return numbers, clipped to the declared range."""
        read = super().read_predictions(predictions, shape)
        return read if self.range is None else np.clip(read, *self.range)

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The mean of each column."""
        return [np.broadcast_to(labels.mean(axis=0), labels.shape).copy()]

    def of_column(self, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> Estimate:
        """The root of the mean square."""
        squares = np.square(self.transform(labels) - self.transform(predictions))
        return function_of_means(squares[:, None], lambda means: np.sqrt(means[0]))


@dataclass(frozen=True)
class MeanColumnRmsle(MeanColumnRmse):
    """The mean over columns of the root mean squared difference of log(1 + value) (MCRMSLE)."""

    name: ClassVar[str] = "mcrmsle"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range is not None and self.range[0] < 0:
            raise InvalidSetting(f"The range of {self.name} must not begin below 0.")

    def transform(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """log(1 + value)."""
        return np.log1p(values)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return numbers above -1, clipped to the declared range."""
        read = super().read_predictions(predictions, shape)
        raise_for_rows(read <= -1, f"predictions must be above -1 for {self.name}",
                       InvalidPredictions)  # fmt: skip
        return read
