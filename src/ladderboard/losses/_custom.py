"""Losses computed elsewhere: by a user's function, or from an evaluator's scores."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import BrokenLoss, InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.losses._arrays import ExpectedColumns, raise_for_rows, read_numbers, read_values
from ladderboard.losses._base import Evaluation, Loss, require_one_per_example

if TYPE_CHECKING:
    from numpy.typing import NDArray

LossFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Custom(Loss):
    """A loss from ``function(labels, predictions)``, which returns a number in [0, 1] for each.

    Both are arrays with a row for each example, without None, NaN or infinities.

    Examples
    --------
    >>> def within_one(labels, predictions):
    ...     return abs(labels - predictions) > 1
    >>> Custom(within_one)([1, 5], [2, 9]).tolist()
    [0.0, 1.0]
    """

    name: ClassVar[str] = "custom"
    takes_any_columns: ClassVar[bool] = True

    function: LossFunction
    path: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.function, str):
            _settings.set_frozen(self, function=load_function(self.function), path=self.function)
        if not callable(self.function):
            raise InvalidSetting(
                f"A custom loss needs a function; got {_settings.safe_repr(self.function)}."
            )
        if self.path is None:
            _settings.set_frozen(self, path=_import_path(self.function))

    @property
    def params(self) -> dict[str, Any]:
        """The function by its name, ``module:function``."""
        if self.path is None:
            raise InvalidSetting(
                f"The loss {_settings.safe_repr(self.function)} cannot be imported by name; "
                "put it at the top of a module, or name it as module:function."
            )
        return {"function": self.path}

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
        """Return the function's result; it gets a copy of the labels, which are used again."""
        try:
            return np.asarray(self.function(labels.copy(), predictions))
        except Exception as error:  # its message may show labels, so it is not repeated
            raise BrokenLoss(
                f"The loss {self.path or self.name} failed with {type(error).__name__}."
            ) from error

    def check_on_labels(self, labels: Any) -> None:
        """Raise if the function returns no number in [0, 1] for each label as a prediction."""
        read = self.read_labels(labels)
        try:
            self.score(read, read)
        except BrokenLoss as error:
            if error.__cause__ is None:  # it may fail: predictions may have another form
                raise


@dataclass(frozen=True)
class WholeSample(Custom):
    """A metric of all examples from ``function(labels, predictions)``, which returns a number.

    Nothing is known about it, so a board computes it at the close only. The number lies between 1
    and 1 - ``scale`` if higher is better, and between 0 and ``scale`` if lower is; a number
    outside counts as the nearer end.

    Examples
    --------
    >>> def worst(labels, predictions):
    ...     return abs(labels - predictions).max()
    >>> read = WholeSample(worst, direction="lower", scale=10.0)
    >>> read.evaluate(np.array([1, 5]), np.array([2, 9])).risk
    0.4
    """

    name: ClassVar[str] = "whole_sample"
    is_mean: ClassVar[bool] = False
    at_close_only: ClassVar[bool] = True

    direction: str = "higher"
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _settings.choice("direction", self.direction, ("higher", "lower"))
        _settings.set_frozen(self, scale=_settings.number("scale", self.scale, above=0))

    @property
    def unit(self) -> float:
        """What a loss of 1 is worth in the metric's own unit."""
        return self.scale

    @property
    def params(self) -> dict[str, Any]:
        """The function by its name, the better direction and the scale."""
        return {**super().params, "direction": self.direction, "scale": self.scale}

    def promise(self, labels: NDArray[Any]) -> None:
        """Nothing is proved about it."""
        return

    def evaluate(self, labels: NDArray[Any], predictions: Any) -> Evaluation:
        """Return the risk, which is not a mean, for every example."""
        read = self.read_predictions(predictions, labels.shape)
        value = float(self.per_example(labels, read))
        if not math.isfinite(value):
            raise BrokenLoss(f"The metric {self.path or self.name} must return a finite number.")
        risk = (1 - value if self.direction == "higher" else value) / self.scale
        risk = min(max(risk, 0.0), 1.0)
        return Evaluation(np.full(len(labels), risk), risk)

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return the risk in the metric's own unit."""
        risk = self.evaluate(self.read_labels(labels), predictions).risk or 0.0
        return risk * self.scale


def load_function(path: str) -> LossFunction:
    """Import a function by ``module:function``."""
    module, _, name = path.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError, ValueError) as error:
        advice = "; give module:function."
        if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
            advice = f". If {error.name}.py is in this folder, set PYTHONPATH=. for every command."
        raise InvalidSetting(f"The loss {path!r} could not be imported ({error}){advice}") from None
    if not callable(target):
        raise InvalidSetting(f"The loss {path!r} is not a function.")
    return target


def _import_path(function: LossFunction) -> str | None:
    """Return the ``module:function`` that imports exactly this function, or None."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    if not module or not name:
        return None
    path = f"{module}:{name}"
    try:
        return path if load_function(path) is function else None
    except InvalidSetting:
        return None


@dataclass(frozen=True)
class Shortfall(Loss):
    """One minus a score in [0, 1] that an evaluator gave to each example; 1 is best.

    Labels are not used: the evaluator has used them. Only for trusted evaluators, because scores
    that are made up would be all 1.

    Examples
    --------
    >>> Shortfall()(["any", "label"], [1, 0.25]).tolist()
    [0.0, 0.75]
    """

    name: ClassVar[str] = "shortfall"
    uses_labels: ClassVar[bool] = False

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of scores, by that name."""
        return ExpectedColumns(
            "number",
            "one",
            strict=True,
            column="score",
            rules=("score: from 0 to 1 (best).",),
            example=("0.5",),
        )

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return numbers in [0, 1]; unlike probabilities, scores may not miss it by rounding."""
        read = require_one_per_example(
            read_numbers(predictions, "scores", InvalidPredictions), shape[0]
        )
        raise_for_rows((read < 0) | (read > 1), "scores must lie in [0, 1]", InvalidPredictions)
        return read

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 - score."""
        return 1 - predictions
