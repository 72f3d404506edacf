"""What a growing ladder can release, and how far that may be from the least risk on the holdout.

Proofs: docs/explanation/growing-ladder.md, "Why the theorem of counting still holds".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.mechanisms._fixed_point import (
    UNITS,
    from_units,
    release_range,
    round_to_multiple,
    to_units,
)
from ladderboard.mechanisms._transcript import ReleaseDeviation, ReleaseValues, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.mechanisms._growing import GrowingLadder
    from ladderboard.mechanisms._types import Setup

# A readable grid is less than this many times finer than the one that is wanted: sqrt(5/2).
_COARSEST_RATIO = 1.5812
_MAX_RUNGS = 100_000
_MAX_COUNTED_RUNGS, _MAX_COUNTED_POINTS = 256, 20_000
_CUT_NOISE = "Noise is drawn from one tape, independent of the data, and never redrawn."


@dataclass(frozen=True, kw_only=True)
class GrowingValues(ReleaseValues):
    """Values on a grid that depends on the value and the number of changes before, falling.

    ``log_points`` are bounds on the logarithms of how many values each change of a ladder may take,
    given the one before and whatever other ladders did; they never rise. ``log_counts`` are the
    logarithms of the numbers of sequences of a ladder, if they could be counted.
    """

    ladder: GrowingLadder
    setup: Setup
    log_points: tuple[float, ...]
    log_counts: tuple[float, ...] | None

    @property
    def concave(self) -> bool:
        """Whether ``log_count`` is concave, as a sum of bounds is; a count need not be."""
        return self.log_counts is None

    def log_count(self, changes: int) -> float:
        """Return the logarithm of the number of sequences of one ladder, or a bound on it."""
        if self.log_counts is None:
            return math.fsum(self.log_points[:changes])
        return self.log_counts[changes]

    def log_shared(self, changes: int, ladders: int) -> float:
        """Return a bound for the most even split among the ladders, which is the dearest."""
        per_ladder, extra = divmod(changes, ladders)
        return ladders * math.fsum(self.log_points[:per_ladder]) + extra * (
            self.log_points[per_ladder] if extra and per_ladder < len(self.log_points) else 0.0
        )

    def log_split(self, changes: Sequence[int]) -> float:
        """Return the sum over ladders."""
        return sum(map(self.log_count, changes))


def _count_sequences(ladder: GrowingLadder, setup: Setup) -> tuple[float, ...] | None:
    """Return the logarithms of the numbers of falling sequences by their length.

    None if other ladders influence the grid, or there are too many to count.
    """
    top = to_units(setup.high)
    if ladder.shared_ladders or top - to_units(setup.low) > _MAX_COUNTED_POINTS * ladder.grid_units(
        setup, top, 0
    ):
        return None
    # The values after the last change, and in how many ways each is reached, divided by e^scale.
    values: NDArray[np.int64] = np.array([top])
    ways: NDArray[np.float64] = np.ones(1)
    scale = 0.0
    logs = [scale]
    while len(logs) <= _MAX_COUNTED_RUNGS:
        parts = [
            _spread(values[inside], ways[inside], grid, setup)
            for inside, grid in _stretches(ladder, setup, len(logs) - 1, values)
        ]
        values, index = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        if not len(values):
            return tuple(logs)
        ways = np.bincount(index, np.concatenate([part[1] for part in parts])).astype(np.float64)
        total = float(ways.sum())
        ways, scale = ways / total, scale + math.log(total)
        logs.append(scale)
    return None


def _stretches(
    ladder: GrowingLadder, setup: Setup, changes: int, values: NDArray[np.int64]
) -> Iterator[tuple[slice, int]]:
    """Yield parts of sorted values with the grid that is used after any value in them."""
    start = 0
    while start < len(values):
        grid = ladder.grid_units(setup, int(values[start]), changes)
        stop = bisect_left(
            range(len(values)),
            grid + 1,
            lo=start,
            key=lambda i: ladder.grid_units(setup, int(values[i]), changes),
        )
        yield slice(start, stop), grid
        start = stop


def _spread(
    values: NDArray[np.int64], ways: NDArray[np.float64], grid: int, setup: Setup
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the multiples of a grid below the values, and in how many ways each is reached."""
    lowest = round_to_multiple(to_units(setup.low), grid) // grid
    below = (values - 1) // grid - lowest  # the index of the next multiple below each value
    reached = np.bincount(below[below >= 0], ways[below >= 0])[::-1].cumsum()[::-1]
    return (np.arange(len(reached)) + lowest) * grid, reached


