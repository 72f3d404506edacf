"""The base class of all losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard.errors import BrokenLoss, InvalidLabels, InvalidPredictions
from ladderboard.losses._arrays import read_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Loss(ABC):
    """A bounded cost of a prediction: a number in [0, 1] for every example.

    Calling it scores predictions against labels. The same work in three parts, for whoever asks
    often: ``read_labels`` once (the owner's part, its refusals speak of labels),
    ``read_predictions`` for each question (the participant's part, its refusals never do), then
    ``per_example`` on what the two returned.

    ``range`` is the interval of what is predicted: declared for numbers, (0, 1) for probabilities
    and for right or wrong. ``unit`` is what a loss of 1 is worth in the metric's own unit.
    ``uses_labels`` says that it looks at labels; where it does not, a holdout has none.
    """

    name: ClassVar[str]
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    uses_labels: ClassVar[bool] = True

    @property
    def unit(self) -> float:
        """What a loss of 1 is worth in the metric's own unit."""
        return 1.0

    @property
    def allowed(self) -> tuple[Any, ...] | None:
        """The only values that a prediction of one value may have; None if there are no such."""
        return None

    @property
    def accepts_any(self) -> bool:
        """Whether a prediction may be a value that no label can be, and is surely wrong then."""
        return False

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that, with the name, are the loss's identity; JSON-able."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    def describe(self) -> dict[str, Any]:
        """Return name and parameters; ``ladderboard.loss`` takes them back."""
        return {"loss": self.name, **self.params}

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Check the owner's labels and bring them into the form ``per_example`` takes."""
        read = read_values(labels, "labels", InvalidLabels)
        if read.ndim != 1 or not len(read):
            raise InvalidLabels(f"labels must be a vector, not empty; got the shape {read.shape}.")
        return read

    def with_inferred_classes(self, labels: NDArray[Any], also: NDArray[Any] | None = None) -> Loss:
        """Return the loss with the classes that labels show, where it has none and could have.

        For the owner, who publishes them: ``labels`` are the holdout's, ``also`` predictions that
        are public, such as a sample submission, whose classes are taken if they include all labels.
        """
        return self

    def abstention_accuracy(self, labels: NDArray[Any]) -> float | None:
        """Return how often the prediction that is wrong most surely is right, for the owner only.

        0 where values are accepted that are no label; None where nothing is surely wrong. See
        docs/explanation/attacks/abstaining.md.
        """
        return 0.0 if self.accepts_any else None

    @abstractmethod
    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Check predictions, knowing of the labels only their shape."""

    @abstractmethod
    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Return the loss of every example, from what the two readers returned."""

    def score(self, labels: NDArray[Any], predictions: Any) -> NDArray[np.float64]:
        """Score predictions against labels that ``read_labels`` returned."""
        read = self.read_predictions(predictions, labels.shape)
        return _check_losses(self, self.per_example(labels, read), len(labels))

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Return good predictions that are the same for every example, for the owner only.

        ``labels`` are those that ``read_labels`` returned. Empty where the loss knows none.
        """
        return []

    def __call__(self, labels: Any, predictions: Any) -> NDArray[np.float64]:
        """Score predictions against labels: one number in [0, 1] for each example."""
        return self.score(self.read_labels(labels), predictions)


def _check_losses(loss: Loss, values: Any, n: int) -> NDArray[np.float64]:
    """Return what a loss gave if it is a loss. No number is printed: it would tell of labels."""
    try:
        read = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        read = np.empty((0, 0))
    if read.shape != (n,):
        raise BrokenLoss(f"The loss {loss.name} must return one number for each of {n} examples.")
    if read.size and not (read.min() >= 0 and read.max() <= 1):  # False for NaN
        raise BrokenLoss(f"The loss {loss.name} must return numbers in [0, 1]; some are not.")
    return read


def require_one_per_example(read: NDArray[Any], n: int) -> NDArray[Any]:
    """Refuse predictions that are not a vector with one value for each example."""
    if read.shape != (n,):
        raise InvalidPredictions(
            f"predictions must hold one value for each of the {n} examples; "
            f"got the shape {read.shape}."
        )
    return read
