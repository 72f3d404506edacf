"""How large noise gets: quantiles that the tape's exact laws keep to.

Proofs: docs/explanation/certificates.md, "Noise". All lengths are risks; a unit is 1e-12.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UNIT", "difference_quantile", "quantile"]

UNIT = 1e-12
_HALVINGS = 200
# The difference of two discrete Gaussians may exceed the continuous tail by this factor.
_EXCESS = 1.0003


@lru_cache(maxsize=1024)  # within a budget they are the same for every question
def quantile(law: str, scale: float, chance: float) -> float:
    """Return q such that one draw is above q with probability at most ``chance``.

    ``scale`` is the standard deviation of a Gaussian law, the scale of a Laplace law.

    >>> round(quantile("gaussian", 1.0, 0.025), 3)
    1.96
    >>> round(quantile("laplace", 1.0, 0.025), 3)
    2.996
    """
    if scale == 0:
        return 0.0
    tail = _gaussian if law == "gaussian" else _laplace
    return scale * _invert(tail, chance) + UNIT


@lru_cache(maxsize=1024)
def difference_quantile(law: str, scale: float, chance: float) -> float:
    """Return q such that the difference of two draws is above q so rarely.

    >>> round(difference_quantile("gaussian", 1.0, 0.025), 3)
    2.772
    """
    if scale == 0:
        return 0.0
    if law == "gaussian":
        return math.sqrt(2) * scale * _invert(_gaussian, chance / _EXCESS) + UNIT
    return scale * _invert(_laplace_difference, chance) + 2 * UNIT


def _gaussian(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _laplace(x: float) -> float:
    return math.exp(-x) / 2


def _laplace_difference(x: float) -> float:
    return (2 + x) * math.exp(-x) / 4


def _invert(tail: Callable[[float], float], chance: float) -> float:
    """Return the least x >= 0 with tail(x) <= chance, rounded up."""
    low, high = 0.0, 1.0
    while tail(high) > chance:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if tail(middle) > chance:
            low = middle
        else:
            high = middle
    return high
