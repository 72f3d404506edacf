"""What a growing ladder can release, and how far that may be from the least risk on the holdout.

Proofs: docs/explanation/growing-ladder.md, "Why the theorem of counting still holds".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.mechanisms._fixed_point import (
    UNITS,
    from_units,
    release_range,
    round_to_multiple,
    to_units,
)
from ladderboard.mechanisms._session import (
    LadderChanges,
    Release,
    largest_standard_error,
    standard_error_class,
)
from ladderboard.mechanisms._transcript import (
    ReleaseDeviation,
    ReleaseValues,
    ReplayedChanges,
    Transcript,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.mechanisms._growing._ladder import GrowingLadder, GrowingLadderState, Rung
    from ladderboard.mechanisms._session import Setup
    from ladderboard.mechanisms._transcript import VisibleChange

# A readable grid is less than this many times finer than the one that is wanted: sqrt(5/2).
_COARSEST_RATIO = 1.5812
_MAX_RUNGS = 100_000
_MAX_COUNTED_RUNGS, _MAX_COUNTED_POINTS = 256, 20_000
# Risks and noise are rounded to units.
_ROUNDING = 4 / UNITS
# More than one step of the lattice that noise is drawn on has, at the most.
_LATTICE = 1e-6
_OWN_ERRORS = "The released standard errors are those of the losses on the holdout."
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

    def grid_at(index: int) -> int:
        return ladder.grid_units(setup, int(values[index]), changes)

    start, count = 0, len(values)
    last = grid_at(count - 1) if count else 0
    while start < count:
        grid = grid_at(start)
        # They never fall with the value.
        stop = count
        if grid != last:
            stop = bisect_left(range(count), grid + 1, lo=start, key=grid_at)
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


# What follows from changes that certificates were asked for, while nothing else changes.
_REPLAYS: dict[tuple[Any, ...], ReplayedChanges] = {}
_MAX_REPLAYS = 1024


@dataclass(frozen=True)
class GrowingTranscript(Transcript):
    """The possible releases of a growing ladder; how far they may be off depends on its state."""

    values: GrowingValues

    @lru_cache(maxsize=1024)  # noqa: B019 - few transcripts; boards ask for the same again
    def deviation_after(
        self, released: float | None, changes: int, others: int
    ) -> ReleaseDeviation:
        """Bound the step below the value, and the error of its release; see the explanation."""
        ladder, setup = self.values.ladder, self.values.setup
        start = ladder.begin(setup, ())
        # The last release came from a higher value and one change less.
        before = start._replace(changes=max(changes - 1, 0))
        off = self._error_of(ladder.rung_for(setup, before, start.error_class, others))
        if ladder.follows_model:
            now = start._replace(changes=changes)
            loudest = start.error_class if released is not None else self._loudest_with_weights
            reach = self._reach(ladder.rung_for(setup, now, loudest, others))
            return ReleaseDeviation(step=reach, grid=2 * off)
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
        below = max(hidden(low), hidden(above), hidden(high)) + _ROUNDING
        return ReleaseDeviation(step=below, grid=2 * off)

    def replay(self, changes: tuple[VisibleChange, ...], ladders: int) -> ReplayedChanges:
        """Return what follows from the values: their prices on the grids that they came from."""
        cached = _REPLAYS.get(key := (self.values.ladder, self.values.setup, ladders, changes))
        if cached is None:
            if len(_REPLAYS) >= _MAX_REPLAYS:
                _REPLAYS.clear()
            cached = _REPLAYS[key] = self._replay(changes, ladders)
        return cached

    def _replay(self, changes: tuple[VisibleChange, ...], ladders: int) -> ReplayedChanges:
        ladder, setup = self.values.ladder, self.values.setup
        owners = dict.fromkeys(change.ladder for change in changes)
        numbers: dict[Any, int] = {owner: number for number, owner in enumerate(owners)}
        # Ladders without a change are all alike: one stands for them.
        states = [ladder.begin(setup, ())] * min(ladders, len(numbers) + 1)
        counts = LadderChanges(ladder.shared_ladders)
        for _ in states:
            counts.start_ladder()
        prices, own_prices, above, noises, variances = [0.0], [], [], [], []
        floor, reach = setup.high, 0.0

        def end_segment(number: int) -> None:
            """Note how low a model may be that was compared with a ladder's value until now."""
            nonlocal floor, reach
            state, others = states[number], counts.of_others(number)
            rungs = [
                ladder.rung_for(setup, state, loudest, others)
                for loudest in (self._loudest_class(state.best), self._loudest_with_weights)
            ]
            floor = min(floor, from_units(state.best) - self._reach(rungs[0]))
            reach = max(reach, self._reach(rungs[1]))

        for change in changes:
            number = numbers[change.ladder]
            state, others = states[number], counts.of_others(number)
            end_segment(number)
            release = Release(change.value, change.value, True, 1, change.error_class)
            after = ladder.follow_release(setup, state, release, others)
            rung = ladder.rung_for(setup, state, after.error_class, others)
            own_prices.append(
                _class_price(after.error_class - state.error_class) if ladder.follows_model else 0.0
            )
            prices.append(prices[-1] + own_prices[-1] + self._value_price(state, after, rung))
            above.append(self._error_of(rung))
            noises.append(from_units(rung.release_noise))
            floor = min(floor, change.value - above[-1])
            variances.append(
                setup.n * (largest_standard_error(after.error_class) + _ROUNDING) ** 2
                if ladder.follows_model
                else math.inf
            )
            states[number] = after
            counts.count(number, changed=True)
        for number in range(len(states)):
            end_segment(number)
        return ReplayedChanges(
            prices=tuple(prices),
            own_prices=tuple(own_prices),
            above=tuple(above),
            noises=tuple(noises),
            variances=tuple(variances),
            floor=floor,
            reach=reach,
            cut=ladder.cut,
        )

    def _reach(self, rung: Rung) -> float:
        """Return how far a model that is not released may be below the value, at most."""
        cut = self.values.ladder.cut
        by_step = rung.step + cut * rung.compare_noise
        return max(by_step / UNITS + _ROUNDING, self._error_of(rung))

    def _error_of(self, rung: Rung) -> float:
        """Return how far a released value may be from its risk."""
        return (rung.grid / 2 + self.values.ladder.cut * rung.release_noise) / UNITS + _ROUNDING

    def _loudest_class(self, best: int) -> int:
        """Return the largest class of a model with a lower risk: that of two extreme losses."""
        if not self.values.ladder.follows_model:
            return 0
        setup = self.values.setup
        width = setup.high - setup.low
        share = min(max((best / UNITS - setup.low) / width, 0.0), 0.5)
        return standard_error_class(width * math.sqrt(share * (1 - share) / setup.n) + _ROUNDING)

    @property
    def _loudest_with_weights(self) -> int:
        """Return the largest class of any model, whatever the weights of examples are."""
        setup = self.values.setup
        if not self.values.ladder.follows_model:
            return 0
        return standard_error_class((setup.high - setup.low) / math.sqrt(setup.n) + _ROUNDING)

    def _value_price(
        self, state: GrowingLadderState, after: GrowingLadderState, rung: Rung
    ) -> float:
        """Return the price of a value among all multiples of the grid below the one before.

        Release noise makes each of them likely by a limited chance only, and that much cheaper.
        """
        setup, cut, grid = self.values.setup, self.values.ladder.cut, rung.grid
        lowest, highest = release_range(setup.low, setup.high, grid)
        points = (state.best - 1) // grid - lowest // grid + 1
        if not rung.release_noise:
            return math.log(points)
        inside = math.erf(cut / math.sqrt(2))
        chance = math.erf(min((grid / 2 + 1) / rung.release_noise, cut) / math.sqrt(2)) / inside
        if after.best in {lowest, highest}:  # all values beyond are rounded to it
            chance = (1 + chance) / 2
        return math.log(points) + math.log(min(chance + _LATTICE, 1.0))


