"""Leaderboard error, the paper's Definition 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ladderboard.errors import InvalidRisk
from ladderboard.mechanisms._vector import read_vector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["leaderboard_error"]


def leaderboard_error(true_risks: ArrayLike, released_values: ArrayLike) -> float:
    """Return the largest gap between the best true risk so far and the value released then.

    Definition 1: ``max_t |min_{i<=t} R_D(f_i) - R_t|``.

    Parameters
    ----------
    true_risks
        R_D(f_1), ..., R_D(f_k): each model's risk on the distribution.
    released_values
        R_1, ..., R_k: ``Release.value`` after each question.

    Examples
    --------
    >>> leaderboard_error([0.5, 0.25, 0.4], [0.5, 0.375, 0.25])
    0.125
    """
    risks = read_vector("true_risks", true_risks)
    released = read_vector("released_values", released_values)
    for name, read in (("true_risks", risks), ("released_values", released)):
        if not len(read) or not np.isfinite(read).all():
            raise InvalidRisk(f"{name} must be finite numbers, at least one.")
    if len(risks) != len(released):
        raise InvalidRisk(
            "true_risks and released_values must be of one length; "
            f"got {len(risks)} and {len(released)}."
        )
    return float(np.abs(np.minimum.accumulate(risks) - released).max())
