"""Shortfall: what a score that somebody else gave falls short of 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ladderboard.errors import InvalidPredictions
from ladderboard.losses._arrays import read_numbers, refuse_rows
from ladderboard.losses._loss import Loss, one_for_each

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Shortfall"]


@dataclass(frozen=True)
class Shortfall(Loss):
    """One minus a score in [0, 1] that an evaluator gave to each example; 1 is best.

    Labels are not looked at: whoever gave the scores has done so. It is for scores from somebody
    who is trusted, as whoever may choose them may choose 1.

    Examples
    --------
    >>> Shortfall()(["any", "label"], [1, 0.25]).tolist()
    [0.0, 0.75]
    """

    name: ClassVar[str] = "shortfall"
    labelled: ClassVar[bool] = False

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Numbers in [0, 1]; nothing is forgiven, for a score is no rounded probability."""
        read = one_for_each(read_numbers(predictions, "scores", InvalidPredictions), shape[0])
        refuse_rows((read < 0) | (read > 1), "scores must lie in [0, 1]", InvalidPredictions)
        return read

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 - score."""
        return 1 - predictions
