"""Top-k loss: right if the label is among k guesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import different, read_numbers, read_values
from ladderboard.losses._classes import Classes, class_index, read_classes
from ladderboard.losses._loss import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TopK"]


@dataclass(frozen=True)
class TopK(Loss):
    """0 where the label is among the first k guesses, 1 where it is not.

    Without classes a prediction is a row of k guesses. With declared classes it is a row of scores,
    one for each class, higher is likelier; a tie with the k-th place counts against it, so that
    equal scores for everything are no way to be right.

    Examples
    --------
    >>> TopK(k=2)(["cat", "dog"], [["dog", "cat"], ["cat", "bird"]]).tolist()
    [0.0, 1.0]
    >>> TopK(k=2, classes=["a", "b", "c"])(["a", "b"], [[0.3, 0.4, 0.1], [0.5, 0.2, 0.3]]).tolist()
    [0.0, 1.0]
    """

    name: ClassVar[str] = "top_k"

    k: int = 5
    classes: Classes | None = None

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            k=_settings.whole("k", self.k, at_least=1),
            classes=read_classes(self.classes, optional=True),
        )
        if self.classes is not None and self.k >= len(self.classes):
            raise InvalidSetting(
                f"k must be below the number of classes, {len(self.classes)}; got {self.k}."
            )

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Labels, as places among the classes if these are declared."""
        read = super().read_labels(labels)
        return read if self.classes is None else class_index(read, self.classes)

    @property
    def accepts_any(self) -> bool:
        """Where no classes are declared."""
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
            what = "guesses" if self.classes is None else "scores, one a class,"
            raise InvalidPredictions(
                f"predictions must be {what} in the shape {wanted}; got {read.shape}."
            )
        return read

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 where no guess is the label, or k others score as high."""
        if self.classes is None:
            labels = np.broadcast_to(labels[:, None], predictions.shape)
            return np.asarray(different(labels, predictions).all(axis=1))
        own = predictions[np.arange(len(labels)), labels]
        others = np.count_nonzero(predictions >= own[:, None], axis=1) - 1
        return others >= self.k
