"""Losses for classification: of classes, of their probabilities, of sets of labels.

Classes are the values that a label or a prediction may have. They are declared, or taken from the
labels when a guard or a board is made. They are public.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidInput, InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    label_kind_of,
    list_classes,
    numbered_columns,
    probability_columns,
    raise_for_rows,
    read_numbers,
    read_values,
    require_kind,
    require_one_kind,
)
from ladderboard.losses._base import Evaluation, Loss, require_one_per_example

if TYPE_CHECKING:
    from numpy.typing import NDArray

Classes = tuple[Any, ...]
ANY = "any"
"""In place of classes: any value is accepted, and a value that is not a label is wrong."""

_MAX_INFERRED_CLASSES = 1_000  # more distinct labels are answers, not classes
_MIN_LABELS_PER_CLASS = 5  # a value with fewer labels may be one person's answer
_MAX_FRACTIONS = 20  # more different numbers that are not whole may be measurements
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by the bytes of a number
_MAX_COMPACT_CLASSES = 128  # that a signed byte can hold
_MAX_SCANNED_CLASSES = 16  # with more, sorting is faster than a comparison per class
_MAX_SUGGESTIONS = 3

# Printed probabilities are rounded, so a row may miss 1 by this much; it is then made to sum to 1.
_SUM_TOLERANCE = 0.01
# Single precision can leave [0, 1] by this much; it is then clipped.
_EDGE_TOLERANCE = 1e-6

_MAX_CLASSES_SHOWN = 10
_SMALL_RANGE = 65_536
_INT64 = 2.0**63
_PRECISION = float(np.finfo(np.float64).eps)


@overload
def read_classes(classes: Any, *, optional: Literal[True]) -> Classes | None: ...
@overload
def read_classes(classes: Any, *, optional: Literal[False] = False) -> Classes: ...
def read_classes(classes: Any, *, optional: bool = False) -> Classes | None:
    """Return declared classes as a tuple of plain values: at least two, all different."""
    if classes is None and optional:
        return None
    rule = "classes must be a list of at least two different labels"
    if classes is None or isinstance(classes, str | bytes):
        raise InvalidSetting(f"{rule}; got {_settings.safe_repr(classes)}.")
    try:
        read = read_values(classes, "classes", InvalidInput)
    except InvalidInput as error:
        raise InvalidSetting(f"{rule}: {error}") from None
    plain: Classes = tuple(read.tolist())
    if read.ndim != 1 or len(plain) < 2 or len(set(plain)) != len(plain):
        raise InvalidSetting(f"{rule}; got {_settings.safe_repr(classes)}.")
    return plain


def class_index(labels: NDArray[Any], classes: Classes) -> NDArray[np.int64]:
    """Return the index of each label among the classes; raise if a label is not among them."""
    if labels.dtype.kind in "bif" and classes == tuple(range(len(classes))):
        indices = np.clip(labels, -1, len(classes)).astype(np.int64)
        wrong = (indices != labels) | (indices < 0) | (indices == len(classes))
        raise_for_rows(wrong, "labels must be among the declared classes=", InvalidLabels)
        return indices
    positions = {value: index for index, value in enumerate(classes)}
    indices = np.array([positions.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    raise_for_rows(indices < 0, "labels must be among the declared classes=", InvalidLabels)
    return indices


def distinct_values(values: NDArray[Any]) -> list[Any]:
    """Return the different values of a vector, in order; counts small whole numbers."""
    if values.dtype.kind in "bi" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _SMALL_RANGE:
            return (np.flatnonzero(np.bincount(values.astype(np.int64) - low)) + low).tolist()
    return np.unique(values).tolist()


def infer_classes(labels: NDArray[Any], also: NDArray[Any] | None = None) -> Classes | None:
    """Return the classes: the values of ``also``, which is public, if they include every label.

    Otherwise the distinct labels. None if labels may be answers rather than classes: more than
    1,000 distinct ones, one that occurs fewer than five times, or fewer than two.

    >>> infer_classes(np.array([1, 0] * 5)), infer_classes(np.arange(10))
    ((0, 1), None)
    """
    if labels.ndim != 1 or labels.dtype.kind == "O":
        return None
    values, counts = np.unique(labels, return_counts=True)
    distinct = values.tolist()
    if also is not None and also.ndim == 1 and also.dtype.kind != "O":
        public = np.unique(also).tolist()
        if set(distinct) <= set(public) and 2 <= len(public) <= _MAX_INFERRED_CLASSES:
            return tuple(public)
    return (
        tuple(distinct)
        if 2 <= len(distinct) <= _MAX_INFERRED_CLASSES and counts.min() >= _MIN_LABELS_PER_CLASS
        else None
    )


def refuse_measurements(labels: NDArray[Any]) -> None:
    """Raise if labels are numbers such as prices, and not classes.

    They are if not all are whole, and if more than 20 and more than half of them are different.
    """
    if labels.dtype.kind != "f" or (labels == np.floor(labels)).all():
        return
    different = len(np.unique(labels))
    if different > max(_MAX_FRACTIONS, len(labels) / 2):
        raise InvalidLabels(
            f"labels are numbers with {different:,} different values, not classes; name a metric "
            "for numbers, such as --metric rmse --range LOW,HIGH (in Python "
            'metric=lb.metric("rmse", range=(LOW, HIGH))), or declare classes.'
        )


def are_classes(values: NDArray[Any], classes: Classes) -> bool:
    """Return whether every value is a class; of integers 0..m-1 only the range is looked at.

    >>> are_classes(np.array([0, 1, 1]), (0, 1)), are_classes(np.array([0, 2]), (0, 1))
    (True, False)
    """
    if values.dtype.kind == "i" and values.size and classes == tuple(range(len(classes))):
        # As numbers without a sign, negative ones are the largest.
        unsigned = values.view(_UNSIGNED[values.itemsize])
        return bool(np.maximum.reduce(unsigned, axis=None) < len(classes))
    return bool(is_class(values, classes).all())


def is_class(values: NDArray[Any], classes: Classes) -> NDArray[np.bool_]:
    """Return a mask of the values that are classes; compares numbers by value, text exactly."""
    if len(classes) <= _MAX_SCANNED_CLASSES and values.dtype.kind in "bif":
        numbers = [class_ for class_ in classes if not isinstance(class_, str)]
        if all(abs(number) <= 2**53 for number in numbers):
            matches = np.zeros(values.shape, np.bool_)
            for number in numbers:
                matches |= values == number
            return matches
    allowed = set(classes)
    if values.dtype.kind == "O":
        return np.array([value in allowed for value in values.tolist()], dtype=np.bool_)
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([value in allowed for value in distinct.tolist()], dtype=np.bool_)[inverse]


def format_unknown_classes(unknown: NDArray[Any], classes: Classes) -> str:
    """Return the first unknown values as text, each with the closest class as a suggestion.

    >>> format_unknown_classes(np.array(["Cat", "bird"]), ("cat", "dog"))
    "'Cat' (did you mean 'cat'?), 'bird'"
    """
    if unknown.dtype.kind == "O":
        distinct = list(dict.fromkeys(unknown.tolist()))
    else:
        _, first = np.unique(unknown, return_index=True)
        distinct = unknown[np.sort(first)].tolist()
    parts = []
    for value in distinct[:_MAX_SUGGESTIONS]:
        closest = _closest_class(value, classes)
        hint = "" if closest is None else f" (did you mean {_settings.safe_repr(closest)}?)"
        parts.append(f"{_settings.safe_repr(value)}{hint}")
    return ", ".join(parts) + (", ..." if len(distinct) > _MAX_SUGGESTIONS else "")


def refuse_unknown_classes(predictions: NDArray[Any], classes: Classes) -> None:
    """Raise if a prediction is not a class, with the closest spelling."""
    if not are_classes(predictions, classes):
        unknown = ~is_class(predictions, classes)
        among = ", ".join(map(_settings.safe_repr, classes[:_MAX_CLASSES_SHOWN]))
        ellipsis = ", ..." if len(classes) > _MAX_CLASSES_SHOWN else ""
        unknown_values = format_unknown_classes(predictions[unknown], classes)
        rule = f"predictions must be among the classes ({among}{ellipsis}); "
        raise_for_rows(unknown, f"{rule}there is {unknown_values}", InvalidPredictions)


def _closest_class(value: Any, classes: Classes) -> Any:
    """Return the class with nearly the same spelling as a value, or None."""
    by_spelling = {_normalise_spelling(class_): class_ for class_ in classes}
    if _normalise_spelling(value) in by_spelling:
        return by_spelling[_normalise_spelling(value)]
    if not isinstance(value, str):
        return None
    close = difflib.get_close_matches(
        _normalise_spelling(value), list(by_spelling)[:_MAX_INFERRED_CLASSES], n=1, cutoff=0.7
    )
    return by_spelling[close[0]] if close else None


def _normalise_spelling(value: Any) -> str:
    """Return a value as lower-case text without surrounding blanks; 1.0 becomes 1."""
    text = str(value).strip().casefold()[:100]
    return text.removesuffix(".0")


def read_probabilities(predictions: Any, n: int, classes: int) -> NDArray[np.float64]:
    """Return a matrix of probabilities, one row for each example, one column for each class.

    With two classes a vector is accepted too: the probability of the second class.
    """
    read = read_numbers(predictions, "predictions", InvalidPredictions)
    vector = classes == 2 and read.shape == (n,)
    if not vector and read.shape != (n, classes):
        shapes = f"({n}, {classes})" + (f" or ({n},)" if classes == 2 else "")
        raise InvalidPredictions(
            f"predictions must be probabilities in the shape {shapes}; got {read.shape}."
        )
    outside = (read < -_EDGE_TOLERANCE) | (read > 1 + _EDGE_TOLERANCE)
    raise_for_rows(outside, "probabilities must lie in [0, 1]", InvalidPredictions)
    read = np.clip(read, 0, 1)
    if vector:
        return np.column_stack((1 - read, read))
    total = read.sum(axis=1)
    raise_for_rows(
        np.abs(total - 1) > _SUM_TOLERANCE,
        "the probabilities of a row must sum to 1",
        InvalidPredictions,
    )
    return read / total[:, None]


def _is_plain_numbers(values: Any) -> bool:
    """Return whether this is an array of finite plain numbers, which needs no conversion."""
    if type(values) is not np.ndarray or not values.ndim:
        return False
    kind = values.dtype.kind
    if kind == "f" and values.itemsize <= 8:
        return bool(np.isfinite(values).all())
    return kind in "biu"


def _not_equal(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of where two arrays from ``read_values`` differ.

    A number never equals a text. Integers and doubles are compared exactly, even beyond 2^53.
    """
    kinds = left.dtype.kind + right.dtype.kind
    if "O" in kinds or ("u" in kinds and kinds != "uu"):
        pairs = zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)
        return np.array([a != b for a, b in pairs], dtype=np.bool_).reshape(left.shape)
    if "T" in kinds and kinds != "TT":
        return np.ones(left.shape, dtype=np.bool_)
    if kinds in ("if", "fi"):
        integers, doubles = (left, right) if kinds[1] == "f" else (right, left)
        doubles = doubles.astype(np.float64, copy=False)  # 2^63 overflows half precision
        fits = (doubles >= -_INT64) & (doubles < _INT64) & (doubles == np.trunc(doubles))
        return ~fits | (np.where(fits, doubles, 0).astype(np.int64) != integers)
    unequal: NDArray[np.bool_] = left != right
    return unequal


