"""Losses of the overlap of a set or a mask with the label's, example by example.

With t items in both, n in the label and m in the prediction, the score is a ratio such as
2 t / (n + m); ``empty`` is the score where both are empty.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidPredictions
from ladderboard.losses._arrays import ExpectedColumns, LabelKind, numbered_columns
from ladderboard.losses._base import Loss, require_shape
from ladderboard.losses._cells import mask_overlap, mask_size
from ladderboard.losses._statistics import cell_columns, read_indicators, read_structured

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMS = ("sets", "masks", "columns")
_IOU_THRESHOLDS = np.arange(50, 100, 5) / 100


@dataclass(frozen=True)
class OverlapLoss(Loss):
    """1 - a score of the overlap of two sets, masks, or rows of 0 and 1.

    Parameters
    ----------
    of
        What a cell holds: ``"sets"``, ``"masks"``, or several ``"columns"`` of 0 and 1.
    separator
        Of the items of a set; blanks if not given.
    empty
        The score where label and prediction are both empty.
    """

    of: str = "sets"
    separator: str | None = None
    empty: float = 0.0

    def __post_init__(self) -> None:
        _settings.choice("of", self.of, FORMS)
        _settings.set_frozen(
            self, empty=_settings.number("empty", self.empty, at_least=0, at_most=1)
        )

    @property
    def explanation(self) -> str:
        """1 - score."""
        return f"a prediction costs 1 minus its {self.name} with the label"

    @property
    def label_kind(self) -> LabelKind:
        """Text, or 0 and 1."""
        return "number" if self.of == "columns" else "text"

    @property
    def takes_empty(self) -> bool:
        """True for sets and masks."""
        return self.of != "columns"

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of sets or masks, or a column for each label."""
        if self.of == "columns":
            return numbered_columns("number", width, "label", f"{width} columns of 0 and 1.")
        return cell_columns(self.of, self.separator)

    def for_labels(self, labels: Any) -> Loss:
        """Return the loss for a matrix of 0 and 1, if labels are one."""
        matrix = isinstance(labels, np.ndarray) and labels.ndim == 2
        return type(self)(of="columns", empty=self.empty) if matrix else self

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Sets, masks, or a matrix of 0 and 1."""
        if self.of == "columns":
            return read_indicators(labels, "labels", InvalidLabels)
        return read_structured(labels, "labels", InvalidLabels, self.of, separator=self.separator)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """The same for predictions."""
        if self.of != "columns":
            return read_structured(
                predictions,
                "predictions",
                InvalidPredictions,
                self.of,
                separator=self.separator,
                n=shape[0],
            )
        return require_shape(read_indicators(predictions, "predictions", InvalidPredictions), shape)

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Nothing at all."""
        if self.of == "columns":
            return [np.zeros(labels.shape, np.int64)]
        return [np.full(len(labels), "", dtype=object)]

    @abstractmethod
    def ratio(
        self, both: NDArray[Any], label: NDArray[Any], prediction: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return numerator and denominator of the score."""

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 - score."""
        both, label, prediction = self._sizes(labels, predictions)
        numerator, denominator = self.ratio(both, label, prediction)
        score = np.where(denominator == 0, 0.0, numerator / np.where(denominator, denominator, 1))
        return np.where((label == 0) & (prediction == 0), 1 - self.empty, 1 - score)

    def _sizes(self, labels: NDArray[Any], predictions: NDArray[Any]) -> list[NDArray[Any]]:
        """Return, for each example, how many items are in both, in the label, in the prediction."""
        if self.of == "columns":
            return [(labels & predictions).sum(axis=1), labels.sum(axis=1), predictions.sum(axis=1)]
        size: Any = len if self.of == "sets" else mask_size
        overlap: Any = _shared if self.of == "sets" else mask_overlap
        pairs = list(zip(labels.tolist(), predictions.tolist(), strict=True))
        counts = [(overlap(*pair), size(pair[0]), size(pair[1])) for pair in pairs]
        return list(np.array(counts, dtype=np.float64).reshape(-1, 3).T)


def _shared(left: frozenset[str], right: frozenset[str]) -> int:
    return len(left & right)


@dataclass(frozen=True)
class Dice(OverlapLoss):
    """1 - 2 t / (n + m): the F1 score of each example, Dice's coefficient of each mask.

    Examples
    --------
    >>> Dice()(["a b", ""], ["b c", ""]).tolist()
    [0.5, 1.0]
    >>> Dice(of="masks", empty=1)(["1 4"], ["3 4"]).tolist()
    [0.5]
    """

    name: ClassVar[str] = "dice"

    def ratio(self, both: Any, label: Any, prediction: Any) -> tuple[Any, Any]:
        """2 t / (n + m)."""
        return 2 * both, label + prediction


@dataclass(frozen=True)
class IntersectionOverUnion(OverlapLoss):
    """1 - t / (n + m - t): the Jaccard index of each example."""

    name: ClassVar[str] = "iou"

    def ratio(self, both: Any, label: Any, prediction: Any) -> tuple[Any, Any]:
        """Return t / (n + m - t)."""
        return both, label + prediction - both


@dataclass(frozen=True)
class RowPrecision(OverlapLoss):
    """1 - t / m: the share of each prediction's items that are right."""

    name: ClassVar[str] = "row_precision"

    def ratio(self, both: Any, label: Any, prediction: Any) -> tuple[Any, Any]:
        """Return t / m."""
        return both, prediction


@dataclass(frozen=True)
class RowRecall(OverlapLoss):
    """1 - t / n: the share of each label's items that are predicted."""

    name: ClassVar[str] = "row_recall"

    def ratio(self, both: Any, label: Any, prediction: Any) -> tuple[Any, Any]:
        """Return t / n."""
        return both, label


@dataclass(frozen=True)
class IouThresholds(OverlapLoss):
    """1 - the share of the thresholds 0.5, 0.55 ... 0.95 that a mask's overlap (IoU) exceeds."""

    name: ClassVar[str] = "iou_thresholds"

    of: str = "masks"
    empty: float = 1.0

    def ratio(self, both: Any, label: Any, prediction: Any) -> tuple[Any, Any]:
        """Return thresholds exceeded / all."""
        union = label + prediction - both
        iou = both / np.where(union == 0, 1, union)
        return (iou[:, None] > _IOU_THRESHOLDS).sum(axis=1), np.full(len(iou), 10.0)
