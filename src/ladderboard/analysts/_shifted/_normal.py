"""The normal distribution, in the few forms that attacks need."""

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


def normal_density(x: float) -> float:
    """Return the standard normal density."""
    return math.exp(-x * x / 2) / _ROOT_2PI


def normal_cdf(x: float) -> float:
    """Return P(Z < x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def upper_quantile(chance: float) -> float:
    """Return the z that Z exceeds with this chance."""
    return -_STANDARD.inv_cdf(chance)


def upper_tail_mean(z: float) -> float:
    """Return E[Z | Z > z]."""
    return normal_density(z) / max(normal_cdf(-z), _LEAST)


def truncated_mean(low: float, high: float) -> float:
    """Return E[Z | low < Z < high], or the nearer end if the interval has almost no probability."""
    chance = normal_cdf(high) - normal_cdf(low)
    if chance < 1e-12:
        return low if abs(low) < abs(high) else high
    return (normal_density(low) - normal_density(high)) / chance


def normal_cdf_array(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(Z < x) for an array."""
    chances: NDArray[np.float64] = 0.5 * _erfc(-x / math.sqrt(2))
    return chances
