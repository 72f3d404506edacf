"""The smallest gain that a mechanism shows.

Derivation: docs/explanation/mechanisms.md, "The smallest visible gain".
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from ladderboard import _settings

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOSE = 1e-6  # relative difference below which two Laplace scales are treated as equal


@lru_cache(maxsize=1024)  # asked for with every reply, mostly with the same settings
def smallest_gain(
    power: float,
    *,
    step: float = 0.0,
    grid: float = 0.0,
    compare: float = 0.0,
    standing: float = 0.0,
    release: float = 0.0,
    law: str = "gaussian",
) -> float:
    """Return the smallest gain that a ladder with these settings shows with probability ``power``.

    A gain g is shown if it beats the step with the noise of the comparison, and if the noisy value
    falls below the last one on the grid: P(xi_t - xi < g - step) P(xi'_t < g - grid/2), where noise
    of size 0 is 0. Sizes are standard deviations of a Gaussian law and scales of a Laplace law.

    >>> smallest_gain(0.95, step=0.01, grid=0.005)
    0.01
    >>> round(smallest_gain(0.95, step=0.025, compare=0.0085), 4)
    0.039
    """
    if not (compare or standing or release):
        check_power(power)
        return max(step, grid / 2)
    below = _gaussian_difference_below if law == "gaussian" else _laplace_difference_below

    def chance(gain: float) -> float:
        return below(gain - step, compare, standing) * below(gain - grid / 2, release, 0.0)

    return smallest_with_chance(chance, power, scale=step + grid + compare + standing + release)


def smallest_with_chance(chance: Callable[[float], float], power: float, *, scale: float) -> float:
    """Return the smallest gain, at least 0, whose chance reaches ``power``; chances rise to 1."""
    check_power(power)
    if chance(0.0) >= power:
        return 0.0
    low, high = 0.0, scale
    while chance(high) < power:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return high


@lru_cache(maxsize=64)
def check_power(power: float) -> None:
    """Raise for a probability that is not between 0 and 1."""
    _settings.number("power", power, above=0, below=1)


def normal_below(x: float, sd: float) -> float:
    """Return P(Z < x) for a normal Z with mean 0; with no spread, whether x is at least 0."""
    return math.erfc(-x / (sd * math.sqrt(2))) / 2 if sd else float(x >= 0)


def _gaussian_difference_below(x: float, first: float, second: float) -> float:
    return normal_below(x, math.hypot(first, second))


def _laplace_difference_below(x: float, first: float, second: float) -> float:
    """Return P(X - Y < x) for independent Laplace X and Y with these scales."""
    a, b = max(first, second), min(first, second)
    if not a:
        return float(x >= 0)
    distance = abs(x)
    if a - b <= _CLOSE * a:
        tail = math.exp(-distance / a) * (2 + distance / a) / 4
    else:
        near = b * b * math.exp(-distance / b) if b else 0.0
        tail = (a * a * math.exp(-distance / a) - near) / (2 * (a * a - b * b))
    return 1 - tail if x >= 0 else tail
