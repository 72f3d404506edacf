"""Brier loss: squared distance of probabilities from what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.losses._classes import Classes, class_index, read_classes
from ladderboard.losses._loss import Loss
from ladderboard.losses._probabilities import read_probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Brier"]


@dataclass(frozen=True)
class Brier(Loss):
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

    classes: Classes = (0, 1)

    def __post_init__(self) -> None:
        _settings.settle(self, classes=read_classes(self.classes))

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Labels as places among the classes."""
        return class_index(super().read_labels(labels), self.classes)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Probabilities of every class, or of the second of two."""
        return read_probabilities(predictions, shape[0], len(self.classes))

    def constants(self, labels: NDArray[Any]) -> list[Any]:
        """How frequent each class is."""
        return [
            np.tile(
                np.bincount(labels, minlength=len(self.classes)) / len(labels), (len(labels), 1)
            )
        ]

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Half of sum_c (p_c - [c is the label])²."""
        distance = predictions.copy()
        distance[np.arange(len(labels)), labels] -= 1
        return np.minimum(np.einsum("ij,ij->i", distance, distance) / 2, 1)
