"""The Ladder (Blum and Hardt 2015), its one-bit variant, and the comparison all ladders share.

Every ladder compares as Fig. 1 does, one question or many at a time: a threshold stands until a
model crosses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.mechanisms import _fixed_point
from ladderboard.mechanisms._base import Mechanism
from ladderboard.mechanisms._types import Observation, Observations, Setup, Step, StepMany

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany

_FIRST_STRIDE = 64
_LONGEST_STRIDE = 65_536


class ShakyLadderState(NamedTuple):
    """Where a ladder stands: the best release R, and the noise xi on its threshold."""

    best: Any
    slack: Any


class LadderRun(NamedTuple):
    """Many questions answered: where the ladder stands, R after each, and where R moved."""

    rung: ShakyLadderState
    best: NDArray[Any]
    moved: NDArray[np.bool_]
    improved: NDArray[np.bool_]


@lru_cache(maxsize=1024)
def release_range(low: float, high: float, grid: int) -> tuple[int, int]:
    """Return the lowest and the highest multiple of the grid that a risk can round to."""
    bottom, top = _fixed_point.to_units(low), _fixed_point.to_units(high)
    return _fixed_point.round_to_multiple(bottom, grid), _fixed_point.round_to_multiple(top, grid)


def round_to_grid(setup: Setup, units: Any, grid: int) -> Any:
    """Round to the grid and clip to the multiples a risk can round to; one int or an array."""
    bottom, top = release_range(setup.low, setup.high, grid)
    rounded = _fixed_point.round_to_multiple(units, grid)
    if type(rounded) is int:
        return min(max(rounded, bottom), top)
    return np.clip(rounded, bottom, top)


def run_ladder(
    rung: ShakyLadderState,
    step: Any,
    compared: NDArray[Any],
    released: NDArray[Any],
    slacks: NDArray[Any],
    *,
    forced_down: bool,
) -> LadderRun:
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
    at = _first_index_below(compared, best - step + slack, 0)
    while at < count:
        slack = slacks[at].item()
        told = released[at].item()
        if told < best or not forced_down:
            after[told_until:at] = best
            told_until = at
            moved[at] = True
            improved[at] = told < best
            best = told
        at = _first_index_below(compared, best - step + slack, at + 1)
    after[told_until:] = best
    return LadderRun(ShakyLadderState(best, slack), after, moved, improved)


def _first_index_below(values: NDArray[Any], bound: Any, start: int) -> int:
    """Return the first index from ``start`` on with a value below ``bound``, or the length."""
    stride = _FIRST_STRIDE
    while start < len(values):
        hits = values[start : start + stride] < bound
        first = int(hits.argmax())
        if hits[first]:
            return start + first
        start += stride
        stride = min(2 * stride, _LONGEST_STRIDE)
    return len(values)


class LadderState(NamedTuple):
    """The best release so far, in units."""

    best: int


@dataclass(frozen=True)
class Ladder(Mechanism):
    """Release a model's risk, rounded, when it beats the best so far by a step.

    Parameters
    ----------
    step
        How much lower a risk must be to be told (eta).
    grid
        Releases are the nearest multiples of this; the step itself if left out.

    Notes
    -----
    Blum and Hardt start from R_0 = infinity. A risk is at most 1, so starting from the worst risk
    there is, as the Shaky Ladder does, differs only for a first model within a step of it.

    Examples
    --------
    >>> session = Ladder(step=0.1).start(n=100)
    >>> [session.ask(risk=risk).value for risk in (0.52, 0.43, 0.38)]
    [0.5, 0.5, 0.4]

    References
    ----------
    Blum, Hardt, "The Ladder: A reliable leaderboard for machine learning competitions", 2015.
    """

    name: ClassVar[str] = "ladder"
    state_type: ClassVar[Any] = LadderState

    step: float
    grid: float | None = None

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            step=_fixed_point.read_magnitude("step", self.step, above_zero=self.grid is None),
            grid=None
            if self.grid is None
            else _fixed_point.read_magnitude("grid", self.grid, above_zero=True),
        )

    @cached_property
    def _units(self) -> tuple[int, int]:
        grid = self.step if self.grid is None else self.grid
        return _fixed_point.to_units(self.step), _fixed_point.to_units(grid)

    def begin(self, setup: Setup, draws: Draws) -> LadderState:
        """R_0 is the worst risk there is."""
        return LadderState(_fixed_point.to_units(setup.high))

    def advance(
        self, setup: Setup, state: LadderState, observation: Observation, draws: Draws
    ) -> Step:
        """Update if the risk is below R - step, to the risk rounded to the grid."""
        step, grid = self._units
        risk = _fixed_point.to_units(observation.risk)
        told = round_to_grid(setup, risk, grid)
        if risk < state.best - step and told < state.best:
            value = _fixed_point.from_units(told)
            return Step(LadderState(told), value, value, True)
        return Step(state, _fixed_point.from_units(state.best), None, False)

    def advance_many(
        self,
        setup: Setup,
        state: LadderState,
        observations: Observations,
        draws: DrawsMany,
    ) -> StepMany:
        """As ``advance``, for many questions."""
        step, grid = self._units
        risks = _fixed_point.array_to_units(observations.risks)
        done = run_ladder(
            ShakyLadderState(state.best, 0),
            step,
            risks,
            round_to_grid(setup, risks, grid),
            np.zeros_like(risks),
            forced_down=True,
        )
        value = _fixed_point.array_from_units(done.best)
        score = np.where(done.moved, value, np.nan)
        return StepMany(LadderState(done.rung.best), value, score, done.improved)

    def value(self, state: LadderState) -> float | None:
        """R as it stands."""
        return _fixed_point.from_units(state.best)


@dataclass(frozen=True)
class OneBit(Ladder):
    """Say only ``improved``; the value is told when the session is closed.

    Examples
    --------
    >>> session = OneBit(step=0.1).start(n=100)
    >>> session.ask(risk=0.52)
    Release(value=None, score=None, improved=True, question=1)
    >>> session.close()
    0.5
    """

    name: ClassVar[str] = "one_bit"

    def advance(
        self, setup: Setup, state: LadderState, observation: Observation, draws: Draws
    ) -> Step:
        """As the Ladder, keeping the value back."""
        done = super().advance(setup, state, observation, draws)
        return Step(done.state, None, None, done.improved)

    def advance_many(
        self, setup: Setup, state: LadderState, observations: Observations, draws: DrawsMany
    ) -> StepMany:
        """As ``advance``, for many questions."""
        done = super().advance_many(setup, state, observations, draws)
        silence = np.full(len(observations.risks), np.nan)
        return StepMany(done.state, silence, silence.copy(), done.improved)

    def value(self, state: LadderState) -> float | None:
        """Nothing is told before the end."""
        return None

    def close(self, state: LadderState) -> float | None:
        """R, told at the end."""
        return super().value(state)
