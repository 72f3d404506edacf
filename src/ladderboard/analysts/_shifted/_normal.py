"""The normal law, in the few forms that attacks need."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STANDARD = NormalDist()
_ROOT_2PI = math.sqrt(2 * math.pi)
_LEAST = 1e-300

_erfc: Any = np.vectorize(math.erfc, otypes=[float])


def density(x: float) -> float:
    """Return the standard normal density."""
    return math.exp(-x * x / 2) / _ROOT_2PI


def below(x: float) -> float:
    """Return P(Z < x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def above(chance: float) -> float:
    """Return the z that Z exceeds with this chance."""
    return -_STANDARD.inv_cdf(chance)


def beyond(z: float) -> float:
    """Return E[Z | Z > z]."""
    return density(z) / max(below(-z), _LEAST)


def mean_within(low: float, high: float) -> float:
    """Return E[Z | low < Z < high], or the nearer end where that is next to impossible."""
    chance = below(high) - below(low)
    if chance < 1e-12:
        return low if abs(low) < abs(high) else high
    return (density(low) - density(high)) / chance


def below_many(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(Z < x) for an array."""
    halves: NDArray[np.float64] = 0.5 * _erfc(-x / math.sqrt(2))
    return halves
