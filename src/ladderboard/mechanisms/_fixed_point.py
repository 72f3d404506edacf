"""Fixed-point numbers: risks, steps, noise and releases as integers in units of 1e-12.

Integer comparisons have no ties that rounding would break by accident, integer noise leaves no
low-order bits that reveal the risk (Mironov 2012), and results are the same on every machine. The
unit is decimal, so 0.31 - 0.01 is 0.30, and releases print as people write them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.mechanisms._types import Setup

UNITS = 10**12
# Up to this magnitude a number, and its sum with noise, is exact in a double and in 64 bits.
MAX_MAGNITUDE = 1000
# The sum of this many terms of at most MAX_MAGNITUDE fits in a signed 64-bit integer.
_CHUNK = 8_000
_HALF = 10**6  # units are split in base 10^6, so that squares of the parts do not overflow


def to_units(value: float) -> int:
    """Return the nearest number of units.

    >>> to_units(0.31) - to_units(0.01) == to_units(0.30)
    True
    """
    return round(value * UNITS)


def from_units(units: int) -> float:
    """Return the double nearest to a number of units.

    >>> from_units(310_000_000_000)
    0.31
    """
    return units / UNITS


@lru_cache(maxsize=1024)
def release_range(low: float, high: float, grid: int) -> tuple[int, int]:
    """Return the lowest and the highest multiple of the grid that a risk can round to."""
    return round_to_multiple(to_units(low), grid), round_to_multiple(to_units(high), grid)


def read_magnitude(name: str, value: Any, *, above_zero: bool = False) -> float:
    """Return a step, a grid or a noise as a float, rounded to whole units."""
    read = _settings.number(name, value, at_least=0, at_most=MAX_MAGNITUDE)
    if (read == 0 and above_zero) or 0 < read < 1 / UNITS:
        zero = "" if above_zero else "0, or "
        raise InvalidSetting(f"{name} must be {zero}at least 1e-12; got {value!r}.")
    return from_units(to_units(read))


def array_to_units(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """As ``to_units``, for an array; the same rounding, so the same integers."""
    return np.rint(values * UNITS).astype(np.int64)


def array_from_units(units: NDArray[np.int64]) -> NDArray[np.float64]:
    """As ``from_units``, for an array; both are the correctly rounded quotient."""
    return units / float(UNITS)


def round_to_multiple(units: Any, grid: Any) -> Any:
    """Return the multiple of ``grid`` nearest to ``units``, halves to the even multiple.

    Works on an int and on an array alike.

    >>> [round_to_multiple(x, 10) for x in (14, 15, 25, -4)]
    [10, 20, 20, 0]
    """
    cells, rest = divmod(units, grid)
    return (cells + ((2 * rest > grid) | ((2 * rest == grid) & (cells % 2 == 1)))) * grid


def exact_mean(losses: NDArray[np.float64]) -> float:
    """Return the mean of losses, summed as integers: the same in any order, on any machine.

    >>> exact_mean(np.array([1.0, 0.0, 0.0]))
    0.3333333333333333
    """
    total = sum(
        int(array_to_units(losses[start : start + _CHUNK]).sum())
        for start in range(0, len(losses), _CHUNK)
    )
    return total / (len(losses) * UNITS)


def exact_standard_error(losses: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of losses, from sums of integers.

    The variance divides by the number of losses. Losses count in whole units; those of a magnitude
    above 1 in coarser ones, so that no sum overflows.

    >>> exact_standard_error(np.array([1.0, 0.0, 0.0, 1.0]))
    0.25
    """
    count, largest = len(losses), float(np.abs(losses).max())
    coarse = max(int(largest), 1)
    total = squares = 0
    for start in range(0, count, _CHUNK):
        high, low = np.divmod(array_to_units(losses[start : start + _CHUNK]) // coarse, _HALF)
        total += int(high.sum()) * _HALF + int(low.sum())
        squares += int((high * high).sum()) * _HALF**2
        squares += 2 * int((high * low).sum()) * _HALF + int((low * low).sum())
    variance = count * squares - total * total  # times count^2
    return math.isqrt(variance // count) / count * coarse / UNITS


def round_to_grid(setup: Setup, units: Any, grid: int) -> Any:
    """Round to the grid and clip to the multiples a risk can round to; one int or an array."""
    bottom, top = release_range(setup.low, setup.high, grid)
    rounded = round_to_multiple(units, grid)
    if type(rounded) is int:
        return min(max(rounded, bottom), top)
    return np.clip(rounded, bottom, top)
