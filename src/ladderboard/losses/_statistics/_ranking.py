"""Statistics of scores that rank examples: areas under the ROC and precision-recall curves."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    label_kind_of,
    list_classes,
    numbered_columns,
    raise_for_rows,
    read_numbers,
    read_values,
)
from ladderboard.losses._base import Promise
from ladderboard.losses._classification import (
    class_index,
    distinct_values,
    infer_classes,
    read_classes,
)
from ladderboard.losses._statistics._base import (
    Estimate,
    Statistic,
    constant_columns,
    mean_estimate,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

AVERAGES = ("macro", "weighted", "micro")
FORMS = ("ovr", "ovo")
_PLAUSIBLE_AREA = 0.8
_PLANNED_EXAMPLES = 10_000


class _Tied:
    """Examples sorted by score, equal scores in one group."""

    def __init__(self, positive: NDArray[np.bool_], scores: NDArray[Any]) -> None:
        self.order = np.argsort(scores)
        ranked = scores[self.order]
        is_first = np.concatenate(([True], ranked[1:] != ranked[:-1]))
        starts = np.flatnonzero(is_first)
        ends = np.append(starts[1:], len(ranked))
        cumulative = np.concatenate(([0], np.cumsum(positive[self.order])))
        self.sizes = ends - starts
        self.positives = cumulative[ends] - cumulative[starts]
        self.positives_below = cumulative[starts]
        self.below = starts

    def by_example(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return a value for each group as one for each example, in the examples' order."""
        spread = np.empty(len(self.order))
        spread[self.order] = np.repeat(values, self.sizes)
        return spread


def roc_auc(positive: NDArray[np.bool_], scores: NDArray[Any]) -> Estimate:
    """Return the area under the ROC curve; 1/2 for ties, 1/2 if a class is empty.

    The value is a ratio of whole numbers. The influence of a positive is how far the share of
    negatives below it exceeds the area, divided by the share of positives; for a negative the same
    with positives above it.

    >>> roc_auc(np.array([False, True, True]), np.array([0.2, 0.2, 0.9])).value
    0.75
    """
    n, positives = len(positive), int(np.count_nonzero(positive))
    negatives = n - positives
    if not positives or not negatives:
        return Estimate(0.5, np.zeros(n))
    tied = _Tied(positive, scores)
    negatives_in = tied.sizes - tied.positives
    # Twice the number of negatives below, ties counted once.
    negatives_below = 2 * (tied.below - tied.positives_below) + negatives_in
    wins = int((tied.positives * negatives_below).sum())
    value = wins / (2 * positives * negatives)
    positives_above = 2 * (positives - tied.positives_below) - tied.positives
    of_positive = tied.by_example((negatives_below / (2 * negatives) - value) * (n / positives))
    of_negative = tied.by_example((positives_above / (2 * positives) - value) * (n / negatives))
    return Estimate(value, np.where(positive, of_positive, of_negative))


def average_precision(positive: NDArray[np.bool_], scores: NDArray[Any]) -> Estimate:
    """Return the mean over positives of the precision at their score; 0 without positives.

    >>> round(average_precision(np.array([False, True, True]), np.array([0.5, 0.2, 0.9])).value, 9)
    0.833333333
    """
    n, positives = len(positive), int(np.count_nonzero(positive))
    if not positives:
        return Estimate(0.0, np.zeros(n))
    tied = _Tied(positive, scores)
    at_least = n - tied.below
    precision = (positives - tied.positives_below) / at_least
    value = float((tied.positives * precision).sum() / positives)
    # An example raises or lowers the precision at every score up to its own.
    density = np.cumsum(tied.positives / at_least)
    loss = np.cumsum(tied.positives * precision / at_least)
    direct = positive * (tied.by_example(precision) - value)
    indirect = positive * tied.by_example(density) - tied.by_example(loss)
    return Estimate(value, (direct + indirect) * (n / positives))


