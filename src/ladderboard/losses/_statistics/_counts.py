"""Statistics of true positives, labels and predictions by class: F-scores, precision, recall ...

They share one form. With tp true positives of a class, n labels and m predictions of it,

    value = a tp / (b n + c m + d tp),

for one class, for all classes together (micro), or as a mean over classes (macro, weighted).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    label_kind_of,
    list_classes,
    numbered_columns,
    raise_for_rows,
    read_numbers,
    read_values,
    require_kind,
    require_one_kind,
)
from ladderboard.losses._base import Promise, require_one_per_example, require_shape
from ladderboard.losses._cells import (
    count_points_in_boxes,
    mask_overlap,
    mask_size,
    object_array,
    parse_mask,
    parse_named,
    read_cells,
    refuse_rows,
    split_cell,
)
from ladderboard.losses._classification import (
    class_index,
    infer_classes,
    read_classes,
    refuse_measurements,
    refuse_unknown_classes,
)
from ladderboard.losses._statistics._base import Estimate, Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMS = ("classes", "sets", "masks", "points")
AVERAGES = ("binary", "micro", "macro", "weighted")
_SMALL_RANGE = 65_536


class Incidence(NamedTuple):
    """Which classes occur in which examples: one entry for each occurrence.

    ``rows`` is None if every example has exactly one entry, in order; ``amounts`` None if each
    entry counts as 1.
    """

    codes: NDArray[np.int64]
    rows: NDArray[np.int64] | None = None
    amounts: NDArray[np.float64] | None = None

    def totals(self, classes: int) -> NDArray[np.float64]:
        """Return how often each class occurs."""
        return np.bincount(self.codes, weights=self.amounts, minlength=classes).astype(np.float64)

    def by_example(self, values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        """Return, for each example, the sum of the values of its classes."""
        entries = values[self.codes]
        if self.amounts is not None:
            entries = entries * self.amounts
        if self.rows is None:
            return np.asarray(entries, dtype=np.float64)
        return np.bincount(self.rows, entries, minlength=n).astype(np.float64)


class Occurrences(NamedTuple):
    """Where classes occur in labels, in predictions, and in both."""

    n: int
    classes: int
    labels: Incidence
    predictions: Incidence
    both: Incidence

    def merged(self) -> Occurrences:
        """Return the same with all classes as one."""
        parts = [
            part._replace(codes=np.zeros_like(part.codes))
            for part in (self.labels, self.predictions, self.both)
        ]
        return Occurrences(self.n, 1, *parts)


def count_classes(labels: NDArray[Any], predictions: NDArray[Any]) -> Occurrences:
    """Return the occurrences of classes, one in each label and prediction."""
    classes, label_codes, prediction_codes = encode_classes(labels, predictions)
    same = np.flatnonzero(label_codes == prediction_codes)
    both = Incidence(label_codes[same], same)
    return Occurrences(
        len(labels), classes, Incidence(label_codes), Incidence(prediction_codes), both
    )


def encode_classes(
    labels: NDArray[Any], predictions: NDArray[Any]
) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of classes in either, and both as indices into the sorted classes."""
    together = np.concatenate((labels, predictions))
    if together.dtype.kind in "bi":
        together = together.astype(np.int64)
        low = int(together.min())
        if int(together.max()) - low < _SMALL_RANGE:  # counting beats sorting
            together = together - low
            present = np.bincount(together) > 0
            codes = (np.cumsum(present) - 1)[together]
            return int(present.sum()), codes[: len(labels)], codes[len(labels) :]
    if together.dtype.kind == "O":  # text and numbers mixed
        positions: dict[Any, int] = {}
        codes = np.array([positions.setdefault(value, len(positions)) for value in together])
        return len(positions), codes[: len(labels)], codes[len(labels) :]
    distinct, codes = np.unique(together, return_inverse=True)
    return len(distinct), codes[: len(labels)], codes[len(labels) :]


def count_columns(labels: NDArray[Any], predictions: NDArray[Any]) -> Occurrences:
    """Return the occurrences of labels in matrices of 0 and 1, a column for each."""
    parts = []
    for matrix in (labels == 1, predictions == 1, (labels == 1) & (predictions == 1)):
        rows, codes = np.nonzero(matrix)
        parts.append(Incidence(codes, rows))
    return Occurrences(len(labels), labels.shape[1], *parts)


