"""Fixed-point numbers: risks, steps, noise and releases as integers in units of 1e-12.

Integer comparisons have no ties that rounding would break by accident, integer noise leaves no
low-order bits that reveal the risk (Mironov 2012), and results are the same on every machine. The
unit is decimal, so 0.31 - 0.01 is 0.30, and releases print as people write them. Means over groups
and with weights are sums of integers with one division, so the order of rows does not matter.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidRisk, InvalidSetting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.mechanisms._session import Setup


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


_HALF_BASE = 10**6  # units are split in base 10^6 into two halves, whose sums cannot overflow
_HALF_BITS = 20  # for products, numbers are split into halves of 20 bits
_PRODUCTS = (
    2**22
)  # the sum of this many products of two 20-bit halves fits in a signed 64-bit integer


class Grouping:
    """How the losses of examples become a risk.

    Losses are averaged within a group, and ``n`` counts groups: rows of one patient are not
    independent. With weights the risk is a weighted mean and is worth ``effective_n`` examples,
    (sum w)² / sum w², in bounds of Hoeffding's form only. Weights must not be made from labels.
    They are scaled by a power of two, so that the largest lies between 2^39 and 2^40, and rounded
    to whole numbers, halves to even ones, none below 1; these are the weights that are used.

    Parameters
    ----------
    group
        The group of each example; None puts each example in its own group.
    weight
        The weight of each example, above 0, the same within a group; None weighs all alike.
    n
        The number of examples, if neither is given.

    Examples
    --------
    >>> patients = Grouping(["p", "q", "p"])
    >>> patients.n, patients.losses([1.0, 0.0, 0.0]).tolist(), patients.risk([1.0, 0.0, 0.0])
    (2, [0.5, 0.0], 0.25)
    >>> weighed = Grouping(weight=[1, 3])
    >>> weighed.risk([1.0, 0.0]), weighed.effective_n
    (0.25, 1.6)
    """

    def __init__(self, group: Any = None, weight: Any = None, *, n: int | None = None) -> None:
        lengths = [len(values) for values in (group, weight) if values is not None]
        if n is not None:
            lengths.append(n)
        if not lengths or len(set(lengths)) > 1 or lengths[0] < 1:
            raise InvalidLabels(
                "Groups and weights must have the same length, one for each example."
            )
        self.examples = lengths[0]
        self.n = self.examples
        self._order: NDArray[np.int64] | None = None
        first: Any = slice(None)
        if group is not None:
            first = self._arrange(np.asarray(group))
        self.weight = None if weight is None else self._read_weight(weight, first)
        """The weight of each group, an integer; None if all are equal."""
        self.effective_n = float(self.n)
        if self.weight is not None:
            self._total = _sum(self.weight)
            self.effective_n = self._total**2 / _dot(self.weight, self.weight)

    def losses(self, losses: Any) -> NDArray[np.float64]:
        """Return the mean loss of each group, in the order in which groups first appear."""
        return array_from_units(self._units(losses))

    def risk(self, losses: Any, *, binary: bool = False) -> float:
        """Return the mean over groups, weighted if there are weights.

        ``binary`` says that every loss is 0 or 1, so that a plain sum is exact and faster. It is
        never inferred from the losses: the response time would then depend on them.
        """
        if binary and self._order is None and self.weight is None:
            is_mask = losses.dtype.kind == "b"
            total = np.count_nonzero(losses) if is_mask else np.add.reduce(losses)
            return float(total) / self.n
        units = self._units(losses)
        if self.weight is None:
            return _sum(units) / (self.n * UNITS)
        return _dot(self.weight, units) / (self._total * UNITS)

    def standard_error(self, losses: Any) -> float:
        """Return the standard error of the risk, as an estimate of its expectation.

        With weights it is sqrt(sum w² (loss - risk)²) / sum w, from weights of 20 bits.

        >>> Grouping(n=4).standard_error([1.0, 0.0, 0.0, 1.0])
        0.25
        >>> round(Grouping(weight=[1, 1, 2]).standard_error([1.0, 0.0, 0.5]), 6)
        0.176777
        """
        units = self._units(losses)
        if self.weight is None:
            return exact_standard_error(array_from_units(units))
        weight = self.weight >> _HALF_BITS
        mean = _dot(self.weight, units) // self._total
        deviations = (weight * np.abs(units - mean)) >> _HALF_BITS
        squares = _dot(deviations, deviations) << 2 * _HALF_BITS
        return math.isqrt(squares) / (_sum(weight) * UNITS)

    def _units(self, losses: Any) -> NDArray[np.int64]:
        read = np.asarray(losses, dtype=np.float64)
        if read.shape != (self.examples,):
            raise InvalidRisk(f"losses must hold one number for each of {self.examples} examples.")
        if not ((read >= 0) & (read <= 1)).all():
            raise InvalidRisk("losses must lie in [0, 1]; some do not.")
        units = array_to_units(read)
        if self._order is None:
            return units
        high, low = np.divmod(units[self._order], _HALF_BASE)
        high, rest = np.divmod(np.add.reduceat(high, self._starts), self._sizes)
        low = np.add.reduceat(low, self._starts) + rest * _HALF_BASE
        means = high * _HALF_BASE + round_to_multiple(low, self._sizes) // self._sizes
        return np.asarray(means[self._rank])

    def _arrange(self, group: NDArray[Any]) -> NDArray[np.int64]:
        """Sort examples by their groups; return where each group first appears."""
        if group.ndim != 1:
            raise InvalidLabels("group must hold one value for each example.")
        _, first, group_index = np.unique(group, return_index=True, return_inverse=True)
        self._order = np.argsort(group_index, kind="stable")
        self._sizes = np.bincount(group_index)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._rank = np.argsort(first)
        self._group_index = group_index
        self.n = len(first)
        return first[self._rank]

    def _read_weight(self, weight: Any, first: Any) -> NDArray[np.int64] | None:
        read = np.asarray(weight, dtype=np.float64)
        if read.ndim != 1 or not ((read > 0) & np.isfinite(read)).all():
            raise InvalidLabels("Weights must be finite numbers above 0, one for each example.")
        weights = read[first]
        if (
            self._order is not None
            and (read != weights[np.argsort(self._rank)][self._group_index]).any()
        ):
            raise InvalidLabels("Examples of one group must have one weight.")
        if (weights == weights[0]).all():
            return None
        scaled = np.ldexp(weights, 2 * _HALF_BITS - int(np.frexp(weights.max())[1]))
        return np.maximum(np.rint(scaled), 1).astype(np.int64)


def _sum(numbers: NDArray[np.int64]) -> int:
    """Return the exact sum of numbers up to 2^40, which may exceed 64 bits."""
    return sum(
        int(numbers[start : start + _PRODUCTS].sum()) for start in range(0, len(numbers), _PRODUCTS)
    )


def _dot(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """Return the exact dot product of numbers up to 2^40, half by half and chunk by chunk.

    >>> _dot(np.array([2**40, 3]), np.array([2**40, 5])) == 2**80 + 15
    True
    """
    total = 0
    for start in range(0, len(left), _PRODUCTS):
        a, b = left[start : start + _PRODUCTS], right[start : start + _PRODUCTS]
        a_high, a_low = a >> _HALF_BITS, a & (2**_HALF_BITS - 1)
        b_high, b_low = b >> _HALF_BITS, b & (2**_HALF_BITS - 1)
        total += int(a_high @ b_high) << 2 * _HALF_BITS
        total += (int(a_high @ b_low) + int(a_low @ b_high)) << _HALF_BITS
        total += int(a_low @ b_low)
    return total
