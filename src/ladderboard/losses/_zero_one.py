"""Zero-one loss: right or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions
from ladderboard.losses._arrays import different, is_read, read_values
from ladderboard.losses._classes import Classes, class_index, read_classes
from ladderboard.losses._loss import Loss, one_for_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ZeroOne"]


@dataclass(frozen=True)
class ZeroOne(Loss):
    """0 where the prediction is the label, 1 where it is not.

    Classes may be declared, to have the owner's labels checked against them. A prediction that is
    no class is simply wrong.

    Examples
    --------
    >>> ZeroOne()(["cat", "dog", "cat"], ["cat", "cat", "bird"]).tolist()
    [0.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "zero_one"

    classes: Classes | None = None

    def __post_init__(self) -> None:
        _settings.settle(self, classes=read_classes(self.classes, optional=True))

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Check that labels are a vector, of the declared classes if there are any."""
        read = super().read_labels(labels)
        if self.classes is not None:
            class_index(read, self.classes)  # refuses others
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """One value for each example."""
        return one_for_each(read_values(predictions, "predictions", InvalidPredictions), shape[0])

    def score(self, labels: NDArray[Any], predictions: Any) -> NDArray[np.float64]:
        """Score predictions; an array of plain numbers is compared as it is, without a copy."""
        if is_read(predictions) and predictions.shape == labels.shape:
            return different(labels, predictions).astype(np.float64)
        return super().score(labels, predictions)

    def constants(self, labels: NDArray[Any]) -> list[Any]:
        """The most frequent label."""
        values, counts = np.unique(labels, return_counts=True)
        return [np.full(len(labels), values[counts.argmax()])]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 where they differ."""
        return different(labels, predictions)
