"""Custom losses: a function of the owner's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import read_values
from ladderboard.losses._loss import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Custom", "load_function"]

LossFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Custom(Loss):
    """A loss from ``function(labels, predictions)``, which returns a number in [0, 1] for each.

    Both arrive as arrays with a row for each example, without None, NaN or infinities.

    Examples
    --------
    >>> def within_one(labels, predictions):
    ...     return abs(labels - predictions) > 1
    >>> Custom(within_one)([1, 5], [2, 9]).tolist()
    [0.0, 1.0]
    """

    name: ClassVar[str] = "custom"

    function: LossFunction

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidSetting(f"A custom loss needs a function; got {self.function!r}.")

    @property
    def params(self) -> dict[str, Any]:
        """The function by its name, ``module:function``."""
        module = getattr(self.function, "__module__", "?")
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"function": f"{module}:{name}"}

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Any array with a row for each example."""
        read = read_values(labels, "labels", InvalidLabels)
        if not len(read):
            raise InvalidLabels("labels must not be empty.")
        return read

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Any array with as many rows."""
        read = read_values(predictions, "predictions", InvalidPredictions)
        if len(read) != shape[0]:
            raise InvalidPredictions(
                f"predictions must hold a row for each of the {shape[0]} examples; got {len(read)}."
            )
        return read

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """What the function says; it gets copies, so it cannot change the labels."""
        return np.asarray(self.function(labels.copy(), predictions.copy()))


def load_function(path: str) -> LossFunction:
    """Import a function by ``module:function``."""
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidSetting(
            f"The loss {path!r} could not be imported ({error}); give module:function."
        ) from None
    if not callable(found):
        raise InvalidSetting(f"The loss {path!r} is not a function.")
    return found
