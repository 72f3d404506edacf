"""Log loss, clipped: surprise at what happened, up to a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.losses._classes import Classes, class_index, read_classes
from ladderboard.losses._loss import Loss
from ladderboard.losses._probabilities import read_probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Log"]


@dataclass(frozen=True)
class Log(Loss):
    """-log p of the label, p raised to at least ``clip``, divided by -log clip.

    The clip makes the loss bounded, and is part of its identity: another clip is another loss.
    Confident right answers are not clipped, so a perfect prediction costs 0.

    Examples
    --------
    >>> Log(clip=0.01)([1, 1, 0], [1.0, 0.1, 1.0]).round(4).tolist()
    [0.0, 0.5, 1.0]
    """

    name: ClassVar[str] = "log"

    classes: Classes = (0, 1)
    clip: float = 0.01

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            classes=read_classes(self.classes),
            clip=_settings.number("clip", self.clip, above=0, below=1),
        )

    @property
    def unit(self) -> float:
        """A loss of 1 is so many nats."""
        return -math.log(self.clip)

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
        """Return log max(p, clip) / log clip."""
        p = np.maximum(predictions[np.arange(len(labels)), labels], self.clip)
        return np.clip(np.log(p) / math.log(self.clip), 0, 1) + 0.0  # no negative zero
