"""Probabilities: predictions of the losses that score them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidPredictions
from ladderboard.losses._arrays import read_numbers, refuse_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_probabilities"]

# Printed probabilities are rounded, so a row may miss 1 by this much; it is then made to sum to 1.
_SUM_TOLERANCE = 0.01
# Single precision can leave [0, 1] by this much; it is then clipped.
_EDGE_TOLERANCE = 1e-6


def read_probabilities(predictions: Any, n: int, classes: int) -> NDArray[np.float64]:
    """Return a matrix of probabilities, one row for each example, one column for each class.

    With two classes a vector is taken too: the probability of the second class.
    """
    read = read_numbers(predictions, "predictions", InvalidPredictions)
    vector = classes == 2 and read.shape == (n,)
    if not vector and read.shape != (n, classes):
        shapes = f"({n}, {classes})" + (f" or ({n},)" if classes == 2 else "")
        raise InvalidPredictions(
            f"predictions must be probabilities in the shape {shapes}; got {read.shape}."
        )
    outside = (read < -_EDGE_TOLERANCE) | (read > 1 + _EDGE_TOLERANCE)
    refuse_rows(outside, "probabilities must lie in [0, 1]", InvalidPredictions)
    read = np.clip(read, 0, 1)
    if vector:
        return np.column_stack((1 - read, read))
    total = read.sum(axis=1)
    refuse_rows(
        np.abs(total - 1) > _SUM_TOLERANCE,
        "the probabilities of a row must sum to 1",
        InvalidPredictions,
    )
    return read / total[:, None]