@dataclass(frozen=True)
class GrowingTranscript(Transcript):
    """The possible releases of a growing ladder; how far they may be off depends on its state."""

    values: GrowingValues

    def deviation_after(
        self, released: float | None, changes: int, others: int
    ) -> ReleaseDeviation:
        """Bound the step below the value, and the error of its release; see the explanation."""
        ladder, setup = self.values.ladder, self.values.setup
        width = setup.high - setup.low
        multiple = ladder.step * ladder.growth_factor(changes, others)
        # A model is not released if it fails the step, or if its rounded value is not lower.
        reach = multiple * max(
            1 + ladder.cut * ladder.compare_noise,
            _COARSEST_RATIO * ladder.grid / 2 + ladder.cut * ladder.release_noise,
        )
        above = width if released is None else min(max(released - setup.low, 0.0), width)

        def hidden(value: float) -> float:
            """How far below R_t a model may be that was compared with this value, in rungs of b."""
            share = min(value / width, 0.5)
            error = width * math.sqrt(max(share * (1 - share), 1 / setup.n) / setup.n)
            return above - value + reach * error

        low, high = above, max(above, width / 2)
        for _ in range(100):  # a concave function: its largest value by thirds
            third = (high - low) / 3
            low, high = (
                (low + third, high)
                if hidden(low + third) < hidden(high - third)
                else (low, high - third)
            )
        below = max(hidden(low), hidden(above), hidden(high)) + 2 / UNITS
        # The last release came from a higher value and one change less.
        top = to_units(setup.high)
        rung = ladder.rung_at(setup, top, max(changes - 1, 0), others)
        off = from_units(rung.grid) / 2 + ladder.cut * from_units(rung.release_noise + 1)
        return ReleaseDeviation(step=below, grid=2 * off + 4 / UNITS)


@lru_cache(maxsize=64)
def growing_transcript(ladder: GrowingLadder, setup: Setup) -> Transcript:
    """Return the possible releases: for each change, a bound on the values that it may take.

    A change from R takes a multiple of the grid at R that lies below R. While R is in the upper
    half, the grid is the same, and there are at most width / grid of them. Below, R / SE(R) is at
    most sqrt(n), and a readable grid is less than ``_COARSEST_RATIO`` times finer than wanted.
    """
    top, bottom = to_units(setup.high), to_units(setup.low)
    width = top - bottom
    logs: list[float] = []
    fallen = 0
    while fallen <= width and len(logs) < _MAX_RUNGS:
        changes = len(logs)
        in_errors = ladder.step * ladder.growth_factor(changes) * ladder.grid
        points = 2 + max(
            width // ladder.grid_units(setup, top, changes),
            _COARSEST_RATIO * math.sqrt(setup.n) / in_errors * 1.001,
        )
        logs.append(min(math.log(points), logs[-1] if logs else math.inf))
        fallen += ladder.grid_units(setup, bottom, changes)
    counts = _count_sequences(ladder, setup)
    finest = ladder.grid_units(setup, bottom, 0)
    cell = 10 ** (len(str(finest)) - 1)  # all grids are multiples of it
    lowest, highest = release_range(setup.low, setup.high, cell)
    return GrowingTranscript(
        GrowingValues(
            points=round(math.exp(logs[0])),
            max_changes=len(logs) if counts is None else len(counts) - 1,
            ladder=ladder,
            setup=setup,
            log_points=tuple(logs),
            log_counts=counts,
        ),
        ReleaseDeviation(0.0),
        lowest // cell,
        highest // cell,
        cell / UNITS,
        assumptions=(_CUT_NOISE,),
    )