@dataclass(frozen=True)
class ZeroOne(Loss):
    """0 where the prediction is the label, 1 where it is not.

    Parameters
    ----------
    classes
        The values that labels and predictions may have; others are refused. Without them, or with
        ``"any"``, every value is accepted, and one that is not the label is wrong. A guard or a
        board without classes takes them from its labels, one with ``"any"`` does not.

    Examples
    --------
    >>> ZeroOne()(["cat", "dog", "cat"], ["cat", "cat", "bird"]).tolist()
    [0.0, 1.0, 1.0]
    >>> ZeroOne(classes=["cat", "dog"])(["cat", "dog", "cat"], ["Cat", "cat", "dog"])
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidPredictions: predictions must be among the classes ('cat', 'dog');
    there is 'Cat' (did you mean 'cat'?); 1 of 3 rows break this rule (at position 0).
    """

    name: ClassVar[str] = "zero_one"
    binary: ClassVar[bool] = True
    success: ClassVar[str] = "that a file predicts correctly"
    infers_classes: ClassVar[bool] = True

    classes: Classes | Literal["any"] | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.classes, str) and self.classes == ANY):
            _settings.set_frozen(self, classes=read_classes(self.classes, optional=True))

    @property
    def explanation(self) -> str:
        """Right or wrong."""
        return "a prediction costs 0 if it is the label, and 1 if it is not"

    @cached_property
    def allowed(self) -> Classes | None:
        """The values that predictions may have; None if any."""
        return self.classes if isinstance(self.classes, tuple) else None

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of the declared classes."""
        return label_kind_of(self.allowed)

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of classes, or of labels of the declared kind."""
        if self.allowed is not None:
            return self._class_columns
        kind = require_kind(self.name, kind)
        value = "a number" if kind == "number" else "text, written as in the labels"
        return ExpectedColumns(kind, "one", complete=True, rules=(f"prediction: {value}.",))

    @cached_property
    def _class_columns(self) -> ExpectedColumns:
        classes = self.allowed or ()
        return ExpectedColumns(
            require_one_kind(classes),
            "one",
            classes,
            complete=True,
            rules=(f"prediction: one of {list_classes(classes)}.",),
            example=(str(classes[0]),),
        )

    @property
    def accepts_any(self) -> bool:
        """True if no classes are declared."""
        return self.allowed is None

    def with_inferred_classes(
        self, labels: NDArray[Any], also: NDArray[Any] | None = None
    ) -> ZeroOne:
        """Return the loss with classes inferred from the labels, if it has none."""
        if self.classes is not None:
            return self
        refuse_measurements(labels)
        return replace(self, classes=infer_classes(labels, also))

    def abstention_accuracy(self, labels: NDArray[Any]) -> float | None:
        """Return the share of the rarest class; None if there are only two classes."""
        if self.allowed is None or len(self.allowed) == 2:
            return super().abstention_accuracy(labels)
        return float(
            np.bincount(class_index(labels, self.allowed), minlength=len(self.allowed)).min()
            / len(labels)
        )

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Check that labels are a vector, of the declared classes if there are any."""
        read = super().read_labels(labels)
        if self.allowed is not None:
            class_index(read, self.allowed)  # raises for other labels
        return read

    def compact_labels(self, labels: NDArray[Any]) -> NDArray[np.int8] | None:
        """Return labels as bytes if the classes are 0, 1, ... and fit."""
        classes = self.allowed or ()
        # A subclass may do more than compare.
        small = type(self) is ZeroOne and 0 < len(classes) <= _MAX_COMPACT_CLASSES
        return labels.astype(np.int8) if small and classes == tuple(range(len(classes))) else None

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """One value for each example."""
        read = require_one_per_example(
            read_values(predictions, "predictions", InvalidPredictions), shape[0]
        )
        self._refuse_unknown(read)
        return read

    def score(self, labels: NDArray[Any], predictions: Any) -> NDArray[np.float64]:
        """Score predictions; an array of plain numbers is compared as it is, without a copy."""
        mistakes = self._mistakes(labels, predictions)
        if mistakes is None:
            return super().score(labels, predictions)
        return mistakes.astype(np.float64)

    def evaluate(self, labels: NDArray[Any], predictions: Any) -> Evaluation:
        """Return the costs as a mask of mistakes where that is possible, without numbers."""
        # A subclass may score otherwise.
        mistakes = self._mistakes(labels, predictions) if type(self) is ZeroOne else None
        return super().evaluate(labels, predictions) if mistakes is None else Evaluation(mistakes)

    def _mistakes(self, labels: NDArray[Any], predictions: Any) -> NDArray[np.bool_] | None:
        if not _is_plain_numbers(predictions) or predictions.shape != labels.shape:
            return None
        self._refuse_unknown(predictions)
        return _not_equal(labels, predictions)

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The most frequent label."""
        values, counts = np.unique(labels, return_counts=True)
        return [np.full(len(labels), values[counts.argmax()])]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 where they differ."""
        return _not_equal(labels, predictions)

    def _refuse_unknown(self, predictions: NDArray[Any]) -> None:
        if self.allowed is not None:
            refuse_unknown_classes(predictions, self.allowed)


@dataclass(frozen=True)
class TopK(Loss):
    """0 where the label is among the first k guesses, 1 where it is not.

    Without classes a prediction is a row of k guesses. With declared classes it is a row of scores,
    one for each class, higher is likelier. A tie with the k-th place counts as wrong, so equal
    scores for all classes do not win.

    Examples
    --------
    >>> TopK(k=2)(["cat", "dog"], [["dog", "cat"], ["cat", "bird"]]).tolist()
    [0.0, 1.0]
    >>> TopK(k=2, classes=["a", "b", "c"])(["a", "b"], [[0.3, 0.4, 0.1], [0.5, 0.2, 0.3]]).tolist()
    [0.0, 1.0]
    """

    name: ClassVar[str] = "top_k"
    binary: ClassVar[bool] = True

    k: int = 5
    classes: Classes | None = None

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            k=_settings.integer("k", self.k, at_least=1),
            classes=read_classes(self.classes, optional=True),
        )
        if self.classes is not None and self.k >= len(self.classes):
            raise InvalidSetting(
                f"k must be below the number of classes, {len(self.classes)}; got {self.k}."
            )

    @property
    def explanation(self) -> str:
        """Among the first k, or not."""
        return f"a prediction costs 0 if the label is among its first {self.k}, and 1 if it is not"

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of the declared classes."""
        return label_kind_of(self.classes)

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """A column of scores for each class, or k columns of guesses."""
        if self.classes is None:
            sentence = f"{self.k} columns: the guesses."
            return numbered_columns(require_kind(self.name, kind), self.k, "guess", sentence)
        return ExpectedColumns(
            "number",
            "classes",
            self.classes,
            len(self.classes),
            rules=(
                "p_ and the class, one column for each: a score, higher is likelier.",
                f"The classes are {list_classes(self.classes)}.",
            ),
            example=("0.1",) * len(self.classes),
        )

    def perfect_predictions(self, labels: NDArray[Any]) -> NDArray[Any]:
        """The label as each of k guesses, or a score for it alone."""
        if self.classes is None:
            return np.repeat(labels[:, None], self.k, axis=1)
        return np.eye(len(self.classes))[self.read_labels(labels)]

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Return labels, as indices into the classes if these are declared."""
        read = super().read_labels(labels)
        return read if self.classes is None else class_index(read, self.classes)

    @property
    def accepts_any(self) -> bool:
        """True if no classes are declared."""
        return self.classes is None

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """A row of guesses, or of scores, for each example."""
        if self.classes is None:
            read = read_values(predictions, "predictions", InvalidPredictions)
            wanted = (shape[0], self.k)
        else:
            read = read_numbers(predictions, "predictions", InvalidPredictions)
            wanted = (shape[0], len(self.classes))
        if read.shape != wanted:
            rows_of = "guesses" if self.classes is None else "scores, one per class,"
            raise InvalidPredictions(
                f"predictions must be {rows_of} in the shape {wanted}; got {read.shape}."
            )
        return read

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return the error; a matrix with a column for each sorted label holds scores."""
        shape = np.shape(predictions)
        if self.classes is None and len(shape) == 2 and shape[1] != self.k:
            present = tuple(np.unique(self.read_labels(labels)).tolist())
            if len(present) == shape[1]:
                return replace(self, classes=present).exact(labels, predictions)
        return super().exact(labels, predictions)

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 where no guess is the label, or k other classes score at least as high."""
        if self.classes is None:
            labels = np.broadcast_to(labels[:, None], predictions.shape)
            return np.asarray(_not_equal(labels, predictions).all(axis=1))
        label_scores = predictions[np.arange(len(labels)), labels]
        rivals = np.count_nonzero(predictions >= label_scores[:, None], axis=1) - 1
        return rivals >= self.k


@dataclass(frozen=True)
class Hamming(Loss):
    """The fraction of an example's labels that are predicted wrongly.

    Labels and predictions are matrices: a row for each example, a column for each label.

    Examples
    --------
    >>> Hamming()([[1, 0, 0, 1], [0, 0, 0, 0]], [[1, 0, 1, 1], [0, 0, 0, 0]]).tolist()
    [0.25, 0.0]
    """

    name: ClassVar[str] = "hamming"

    @property
    def explanation(self) -> str:
        """The part that differs."""
        return "a prediction costs the part of its values that differ from the label's"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """A column for each label."""
        sentence = f"{width} columns, one for each label."
        return numbered_columns(require_kind(self.name, kind), width, "label", sentence)

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """A matrix with a column for each label."""
        read = read_values(labels, "labels", InvalidLabels)
        if read.ndim != 2 or not read.size:
            raise InvalidLabels(
                "labels must be a matrix, a row for each example and a column for each label "
                "(in a file label_1, label_2 and so on); "
                f"got the shape {read.shape}."
            )
        return read

    @property
    def accepts_any(self) -> bool:
        """Always true: a column may hold any value."""
        return True

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """A matrix of the same shape."""
        read = read_values(predictions, "predictions", InvalidPredictions)
        if read.shape != shape:
            raise InvalidPredictions(
                f"predictions must be a matrix of the shape {shape}; got {read.shape}."
            )
        return read

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The most frequent label of each column."""
        counted_columns = [np.unique(column, return_counts=True) for column in labels.T]
        row = [values[counts.argmax()] for values, counts in counted_columns]
        return [np.tile(np.array(row, dtype=labels.dtype), (len(labels), 1))]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """The mean over the columns of where they differ."""
        return _not_equal(labels, predictions).mean(axis=1)


