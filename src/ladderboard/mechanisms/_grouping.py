"""Groups and weights: from the losses of examples to a risk, and how much that risk is worth.

It stands beside the fixed-point mean that sessions take, because it is one: weights and losses are
whole numbers, their products are added up exactly, and one division rounds. So the order of rows
and the machine do not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidLabels, InvalidRisk
from ladderboard.mechanisms import _fixed_point

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HALF_BASE = 10**6  # units are split into two halves of so much, whose sums cannot overflow
_HALF_BITS = 20  # and products need halves of so many bits
_CHUNK = 2**22  # so many products of two halves of 20 bits fit a signed 64-bit sum


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
        The group of each example; None puts each in one of its own.
    weight
        The weight of each example, above 0, the same for all of a group; None weighs them alike.
    n
        How many examples there are, where neither is given.

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
        given = [len(each) for each in (group, weight) if each is not None]
        if n is not None:
            given.append(n)
        if not given or len(set(given)) > 1 or given[0] < 1:
            raise InvalidLabels("Groups and weights must be of one length, one for each example.")
        self.examples = given[0]
        self.n = self.examples
        self._order: NDArray[np.int64] | None = None
        first: Any = slice(None)
        if group is not None:
            first = self._arrange(np.asarray(group))
        self.weight = None if weight is None else self._read_weight(weight, first)
        """The weight of each group, a whole number; None where all weigh the same."""
        self.effective_n = float(self.n)
        if self.weight is not None:
            self._total = _sum(self.weight)
            self.effective_n = self._total**2 / _dot(self.weight, self.weight)

    def losses(self, losses: Any) -> NDArray[np.float64]:
        """Return the mean loss of each group, in the order in which groups first appear."""
        return _fixed_point.array_from_units(self._units(losses))

    def risk(self, losses: Any, *, binary: bool = False) -> float:
        """Return the mean over groups, weighted if there are weights.

        ``binary`` says that the loss knows only 0 and 1, so that their sum is exact and found
        sooner. It is never told from the losses: that would show in the time it takes.
        """
        if binary and self._order is None and self.weight is None:
            return float(np.sum(losses)) / self.n
        units = self._units(losses)
        if self.weight is None:
            return _sum(units) / (self.n * _fixed_point.UNITS)
        return _dot(self.weight, units) / (self._total * _fixed_point.UNITS)

    def _units(self, losses: Any) -> NDArray[np.int64]:
        read = np.asarray(losses, dtype=np.float64)
        if read.shape != (self.examples,):
            raise InvalidRisk(f"losses must hold one number for each of {self.examples} examples.")
        if not ((read >= 0) & (read <= 1)).all():
            raise InvalidRisk("losses must lie in [0, 1]; some do not.")
        units = _fixed_point.array_to_units(read)
        if self._order is None:
            return units
        high, low = np.divmod(units[self._order], _HALF_BASE)
        high, rest = np.divmod(np.add.reduceat(high, self._starts), self._sizes)
        low = np.add.reduceat(low, self._starts) + rest * _HALF_BASE
        means = high * _HALF_BASE + _fixed_point.round_to_multiple(low, self._sizes) // self._sizes
        return np.asarray(means[self._rank])

    def _arrange(self, group: NDArray[Any]) -> NDArray[np.int64]:
        """Sort examples by their groups; return where each group first appears."""
        if group.ndim != 1:
            raise InvalidLabels("group must hold one value for each example.")
        _, first, of = np.unique(group, return_index=True, return_inverse=True)
        self._order = np.argsort(of, kind="stable")
        self._sizes = np.bincount(of)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._rank = np.argsort(first)
        self._of = of
        self.n = len(first)
        return first[self._rank]

    def _read_weight(self, weight: Any, first: Any) -> NDArray[np.int64] | None:
        read = np.asarray(weight, dtype=np.float64)
        if read.ndim != 1 or not ((read > 0) & np.isfinite(read)).all():
            raise InvalidLabels("Weights must be finite numbers above 0, one for each example.")
        each = read[first]
        if self._order is not None and (read != each[np.argsort(self._rank)][self._of]).any():
            raise InvalidLabels("Examples of one group must have one weight.")
        if (each == each[0]).all():
            return None
        scaled = np.ldexp(each, 2 * _HALF_BITS - int(np.frexp(each.max())[1]))
        return np.maximum(np.rint(scaled), 1).astype(np.int64)


def _sum(numbers: NDArray[np.int64]) -> int:
    """Return the sum of numbers up to 2^40, which may be larger than 64 bits hold."""
    return sum(int(numbers[at : at + _CHUNK].sum()) for at in range(0, len(numbers), _CHUNK))


def _dot(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """Return the sum of the products of numbers up to 2^40, exactly: half by half, chunk by chunk.

    >>> _dot(np.array([2**40, 3]), np.array([2**40, 5])) == 2**80 + 15
    True
    """
    total = 0
    for at in range(0, len(left), _CHUNK):
        one, other = left[at : at + _CHUNK], right[at : at + _CHUNK]
        high, low = one >> _HALF_BITS, one & (2**_HALF_BITS - 1)
        above, below = other >> _HALF_BITS, other & (2**_HALF_BITS - 1)
        total += int(high @ above) << 2 * _HALF_BITS
        total += (int(high @ below) + int(low @ above)) << _HALF_BITS
        total += int(low @ below)
    return total