def _class_price(difference: int) -> float:
    """Return the price of a change of class: a half for none, then 1/(2 (d+1) (d+2)) each way."""
    distance = abs(difference)
    return math.log(2 * (distance + 1) * (distance + 2)) if distance else math.log(2)


@lru_cache(maxsize=64)
def growing_transcript(ladder: GrowingLadder, setup: Setup) -> GrowingTranscript:
    """Return the possible releases: for each change, a bound on the values that it may take.

    A change from R takes a multiple of the grid at R that lies below R. While R is in the upper
    half, the grid is the same, and there are at most width / grid of them. Below, R / SE(R) is at
    most sqrt(n), and a readable grid is less than ``_COARSEST_RATIO`` times finer than wanted.
    """
    if ladder.follows_model:
        return _transcript_of_classes(ladder, setup)
    top, bottom = to_units(setup.high), to_units(setup.low)
    width = top - bottom
    largest_factor = ladder.growth_factor(_MAX_RUNGS)
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
        min_fall = ladder.grid_units(setup, bottom, changes)
        fallen += min_fall
        if ladder.growth_factor(changes) == largest_factor:  # all others are like this one
            more = min(max((width - fallen) // min_fall + 1, 0), _MAX_RUNGS - len(logs))
            logs += [logs[-1]] * more
            break
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


def _transcript_of_classes(ladder: GrowingLadder, setup: Setup) -> GrowingTranscript:
    """Return the possible releases if classes decide the grid: any class, and any value in units.

    So much is seldom of use; the values of the changes are.
    """
    lowest, highest = to_units(setup.low), to_units(setup.high)
    points = highest - lowest + 2
    largest_price = _class_price(standard_error_class(setup.high - setup.low)) + math.log(points)
    return GrowingTranscript(
        GrowingValues(
            points=points,
            max_changes=_MAX_RUNGS,
            ladder=ladder,
            setup=setup,
            log_points=(largest_price,) * _MAX_RUNGS,
            log_counts=None,
        ),
        ReleaseDeviation(0.0),
        lowest,
        highest,
        1 / UNITS,
        assumptions=(_CUT_NOISE, _OWN_ERRORS),
    )