def count_sets(labels: NDArray[Any], predictions: NDArray[Any]) -> Occurrences:
    """Return the occurrences of items in sets."""
    positions: dict[str, int] = {}
    entries: list[list[tuple[int, int]]] = [[], [], []]
    for row, pair in enumerate(zip(labels.tolist(), predictions.tolist(), strict=True)):
        for part, items in zip(entries, (*pair, pair[0] & pair[1]), strict=True):
            part.extend((positions.setdefault(item, len(positions)), row) for item in items)
    parts = []
    for part in entries:
        array = np.array(part, dtype=np.int64).reshape(-1, 2)
        parts.append(Incidence(array[:, 0], array[:, 1]))
    return Occurrences(len(labels), max(len(positions), 1), *parts)


def count_amounts(
    labels: NDArray[Any], predictions: NDArray[Any], size: Any, overlap: Any
) -> Occurrences:
    """Return the sizes of labels, predictions and what they share, as one class."""
    n = len(labels)
    zeros, rows = np.zeros(n, np.int64), np.arange(n)
    amounts = (
        [size(label) for label in labels],
        [size(prediction) for prediction in predictions],
        [overlap(*pair) for pair in zip(labels, predictions, strict=True)],
    )
    parts = [Incidence(zeros, rows, np.array(amount, np.float64)) for amount in amounts]
    return Occurrences(n, 1, *parts)


class Coefficients(NamedTuple):
    """a, b, c and d of the value a tp / (b n + c m + d tp)."""

    hit: float
    label: float
    prediction: float
    both: float = 0.0


@dataclass(frozen=True)
class ClassStatistic(Statistic):
    """A statistic of predicted classes, and of sets or masks in a cell.

    Parameters
    ----------
    classes
        The values that labels and predictions may have; others are refused.
    """

    infers_classes: ClassVar[bool] = True

    classes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        _settings.set_frozen(self, classes=read_classes(self.classes, optional=True))

    @property
    def explanation(self) -> str:
        """From counts."""
        return "how often each class occurs, is predicted and is predicted rightly"

    @property
    def allowed(self) -> tuple[Any, ...] | None:
        """The declared classes."""
        return self.classes

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of the declared classes."""
        return label_kind_of(self.classes)

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of classes."""
        if self.classes is None:
            return ExpectedColumns(
                require_kind(self.name, kind), "one", rules=("prediction: a class.",)
            )
        return ExpectedColumns(
            require_one_kind(self.classes),
            "one",
            self.classes,
            rules=(f"prediction: one of {list_classes(self.classes)}.",),
            example=(str(self.classes[0]),),
        )

    def with_inferred_classes(
        self, labels: NDArray[Any], also: NDArray[Any] | None = None
    ) -> ClassStatistic:
        """Return the statistic with the classes of the labels, if it has none."""
        if self.classes is not None:
            return self
        refuse_measurements(labels)
        inferred = infer_classes(labels, also)
        return self if inferred is None else replace(self, classes=inferred)

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """A vector of classes."""
        read = super().read_labels(labels)
        if self.classes is not None:
            class_index(read, self.classes)  # raises for other labels
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """A class for each example."""
        read = require_one_per_example(
            read_values(predictions, "predictions", InvalidPredictions), shape[0]
        )
        if self.classes is not None:
            refuse_unknown_classes(read, self.classes)
        return read

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Each of the most frequent classes."""
        if labels.ndim != 1 or labels.dtype.kind == "O":
            return []
        values, counts = np.unique(labels, return_counts=True)
        frequent = values[np.argsort(-counts, kind="stable")[:10]]
        return [np.full(len(labels), value, dtype=labels.dtype) for value in frequent]

    def class_sizes(self, labels: NDArray[Any]) -> dict[Any, int]:
        """The examples of each class that occurs, if labels are classes."""
        if labels.ndim != 1 or labels.dtype.kind == "O":
            return {}
        values, counts = np.unique(labels, return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def class_counts(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return how often each class occurs among the labels, in the order of the classes."""
        if self.classes is None:
            return np.unique(labels, return_counts=True)[1]
        return np.bincount(class_index(labels, self.classes), minlength=len(self.classes))


def published_counts(effective_n: float, counts: NDArray[np.int64]) -> Promise:
    """Return a promise that takes the class counts as known: all but one must be paid for."""
    n = int(counts.sum())
    nats = (len(counts) - 1) * math.log(n + 1)
    return Promise(effective_n, nats, {"counts": counts.tolist()})


