"""Value sequences: in how many ways a ladder can go down, by the number of its changes.

Proofs: docs/explanation/certificates.md, "Counting".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AnyOrder", "Cells", "Nothing", "Values", "log_binomial"]

_SHORT = 1000


@lru_cache(maxsize=65_536)
def log_binomial(whole: int, part: int) -> float:
    """Return the logarithm of a binomial coefficient; up to rounding never too small.

    >>> round(math.exp(log_binomial(10, 3)))
    120
    """
    if not 0 <= part <= whole:
        return -math.inf
    part = min(part, whole - part)
    if part <= _SHORT:
        at = np.arange(part, dtype=np.float64)
        return float(np.log((whole - at) / (part - at)).sum())
    # Stirling's series, cut above for the whole and below for the parts: an upper bound on paper,
    # off by less than 1e-11.
    rest = whole - part
    entropy = part * math.log(whole / part) - rest * math.log1p(-part / whole)
    root = 0.5 * math.log(whole / (2 * math.pi * part * rest))
    return entropy + root + 1 / (12 * whole) - _least_tail(part) - _least_tail(rest)


def _least_tail(number: int) -> float:
    """Return a lower bound on what Stirling's formula leaves out of ln(number!)."""
    return 1 / (12 * number) - 1 / (360 * number**3)


@dataclass(frozen=True)
class Values:
    """What a ladder's changes may say.

    Parameters
    ----------
    points
        How many values the first change may take.
    most
        The largest number of changes one ladder can make.
    drop
        How many cells a change lowers the value by, at least.
    """

    points: int
    most: int
    drop: int = 1

    def log_count(self, changes: int) -> float:
        """Return (a bound on) the logarithm of the number of sequences one ladder can say."""
        raise NotImplementedError

    def log_shared(self, changes: int, ladders: int) -> float:
        """Return the same for so many changes on several ladders together."""
        # In order of time, as replay tells whose change it is; or as a set of (ladder, value).
        in_time = changes * math.log(self.points) if self.points else -math.inf
        return min(in_time, self._log_sets(changes, ladders)) if changes else 0.0

    def log_split(self, changes: Sequence[int]) -> float | None:
        """Return the same for so many changes on each ladder; None where that is not used."""
        return None

    def _log_sets(self, changes: int, ladders: int) -> float:
        return log_binomial(ladders * self.points, changes)


@dataclass(frozen=True)
class Cells(Values):
    """Values on a grid, each lower than the last by at least ``drop`` cells."""

    @classmethod
    def of(cls, points: int, drop: int) -> Cells:
        """Return the cells of a grid; b changes need 1 + (b - 1) drop points."""
        points = max(points, 0)
        return cls(points, (points + drop - 1) // drop, drop)

    def log_count(self, changes: int) -> float:
        """Return ln C(points - (b - 1)(drop - 1), b)."""
        if changes == 0:
            return 0.0
        return log_binomial(self.points - (changes - 1) * (self.drop - 1), changes)

    def log_split(self, changes: Sequence[int]) -> float:
        """Return the sum over ladders."""
        return sum(map(self.log_count, changes))


@dataclass(frozen=True)
class AnyOrder(Values):
    """Strictly falling values on ``points`` points, counted as points^b / b!.

    A little more than C(points, b), so that the bound falls as the number of points, which is
    here that of the examples, grows.
    """

    def log_count(self, changes: int) -> float:
        """Return b ln(points) - ln(b!)."""
        return self._log_sets(changes, 1)

    def _log_sets(self, changes: int, ladders: int) -> float:
        return changes * math.log(ladders * self.points) - math.lgamma(changes + 1)


@dataclass(frozen=True)
class Nothing(Values):
    """Changes are seen, values are not."""

    def log_count(self, changes: int) -> float:
        """There is one way to say nothing."""
        return 0.0

    def log_shared(self, changes: int, ladders: int) -> float:
        """There is one way to say nothing; replay tells whose change it is."""
        return 0.0
