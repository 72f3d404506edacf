"""Groups and weights: from the losses of examples to a risk, and how much that risk is worth.

It stands beside the fixed-point mean that sessions take, because it is one: the same whatever the
order of rows and the machine.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidLabels, InvalidRisk
from ladderboard.mechanisms import _fixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Grouping"]

_HALF = 10**6  # units are split into two halves of so much, whose sums cannot overflow


class Grouping:
    """How the losses of examples become a risk.

    Losses are averaged within a group, and ``n`` counts groups: rows of one patient are not
    independent. With weights the risk is a weighted mean and is worth ``effective_n`` examples,
    (sum w)² / sum w², in bounds of Hoeffding's form only. Weights must not be made from labels.

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
        """The weight of each group, scaled; None where all weigh the same."""
        self.effective_n = float(self.n)
        if self.weight is not None:
            listed = self.weight.tolist()
            self.effective_n = math.fsum(listed) ** 2 / math.fsum(each * each for each in listed)

    def losses(self, losses: Any) -> NDArray[np.float64]:
        """Return the mean loss of each group, in the order in which groups first appear."""
        return _fixed.many_from_units(self._units(losses))

    def risk(self, losses: Any) -> float:
        """Return the mean over groups, weighted if there are weights."""
        units = self._units(losses)
        if self.weight is None:
            return _fixed.mean(_fixed.many_from_units(units))
        # A sum that is rounded once, so the order of rows does not matter.
        total = math.fsum((self.weight * units).tolist())
        return min(total / (math.fsum(self.weight.tolist()) * _fixed.UNITS), 1.0)

    def _units(self, losses: Any) -> NDArray[np.int64]:
        read = np.asarray(losses, dtype=np.float64)
        if read.shape != (self.examples,):
            raise InvalidRisk(f"losses must hold one number for each of {self.examples} examples.")
        if not ((read >= 0) & (read <= 1)).all():
            raise InvalidRisk("losses must lie in [0, 1]; some do not.")
        units = _fixed.many_to_units(read)
        if self._order is None:
            return units
        high, low = np.divmod(units[self._order], _HALF)
        high, rest = np.divmod(np.add.reduceat(high, self._starts), self._sizes)
        low = np.add.reduceat(low, self._starts) + rest * _HALF
        means = high * _HALF + _fixed.nearest(low, self._sizes) // self._sizes
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

    def _read_weight(self, weight: Any, first: Any) -> NDArray[np.float64] | None:
        read = np.asarray(weight, dtype=np.float64)
        if read.ndim != 1 or not ((read > 0) & np.isfinite(read)).all():
            raise InvalidLabels("Weights must be finite numbers above 0, one for each example.")
        each = read[first]
        if self._order is not None and (read != each[np.argsort(self._rank)][self._of]).any():
            raise InvalidLabels("Examples of one group must have one weight.")
        if (each == each[0]).all():
            return None
        # By a power of two, which is exact, so that squares stay in the range of doubles.
        return np.ldexp(each, -int(np.frexp(each.max())[1]))