@dataclass(frozen=True)
class CountRatio(ClassStatistic):
    """A ratio of counts, by class.

    Parameters
    ----------
    classes
        The values that labels and predictions may have; the second of two is the positive one.
    average
        ``"binary"`` is the positive class's; ``"micro"`` counts all classes together; ``"macro"``
        is the mean over classes that occur in labels or predictions; ``"weighted"`` weighs classes
        by their labels.
    of
        What a cell holds: ``"classes"``, one in each (or several columns of 0 and 1); ``"sets"``,
        items separated by blanks or ``separator``; ``"masks"``, run-length masks of pixels;
        ``"points"``, names with a point each (name x y), to lie in the label's boxes of that name
        (name x y width height).
    separator
        Of the items of a set; blanks if not given.
    """

    average: str = "binary"
    of: str = "classes"
    separator: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _settings.choice("average", self.average, AVERAGES)
        _settings.choice("of", self.of, FORMS)
        if self.of != "classes" and self.classes is not None:
            raise InvalidSetting(f"{self.of} have no declared classes; leave classes= out.")
        if self.average == "binary" and self.classes is not None and len(self.classes) != 2:
            raise InvalidSetting(
                f"{self.name} is for two classes; there are {len(self.classes)}. Choose "
                f"{self.name}_macro, {self.name}_micro or {self.name}_weighted."
            )

    @property
    @abstractmethod
    def coefficients(self) -> Coefficients:
        """The coefficients of the ratio."""

    @property
    def explanation(self) -> str:
        """From counts of the positive class, of all classes, or of what cells hold."""
        if self.of != "classes":
            return f"all {self.of} together: how much of them is predicted, and how much rightly"
        if self.positive_class is None:
            return super().explanation
        positive = _settings.safe_repr(self.positive_class)
        return f"how often class {positive} occurs, is predicted and is predicted rightly"

    @property
    def positive_class(self) -> Any:
        """The second of two declared classes."""
        return self.classes[1] if self.average == "binary" and self.classes else None

    @property
    def label_kind(self) -> LabelKind | None:
        """Text for sets and masks."""
        return super().label_kind if self.of == "classes" else "text"

    @property
    def takes_empty(self) -> bool:
        """True for sets and masks."""
        return self.of != "classes"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of classes, sets or masks; or a column for each label."""
        if self.of != "classes":
            return cell_columns(self.of, self.separator)
        if width is not None:
            return numbered_columns("number", width, "label", f"{width} columns of 0 and 1.")
        return super().columns(kind=kind, width=width)

    def with_inferred_classes(
        self, labels: NDArray[Any], also: NDArray[Any] | None = None
    ) -> ClassStatistic:
        """Return the statistic with the classes of the labels, if cells hold classes."""
        if self.of != "classes" or labels.ndim != 1:
            return self
        return super().with_inferred_classes(labels, also)

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Classes, sets, masks, or a matrix of 0 and 1."""
        if self.of == "classes":
            if np.ndim(labels) == 2:
                return read_indicators(labels, "labels", InvalidLabels)
            return super().read_labels(labels)
        return read_structured(labels, "labels", InvalidLabels, self.of, separator=self.separator)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """The same for predictions."""
        if self.of == "classes":
            if len(shape) == 2:
                read = read_indicators(predictions, "predictions", InvalidPredictions)
                return require_shape(read, shape)
            return super().read_predictions(predictions, shape)
        return read_structured(
            predictions,
            "predictions",
            InvalidPredictions,
            self.of,
            separator=self.separator,
            n=shape[0],
        )

    def occurrences(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Occurrences:
        """Return where classes occur."""
        if self.of == "masks":
            return count_amounts(labels, predictions, mask_size, mask_overlap)
        if self.of == "points":
            return count_amounts(labels, predictions, len, count_points_in_boxes)
        if self.of == "sets":
            return count_sets(labels, predictions)
        if labels.ndim == 2:
            return count_columns(labels, predictions)
        return count_classes(labels, predictions)

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """The ratio of the positive class, of all together, or a mean over classes."""
        occurrences = self.occurrences(labels, predictions)
        if self.average == "binary" and self.of == "classes" and labels.ndim == 1:
            occurrences = self._positive_only(labels, predictions)
        if self.average in {"binary", "micro"}:
            occurrences = occurrences.merged()
        tp, label, prediction = (
            part.totals(occurrences.classes)
            for part in (occurrences.both, occurrences.labels, occurrences.predictions)
        )
        a, b, c, d = self.coefficients
        numerator, denominator = a * tp, b * label + c * prediction + d * tp
        safe = np.where(denominator == 0, 1, denominator)
        ratios = np.where(denominator == 0, 0.0, numerator / safe)
        shares = self.shares(label, prediction)
        value = float(shares @ ratios)
        scale = occurrences.n * shares / safe * (denominator != 0)
        by_label = -scale * ratios * b
        if self.average == "weighted":
            by_label += occurrences.n * (ratios - value) / max(label.sum(), 1)
        influence = (
            occurrences.both.by_example(scale * (a - ratios * d), occurrences.n)
            + occurrences.labels.by_example(by_label, occurrences.n)
            + occurrences.predictions.by_example(-scale * ratios * c, occurrences.n)
        )
        return Estimate(value, influence - influence.mean())

    def shares(self, label: NDArray[Any], prediction: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weight of each class in the mean."""
        if self.average == "weighted":
            return label / max(label.sum(), 1)
        present = label + prediction > 0 if self.average == "macro" else np.ones(len(label), bool)
        return present / max(present.sum(), 1)

    def _positive_only(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Occurrences:
        """Return the occurrences of the positive class: the second declared, or the larger."""
        positive: Any = 1
        if self.classes is not None:
            positive = self.classes[1]
        elif labels.dtype.kind not in "biuf":
            distinct = sorted({*labels.tolist(), *predictions.tolist()}, key=str)
            if len(distinct) > 2:
                raise InvalidSetting(f"{self.name} is for two classes; choose {self.name}_macro.")
            positive = distinct[-1]
        masks = [np.flatnonzero(values == positive) for values in (labels, predictions)]
        both = np.flatnonzero((labels == positive) & (predictions == positive))
        parts = [Incidence(np.zeros(len(rows), np.int64), rows) for rows in (*masks, both)]
        return Occurrences(len(labels), 1, *parts)


def read_indicators(values: Any, name: str, error_class: Any) -> NDArray[np.int64]:
    """Return a matrix of 0 and 1."""
    numbers = read_numbers(values, name, error_class)
    if numbers.ndim != 2 or not numbers.size:
        raise error_class(f"{name} must be a matrix of 0 and 1; got the shape {numbers.shape}.")
    raise_for_rows(~np.isin(numbers, (0, 1)), f"{name} must be 0 or 1", error_class)
    return numbers.astype(np.int64)


def cell_columns(of: str, separator: str | None) -> ExpectedColumns:
    """Return the one column of sets or masks, which may be empty."""
    rule = "prediction: start and length of each run of pixels, from 1; empty or - for none."
    example = "1 3 10 2"
    if of == "points":
        rule = "prediction: name, x and y of each point, with blanks between them; may be empty."
        example = "a 10 20 b 5 7.5"
    if of == "sets":
        between = "blanks" if separator is None else repr(separator)
        rule = f"prediction: items with {between} between them, in any order; may be empty."
        example = (separator or " ").join(("a", "b"))
    return ExpectedColumns("text", "one", rules=(rule,), example=(example,), empty=True)


def read_structured(
    values: Any,
    name: str,
    error_class: Any,
    of: str,
    *,
    separator: str | None = None,
    n: int | None = None,
) -> NDArray[Any]:
    """Return sets or masks from cells."""
    cells = read_cells(values, name, error_class, n)
    if of == "sets":
        return object_array([frozenset(split_cell(cell, separator)) for cell in cells])
    if of == "points":
        numbers = 4 if error_class is InvalidLabels else 2
        points = [parse_named(cell, numbers) for cell in cells]
        rule = f"{name} must be names with {numbers} numbers behind each"
        refuse_rows([point is None for point in points], rule, error_class)
        return object_array(points)
    masks = [parse_mask(cell) for cell in cells]
    rule = f"{name} must be runs of pixels, start and length of each, without overlap"
    refuse_rows([mask is None for mask in masks], rule, error_class)
    return object_array(masks)


@dataclass(frozen=True)
class FBeta(CountRatio):
    """The F-score: (1 + beta²) tp / (beta² labels + predictions). With beta 1 it is F1 and Dice.

    Examples
    --------
    >>> f1 = FBeta()
    >>> f1.estimate(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])).value
    0.5
    """

    name: ClassVar[str] = "f1"

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _settings.set_frozen(self, beta=_settings.number("beta", self.beta, above=0, below=1e6))

    @property
    def coefficients(self) -> Coefficients:
        """(1 + beta²) tp / (beta² n + m)."""
        return Coefficients(1 + self.beta**2, self.beta**2, 1)

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """See docs/explanation/metrics.md."""
        if self.of != "classes" or labels.ndim == 2:
            return None
        n, square = len(labels), self.beta**2
        if self.average == "micro":  # one label an example: accuracy
            return Promise(float(n))
        counts = self.class_counts(labels)
        factor = 4 * square / (1 + square) ** 2
        if self.average == "weighted":
            return published_counts(n * factor, counts)
        present = counts[counts > 0]
        if self.average == "macro":
            return published_counts(factor * len(present) ** 2 / float((1 / present).sum()), counts)
        share = square * float(counts[-1]) / n
        return published_counts(4 * n * share * (1 + share) / (1 + square) ** 2, counts)


@dataclass(frozen=True)
class Jaccard(FBeta):
    """The Jaccard index, intersection over union: tp / (labels + predictions - tp)."""

    name: ClassVar[str] = "jaccard"

    @property
    def coefficients(self) -> Coefficients:
        """Return tp / (n + m - tp)."""
        return Coefficients(1, 1, 1, -1)

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """It is F1 / (2 - F1) of each class, which moves at most twice as far as F1."""
        promised = super().promise(labels)
        return promised and replace(promised, effective_n=promised.effective_n / 4)


@dataclass(frozen=True)
class Precision(CountRatio):
    """The share of right predictions among those of a class. Nothing is promised."""

    name: ClassVar[str] = "precision"

    @property
    def coefficients(self) -> Coefficients:
        """Return tp / m."""
        return Coefficients(1, 0, 1)


@dataclass(frozen=True)
class Recall(CountRatio):
    """The share of a class's labels that are predicted."""

    name: ClassVar[str] = "recall"

    @property
    def coefficients(self) -> Coefficients:
        """Return tp / n."""
        return Coefficients(1, 1, 0)

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """See docs/explanation/metrics.md."""
        if self.of != "classes" or labels.ndim == 2:
            return None
        n = len(labels)
        if self.average in {"micro", "weighted"}:  # accuracy
            return Promise(float(n))
        counts = self.class_counts(labels)
        if self.average == "binary":
            return published_counts(4 * float(counts[-1]) ** 2 / n, counts)
        return _promise_of_recalls(counts, n)