@dataclass(frozen=True)
class ScoreStatistic(Statistic):
    """A statistic of scores: of the second of two classes, of each class, or of several labels.

    With two classes a prediction is a score of the second, the positive one; any number, higher is
    likelier. With more it is a row of scores, one for each class. With several labels in an
    example, which are 0 or 1, it is a row of scores, one for each label.
    """

    infers_classes: ClassVar[bool] = True
    wanted: ClassVar[str] = "scores or probabilities, not classes"

    classes: tuple[Any, ...] | None = None
    average: str = "macro"

    def __post_init__(self) -> None:
        _settings.choice("average", self.average, AVERAGES)
        _settings.set_frozen(self, classes=read_classes(self.classes, optional=True))

    @property
    def explanation(self) -> str:
        """From an order."""
        return "the order of all predictions"

    @property
    def positive_class(self) -> Any:
        """The second of two declared classes."""
        return self.classes[1] if self.classes is not None and len(self.classes) == 2 else None

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of the declared classes; labels without them are 0 and 1."""
        return "number" if self.classes is None else label_kind_of(self.classes)

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of scores, or one for each class or label."""
        if width is not None:
            return numbered_columns("number", width, "label", f"{width} columns of scores.")
        if self.classes is None or len(self.classes) == 2:
            positive = 1 if self.classes is None else self.classes[1]
            rule = f"prediction: a score of {positive}, higher is likelier."
            return ExpectedColumns("number", "one", pair=True, rules=(rule,), example=("0.7",))
        rules = (
            "p_ and the class, one column for each: a score, higher is likelier.",
            f"The classes are {list_classes(self.classes)}.",
        )
        return ExpectedColumns(
            "number", "classes", self.classes, len(self.classes), rules=rules, example=("0.1",)
        )

    def for_labels(self, labels: Any) -> ScoreStatistic:
        """Return the statistic with the sorted labels as classes."""
        read = read_values(labels, "labels", InvalidLabels)
        if self.classes is not None or read.ndim != 1:
            return self
        present = distinct_values(read)
        return self if len(present) < 2 else replace(self, classes=tuple(present))

    def with_inferred_classes(
        self, labels: NDArray[Any], also: NDArray[Any] | None = None
    ) -> ScoreStatistic:
        """Return the statistic with the classes of the labels, if it has none."""
        inferred = infer_classes(labels) if self.classes is None else None
        return self if inferred is None else replace(self, classes=inferred)

    def read_labels(self, labels: Any) -> NDArray[np.int64]:
        """Return indices of classes, or a matrix of 0 and 1; every class must occur."""
        read = read_values(labels, "labels", InvalidLabels)
        if read.ndim == 2 and read.size:
            numbers = read_numbers(read, "labels", InvalidLabels)
            raise_for_rows(
                ~np.isin(numbers, (0, 1)), "several labels must be 0 or 1", InvalidLabels
            )
            return numbers.astype(np.int64)
        plain = super().read_labels(read)
        if self.classes is None and len(distinct := distinct_values(plain)) > 2:
            raise InvalidLabels(
                f"{self.name} needs classes as labels, such as 0 and 1; these labels have "
                f"{len(distinct):,} different values. For numbers take mae or rmse, or declare "
                "classes."
            )
        return class_index(plain, self.classes or (0, 1))

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Scores: a vector, or a column for each class or label."""
        read = read_numbers(predictions, "predictions", InvalidPredictions)
        binary = len(shape) == 1 and (self.classes is None or len(self.classes) == 2)
        wanted = (shape[0],) if binary else (*shape[:1], len(self.classes or ()))
        wanted = shape if len(shape) == 2 else wanted
        if binary and read.shape == (shape[0], 2):  # both classes, as scikit-learn's predict_proba
            return read[:, 1]
        if read.shape != wanted:
            raise InvalidPredictions(
                f"predictions must be scores in the shape {wanted}; got {read.shape}."
            )
        return read

    def advice(self, predictions: NDArray[Any]) -> str:
        """Classes in place of scores order nothing within a class."""
        if predictions.ndim != 1 or not len(predictions):
            return ""
        ends = predictions.min(), predictions.max()
        if ends[0] == ends[1] or not np.isin(predictions, ends).all():
            return ""
        return (
            "These predictions have only two values, but this metric orders the rows by them: send "
            "probabilities, as from predict_proba, not classes."
        )

    def perfect_predictions(self, labels: NDArray[Any]) -> NDArray[Any]:
        """A score of 1 for what is true."""
        read = self.read_labels(labels)
        if read.ndim == 2 or self.classes is None or len(self.classes) == 2:
            return read.astype(np.float64)
        return np.eye(len(self.classes))[read]

    def plausible_predictions(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Normal scores of which those of positives are higher, for an AUC of 0.8."""
        classes = len(self.classes or (0, 1))
        if labels.ndim == 1 and classes == 2:
            return _plausible_scores(labels == 1)
        positive = labels == 1 if labels.ndim == 2 else np.eye(classes, dtype=bool)[labels]
        return np.column_stack([_plausible_scores(column) for column in positive.T])

    def class_sizes(self, labels: NDArray[Any]) -> dict[Any, int]:
        """The examples of each class; of several labels those for which each is true."""
        if labels.ndim == 2:
            return {f"label {at + 1}": int(size) for at, size in enumerate(labels.sum(axis=0))}
        classes = self.classes or (0, 1)
        sizes = np.bincount(labels, minlength=len(classes)).tolist()
        return dict(zip(classes, sizes, strict=True))

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The same score for all."""
        several = len(self.classes or ()) > 2
        shape = (len(labels), len(self.classes or ())) if several else labels.shape
        return [np.zeros(shape)]


def _plausible_scores(
    positive: NDArray[np.bool_], area: float = _PLAUSIBLE_AREA
) -> NDArray[np.float64]:
    """Return the quantiles of a normal distribution for each class, mixed by a fixed seed.

    ``area`` is the AUC of the two distributions.

    >>> positive = np.arange(1000) < 120
    >>> round(roc_auc(positive, _plausible_scores(positive)).value, 2)
    0.8
    """
    normal, scores = NormalDist(), np.empty(len(positive))
    distance = math.sqrt(2) * normal.inv_cdf(area)
    for mask, shift in ((positive, distance), (~positive, 0.0)):
        n = int(np.count_nonzero(mask))
        quantiles = [normal.inv_cdf((at + 0.5) / n) + shift for at in range(n)]
        scores[mask] = np.random.default_rng(n).permutation(quantiles)
    return scores


@dataclass(frozen=True)
class CurveStatistic(ScoreStatistic):
    """The area under a curve, of two classes; of more classes or labels a mean of areas."""

    @abstractmethod
    def curve(self, positive: NDArray[np.bool_], scores: NDArray[Any]) -> Estimate:
        """Return the statistic of two classes."""

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """The statistic of two classes, or a mean over labels or classes."""
        if predictions.ndim == 1:
            return self.curve(labels == 1, predictions)
        indicators = labels == 1 if labels.ndim == 2 else np.eye(predictions.shape[1], dtype=bool)[
            labels
        ]  # fmt: skip
        if self.average == "micro":
            value, influence = self.curve(indicators.ravel(), predictions.ravel())
            return Estimate(value, influence.reshape(predictions.shape).mean(axis=1))
        columns = [
            self.curve(column, scores)
            for column, scores in zip(indicators.T, predictions.T, strict=True)
        ]
        if self.average == "macro":
            return mean_estimate(columns)
        return _weighted_mean(columns, indicators.astype(np.float64))


def _weighted_mean(columns: list[Estimate], weights: NDArray[np.float64]) -> Estimate:
    """Return the mean over columns, weighted by how often each label is true."""
    totals = weights.sum(axis=0)
    shares = totals / totals.sum()
    value, influence = mean_estimate(columns, shares)
    values = np.array([column.value for column in columns]) - value
    return Estimate(value, influence + weights @ values * (len(weights) / totals.sum()))


@dataclass(frozen=True)
class RocAuc(CurveStatistic):
    """The area under the ROC curve: how often a positive scores higher than a negative.

    Parameters
    ----------
    classes
        The classes of the labels; the second of two is the positive one.
    average
        Over several classes or labels: their mean (``"macro"``), weighted by their frequency
        (``"weighted"``), or all together (``"micro"``).
    multi_class
        More than two classes are compared each with the rest (``"ovr"``) or in pairs (``"ovo"``).

    Examples
    --------
    >>> auc = RocAuc()
    >>> labels = auc.read_labels([0, 0, 1, 1])
    >>> auc.estimate(labels, np.array([0.1, 0.4, 0.35, 0.8])).value
    0.75
    """

    name: ClassVar[str] = "roc_auc"

    multi_class: str = "ovr"

    def __post_init__(self) -> None:
        super().__post_init__()
        _settings.choice("multi_class", self.multi_class, FORMS)

    def curve(self, positive: NDArray[np.bool_], scores: NDArray[Any]) -> Estimate:
        """The area under the ROC curve."""
        return roc_auc(positive, scores)

    def read_labels(self, labels: Any) -> NDArray[np.int64]:
        """Return indices of classes, or a matrix of 0 and 1; every class must occur."""
        read = super().read_labels(labels)
        if len(constant_columns(read)):
            raise InvalidLabels(f"{self.name} needs labels of both classes; there is only one.")
        return read

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """The area, or its mean over labels, classes or pairs of classes."""
        if self.multi_class == "ovr" or predictions.ndim == 1 or labels.ndim == 2:
            return super().estimate(labels, predictions)
        n, pairs, sizes = len(labels), [], []
        for first, second in combinations(range(predictions.shape[1]), 2):
            rows = (labels == first) | (labels == second)
            inside = np.flatnonzero(rows)
            both = mean_estimate(
                [
                    self.curve(labels[inside] == positive, predictions[inside, positive])
                    for positive in (first, second)
                ]
            )
            influence = np.zeros(n)
            influence[inside] = both.influence * (n / max(len(inside), 1))
            pairs.append(Estimate(both.value, influence))
            sizes.append(rows)
        if self.average == "weighted":
            return _weighted_mean(pairs, np.column_stack(sizes).astype(np.float64))
        return mean_estimate(pairs)

    def planned_error(self, value: float, positives: float) -> float | None:
        """That of normal scores with this area.

        >>> round(RocAuc().planned_error(0.8, positives=0.1) / math.sqrt(5_000), 4)
        0.0102
        """
        area = 1 - (1 - value) / self.unit
        if not 0 < area < 1:
            return None
        count = min(max(round(positives * _PLANNED_EXAMPLES), 1), _PLANNED_EXAMPLES - 1)
        positive = np.arange(_PLANNED_EXAMPLES) < count
        error = self.curve(positive, _plausible_scores(positive, area)).standard_error
        return error * math.sqrt(_PLANNED_EXAMPLES)

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """12 (n+ n-)² / (n (n² - 1)) examples, if the number of positives is published."""
        if self.average != "macro" or self.multi_class != "ovr":
            return None
        n = len(labels)
        several = self.classes is not None and len(self.classes) > 2
        if labels.ndim == 2:
            counts = np.count_nonzero(labels == 1, axis=0)
        else:
            counts = np.bincount(labels, minlength=len(self.classes or (0, 1)))
        chosen = counts if several or labels.ndim == 2 else counts[1:]
        min_pairs = min(int(count) * (n - int(count)) for count in chosen)
        nats = len(chosen) * math.log(n + 1) + math.log(len(chosen))
        effective_n = 12 * min_pairs**2 / (n * (n**2 - 1)) * self.unit**2 if n > 1 else 0.0
        return Promise(effective_n, nats, {"counts": counts.tolist()})


@dataclass(frozen=True)
class Gini(RocAuc):
    """Twice the area under the ROC curve, minus 1."""

    name: ClassVar[str] = "gini"

    @property
    def unit(self) -> float:
        """From -1 to 1."""
        return 2.0

    def curve(self, positive: NDArray[np.bool_], scores: NDArray[Any]) -> Estimate:
        """2 AUC - 1."""
        value, influence = roc_auc(positive, scores)
        return Estimate(2 * value - 1, 2 * influence)

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """As for AUC: half the scale, half the spread."""
        promised = super().promise(labels)
        return promised and replace(promised, effective_n=promised.effective_n / self.unit**2)


@dataclass(frozen=True)
class AveragePrecision(CurveStatistic):
    """Average precision, the area under the precision-recall curve as a sum of steps.

    Nothing is promised: one label can change it by nearly 1.
    """

    name: ClassVar[str] = "average_precision"

    def curve(self, positive: NDArray[np.bool_], scores: NDArray[Any]) -> Estimate:
        """The mean over positives of the precision at their score."""
        return average_precision(positive, scores)


@dataclass(frozen=True)
class LabelRanking(ScoreStatistic):
    """Label ranking average precision: how well the true labels of each example are ranked.

    ``average="weighted"`` weighs an example by the number of its true labels (lwlrap), ``"macro"``
    weighs all alike.
    """

    name: ClassVar[str] = "label_ranking_average_precision"
    infers_classes: ClassVar[bool] = False

    average: str = "weighted"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """A column of scores for each label."""
        return numbered_columns("number", width, "label", f"{width} columns of scores.")

    def read_labels(self, labels: Any) -> NDArray[np.int64]:
        """A matrix of 0 and 1."""
        read = super().read_labels(labels)
        if read.ndim != 2:
            raise InvalidLabels("labels must be a matrix of 0 and 1, a column for each label.")
        return read

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """The mean over true labels, or over examples, of the precision at their rank."""
        at_least = predictions[:, None, :] >= predictions[:, :, None]  # row, label, other label
        ranks = at_least.sum(axis=2)
        hits = (at_least & (labels == 1)[:, None, :]).sum(axis=2)
        counts = (labels == 1).sum(axis=1)
        sums = np.where(labels == 1, hits / ranks, 0).sum(axis=1)
        if self.average == "weighted":
            value = float(sums.sum() / max(counts.sum(), 1))
            return Estimate(value, (sums - value * counts) / max(counts.mean(), 1e-300))
        # As scikit-learn: 1 for an example with no true label or with all of them.
        trivial = (counts == 0) | (counts == labels.shape[1])
        scores = np.where(trivial, 1.0, sums / np.maximum(counts, 1))
        return Estimate(float(scores.mean()), scores - scores.mean())