@dataclass(frozen=True)
class ProbabilityLoss(Loss):
    """A loss of probabilities, one for each declared class, or one for the second of two."""

    classes: Classes = (0, 1)

    def __post_init__(self) -> None:
        _settings.set_frozen(self, classes=read_classes(self.classes))

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of the declared classes."""
        return label_kind_of(self.classes)

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """A column of probabilities for each class."""
        return probability_columns(self.classes)

    def for_labels(self, labels: Any) -> ProbabilityLoss:
        """Return the loss with the sorted labels as classes, if its own do not have them all."""
        present = distinct_values(Loss.read_labels(self, labels))
        known = set(present) <= set(self.classes) or len(present) < 2
        return self if known else replace(self, classes=tuple(present))

    def perfect_predictions(self, labels: NDArray[Any]) -> NDArray[Any]:
        """All probability on the label."""
        return np.eye(len(self.classes))[self.read_labels(labels)]

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Return labels as indices into the classes."""
        return class_index(super().read_labels(labels), self.classes)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Probabilities of every class, or of the second of two."""
        return read_probabilities(predictions, shape[0], len(self.classes))

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Return the frequency of each class as probabilities."""
        return [
            np.tile(
                np.bincount(labels, minlength=len(self.classes)) / len(labels), (len(labels), 1)
            )
        ]