def _promise_of_recalls(counts: NDArray[np.int64], n: int) -> Promise:
    present = counts[counts > 0]
    if len(present) == 2:
        return published_counts(16 * float(np.prod(present / n)) ** 2 * n, counts)
    return published_counts(len(present) ** 2 * float(present.min()) ** 2 / n, counts)


@dataclass(frozen=True)
class BalancedAccuracy(Recall):
    """The mean over classes of the share of their labels that are predicted."""

    name: ClassVar[str] = "balanced_accuracy"

    average: str = "macro"

    def shares(self, label: NDArray[Any], prediction: NDArray[Any]) -> NDArray[np.float64]:
        """Only classes that have labels count."""
        present = label > 0
        return present / max(int(present.sum()), 1)


@dataclass(frozen=True)
class ProbabilisticF1(Statistic):
    """F1 of probabilities: 2 sum(p y) / (sum(p) + sum(y)), y being 0 or 1."""

    name: ClassVar[str] = "probabilistic_f1"

    @property
    def explanation(self) -> str:
        """From sums."""
        return "the probabilities, in place of decisions between 0 and 1"

    @property
    def label_kind(self) -> LabelKind:
        """0 and 1."""
        return "number"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of probabilities."""
        rule = "prediction: the probability of 1."
        return ExpectedColumns("number", "one", rules=(rule,), example=("0.7",))

    def read_labels(self, labels: Any) -> NDArray[np.float64]:
        """0 and 1."""
        return class_index(super().read_labels(labels), (0, 1)).astype(np.float64)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Probabilities."""
        read = require_one_per_example(
            read_numbers(predictions, "predictions", InvalidPredictions), shape[0]
        )
        raise_for_rows((read < 0) | (read > 1), "probabilities must lie in [0, 1]",
                       InvalidPredictions)  # fmt: skip
        return read

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Surely 1."""
        return [np.ones(len(labels))]

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """2 sum(p y) / (sum(p) + sum(y)); 0 without any."""
        total = labels + predictions
        if not total.any():
            return Estimate(0.0, np.zeros(len(labels)))
        value = float(2 * (labels * predictions).sum() / total.sum())
        return Estimate(value, (2 * labels * predictions - value * total) / total.mean())
