"""Climbing: the comparison of Fig. 1, one question or many at a time.

Everything that is a ladder goes through here: a threshold that stands until a model crosses it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.mechanisms import _fixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.mechanisms._step import Setup

__all__ = ["Climb", "Rung", "climb_many", "ends", "on_grid"]

_FIRST_LOOK = 64
_LONGEST_LOOK = 65_536


class Rung(NamedTuple):
    """Where a ladder stands: the best release R, and the noise xi on its threshold."""

    best: Any
    slack: Any


class Climb(NamedTuple):
    """Many questions answered: where the ladder stands, R after each, and where R moved."""

    rung: Rung
    best: NDArray[Any]
    moved: NDArray[np.bool_]
    improved: NDArray[np.bool_]


@lru_cache(maxsize=1024)
def ends(low: float, high: float, grid: int) -> tuple[int, int]:
    """Return the lowest and the highest multiple of the grid that a risk can round to."""
    return _fixed.nearest(_fixed.to_units(low), grid), _fixed.nearest(_fixed.to_units(high), grid)


def on_grid(setup: Setup, units: Any, grid: int) -> Any:
    """Round to the grid and clip to the multiples a risk can round to; one int or an array."""
    bottom, top = ends(setup.low, setup.high, grid)
    rounded = _fixed.nearest(units, grid)
    if type(rounded) is int:
        return min(max(rounded, bottom), top)
    return np.clip(rounded, bottom, top)


def climb_many(
    rung: Rung,
    step: Any,
    compared: NDArray[Any],
    released: NDArray[Any],
    slacks: NDArray[Any],
    *,
    forced_down: bool,
) -> Climb:
    """Take many questions: cross where ``compared < R - step + xi``, then release.

    ``compared`` is R_S(f_t) + xi_t, ``released`` what would be told, ``slacks`` the xi''_t. With
    ``forced_down`` a crossing that would not lower R leaves it. Between two crossings the
    threshold stands still, so the next crossing is found by looking ahead in longer and longer
    strides; the cost is a few operations a question, and some more a crossing.
    """
    best, slack = rung
    count = len(compared)
    after = np.empty(count, dtype=released.dtype)
    moved = np.zeros(count, dtype=np.bool_)
    improved = np.zeros(count, dtype=np.bool_)
    told_until = 0
    at = _first_below(compared, best - step + slack, 0)
    while at < count:
        slack = slacks[at].item()
        told = released[at].item()
        if told < best or not forced_down:
            after[told_until:at] = best
            told_until = at
            moved[at] = True
            improved[at] = told < best
            best = told
        at = _first_below(compared, best - step + slack, at + 1)
    after[told_until:] = best
    return Climb(Rung(best, slack), after, moved, improved)


def _first_below(values: NDArray[Any], bound: Any, start: int) -> int:
    """Return the first index from ``start`` on with a value below ``bound``, or the length."""
    stride = _FIRST_LOOK
    while start < len(values):
        hits = values[start : start + stride] < bound
        first = int(hits.argmax())
        if hits[first]:
            return start + first
        start += stride
        stride = min(2 * stride, _LONGEST_LOOK)
    return len(values)
