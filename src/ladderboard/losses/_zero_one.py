"""Zero-one loss: right or wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions
from ladderboard.losses._arrays import different, is_read, read_values, refuse_rows
from ladderboard.losses._classes import (
    ANY,
    Classes,
    class_index,
    classes_of,
    known,
    read_classes,
    spelled,
)
from ladderboard.losses._loss import Loss, one_for_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ZeroOne"]

_NAMED = 10


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

    classes: Classes | Literal["any"] | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.classes, str) and self.classes == ANY):
            _settings.settle(self, classes=read_classes(self.classes, optional=True))

    @property
    def allowed(self) -> Classes | None:
        """The values that predictions may have; None if any."""
        return self.classes if isinstance(self.classes, tuple) else None

    @property
    def accepts_any(self) -> bool:
        """Where no classes are declared."""
        return self.allowed is None

    def with_classes_of(self, labels: NDArray[Any], also: NDArray[Any] | None = None) -> ZeroOne:
        """Return the loss with the classes that labels show, if it has none."""
        return self if self.classes is not None else replace(self, classes=classes_of(labels, also))

    def abstention(self, labels: NDArray[Any]) -> float | None:
        """The share of the rarest class; None if there are two classes only."""
        if self.allowed is None or len(self.allowed) == 2:
            return super().abstention(labels)
        return float(
            np.bincount(class_index(labels, self.allowed), minlength=len(self.allowed)).min()
            / len(labels)
        )

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Check that labels are a vector, of the declared classes if there are any."""
        read = super().read_labels(labels)
        if self.allowed is not None:
            class_index(read, self.allowed)  # refuses others
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """One value for each example."""
        read = one_for_each(read_values(predictions, "predictions", InvalidPredictions), shape[0])
        self._refuse_unknown(read)
        return read

    def score(self, labels: NDArray[Any], predictions: Any) -> NDArray[np.float64]:
        """Score predictions; an array of plain numbers is compared as it is, without a copy."""
        if is_read(predictions) and predictions.shape == labels.shape:
            self._refuse_unknown(predictions)
            return different(labels, predictions).astype(np.float64)
        return super().score(labels, predictions)

    def constants(self, labels: NDArray[Any]) -> list[Any]:
        """The most frequent label."""
        values, counts = np.unique(labels, return_counts=True)
        return [np.full(len(labels), values[counts.argmax()])]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 where they differ."""
        return different(labels, predictions)

    def _refuse_unknown(self, predictions: NDArray[Any]) -> None:
        if self.allowed is None or not len(predictions):
            return
        unknown = ~known(predictions, self.allowed)
        if unknown.any():
            among = ", ".join(map(_settings.shown, self.allowed[:_NAMED]))
            more = ", ..." if len(self.allowed) > _NAMED else ""
            there = spelled(predictions[unknown], self.allowed)
            rule = f"predictions must be among the classes ({among}{more}); there is {there}"
            refuse_rows(unknown, rule, InvalidPredictions)
