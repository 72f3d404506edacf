"""Hamming loss: for several labels an example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard.errors import InvalidLabels, InvalidPredictions
from ladderboard.losses._arrays import different, read_values
from ladderboard.losses._loss import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Hamming"]


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
        """In every column."""
        return True

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """A matrix of the same shape."""
        read = read_values(predictions, "predictions", InvalidPredictions)
        if read.shape != shape:
            raise InvalidPredictions(
                f"predictions must be a matrix of the shape {shape}; got {read.shape}."
            )
        return read

    def constants(self, labels: NDArray[Any]) -> list[Any]:
        """The most frequent label of each column."""
        found = [np.unique(column, return_counts=True) for column in labels.T]
        row = [values[counts.argmax()] for values, counts in found]
        return [np.tile(np.array(row, dtype=labels.dtype), (len(labels), 1))]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """The mean over the columns of where they differ."""
        return different(labels, predictions).mean(axis=1)