@dataclass(frozen=True)
class Brier(ProbabilityLoss):
    """Half the squared distance between the probabilities and the label's indicator.

    With two classes this is (p - y)², y being 1 for the second class; with more it is Brier's
    sum over the classes, halved, so that it lies in [0, 1] for any number of classes.

    Examples
    --------
    >>> Brier()([0, 1], [0.5, 1.0]).tolist()
    [0.25, 0.0]
    >>> Brier(classes=["a", "b", "c"])(["c"], [[0.5, 0.5, 0.0]]).tolist()
    [0.75]
    """

    name: ClassVar[str] = "brier"

    @property
    def explanation(self) -> str:
        """The squared distance."""
        return "a prediction costs half the squared distance from its probabilities to the label"

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Half of sum_c (p_c - [c is the label])²."""
        distance = predictions.copy()
        distance[np.arange(len(labels)), labels] -= 1
        return np.minimum(np.einsum("ij,ij->i", distance, distance) / 2, 1)


@dataclass(frozen=True)
class Log(ProbabilityLoss):
    """-log p of the label, p raised to at least ``clip``, divided by -log clip.

    The clip makes the loss bounded, and is part of its identity: another clip is another loss.
    Confident right answers are not clipped, so a perfect prediction costs 0.

    Examples
    --------
    >>> Log(clip=0.01)([1, 1, 0], [1.0, 0.1, 1.0]).round(4).tolist()
    [0.0, 0.5, 1.0]
    """

    name: ClassVar[str] = "log"

    clip: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        _settings.set_frozen(self, clip=_settings.number("clip", self.clip, above=0, below=1))

    @property
    def explanation(self) -> str:
        """The logarithm, clipped."""
        return (
            "a prediction costs the logarithm of the label's probability, never more than 1; "
            f"probabilities below {self.clip} count as {self.clip}"
        )

    @property
    def unit(self) -> float:
        """The number of nats that a loss of 1 is worth."""
        return -math.log(self.clip)

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Return log max(p, clip) / log clip."""
        p = np.maximum(predictions[np.arange(len(labels)), labels], self.clip)
        return np.clip(np.log(p) / math.log(self.clip), 0, 1) + 0.0  # no negative zero

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return the mean of -log p; only p = 0 is raised, to the precision of a double."""
        complete = self.for_labels(labels)
        read = complete.read_labels(labels)
        p = complete.read_predictions(predictions, read.shape)[np.arange(len(read)), read]
        return float(-np.log(np.clip(p, _PRECISION, 1 - _PRECISION)).mean())
