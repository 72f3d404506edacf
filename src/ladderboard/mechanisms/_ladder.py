"""The Ladder (Blum and Hardt 2015), its one-bit variant, and the comparison all ladders share.

Every ladder compares as Fig. 1 does, one question or many at a time: the threshold is constant
until a model crosses it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.mechanisms import _fixed_point
from ladderboard.mechanisms._base import Mechanism, smallest_gain
from ladderboard.mechanisms._session import (
    ComparisonSettings,
    Observation,
    Observations,
    Setup,
    Step,
    StepMany,
)
from ladderboard.mechanisms._transcript import HiddenValues, Transcript, ladder_transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany

_FIRST_STRIDE = 64
_LONGEST_STRIDE = 65_536


class ShakyLadderState(NamedTuple):
    """The best release R, and the noise xi on the threshold."""

    best: Any
    slack: Any


class LadderRun(NamedTuple):
    """The result of many questions: the last state, R after each, and where R changed."""

    state: ShakyLadderState
    best: NDArray[Any]
    moved: NDArray[np.bool_]
    improved: NDArray[np.bool_]


def run_ladder(
    state: ShakyLadderState,
    step: Any,
    compared: NDArray[Any],
    released: NDArray[Any],
    slacks: NDArray[Any],
    *,
    forced_down: bool,
) -> LadderRun:
    """Answer many questions: a model with ``compared < R - step + xi`` crosses and is released.

    ``compared`` is R_S(f_t) + xi_t, ``released`` the value to release at a crossing, ``slacks`` the
    xi''_t. With ``forced_down`` a crossing that would not lower R leaves it unchanged. Between two
    crossings the threshold is constant, so the next crossing is searched in growing strides: a few
    operations per question, and some more per crossing.
    """
    best, slack = state
    count = len(compared)
    values = np.empty(count, dtype=released.dtype)
    moved = np.zeros(count, dtype=np.bool_)
    improved = np.zeros(count, dtype=np.bool_)
    filled = 0
    index = _first_index_below(compared, best - step + slack, 0)
    while index < count:
        slack = slacks[index].item()
        value = released[index].item()
        if value < best or not forced_down:
            values[filled:index] = best
            filled = index
            moved[index] = True
            improved[index] = value < best
            best = value
        index = _first_index_below(compared, best - step + slack, index + 1)
    values[filled:] = best
    return LadderRun(ShakyLadderState(best, slack), values, moved, improved)


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
    """The state of a Ladder: the best release so far, in units."""

    best: int


@dataclass(frozen=True)
class Ladder(Mechanism):
    """Release a model's risk, rounded, when it beats the best so far by a step.

    Parameters
    ----------
    step
        How much lower a risk must be to be released (eta).
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
    altered_how: ClassVar[str] = "rounded"
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

    @property
    def spacing(self) -> float:
        """The distance between two releases: the grid, or the step if there is none."""
        return self.step if self.grid is None else self.grid

    @cached_property
    def step_and_grid_units(self) -> tuple[int, int]:
        """Step and grid as integers in units of 1e-12."""
        return _fixed_point.to_units(self.step), _fixed_point.to_units(self.spacing)

    def smallest_visible_gain(
        self,
        *,
        n: int,
        released: float = 0.1,
        changes: int = 3,
        others: int = 0,
        standard_error: float | None = None,
        power: float = 0.95,
    ) -> float:
        """The step, or half a grid cell if that is more.

        >>> Ladder(step=0.01).smallest_visible_gain(n=10_000)
        0.01
        """
        return smallest_gain(power, step=self.step, grid=self.spacing)

    def comparison(self, n: int) -> ComparisonSettings:
        """Step and grid."""
        return ComparisonSettings(step=self.step, grid=self.spacing)

    def transcript(self, setup: Setup) -> Transcript:
        """Falling multiples of the grid."""
        return ladder_transcript(*self.step_and_grid_units, setup)

    def begin(self, setup: Setup, draws: Draws) -> LadderState:
        """R_0 is the worst risk there is."""
        return LadderState(_fixed_point.to_units(setup.high))

    def advance(
        self, setup: Setup, state: LadderState, observation: Observation, draws: Draws
    ) -> Step:
        """Update if the risk is below R - step, to the risk rounded to the grid."""
        step, grid = self.step_and_grid_units
        risk = _fixed_point.to_units(observation.risk)
        value_units = _fixed_point.round_to_grid(setup, risk, grid)
        if risk < state.best - step and value_units < state.best:
            value = _fixed_point.from_units(value_units)
            return Step(LadderState(value_units), value, value, True)
        return Step(state, _fixed_point.from_units(state.best), None, False)

    def advance_many(
        self,
        setup: Setup,
        state: LadderState,
        observations: Observations,
        draws: DrawsMany,
    ) -> StepMany:
        """As ``advance``, for many questions."""
        step, grid = self.step_and_grid_units
        risks = _fixed_point.array_to_units(observations.risks)
        run = run_ladder(
            ShakyLadderState(state.best, 0),
            step,
            risks,
            _fixed_point.round_to_grid(setup, risks, grid),
            np.zeros_like(risks),
            forced_down=True,
        )
        value = _fixed_point.array_from_units(run.best)
        score = np.where(run.moved, value, np.nan)
        return StepMany(LadderState(run.state.best), value, score, run.improved)

    def value(self, state: LadderState) -> float | None:
        """Return the current R."""
        return _fixed_point.from_units(state.best)


@dataclass(frozen=True)
class OneBit(Ladder):
    """Release only ``improved``; the value is released when the session is closed.

    Examples
    --------
    >>> session = OneBit(step=0.1).start(n=100)
    >>> session.ask(risk=0.52)
    Release(value=None, score=None, improved=True, question=1)
    >>> session.close()
    0.5
    """

    name: ClassVar[str] = "one_bit"
    hides_value: ClassVar[bool] = True

    def transcript(self, setup: Setup) -> Transcript:
        """As the Ladder's, without the values."""
        ladder = super().transcript(setup)
        values = ladder.values
        return replace(
            ladder,
            values=HiddenValues(values.points, values.max_changes, values.drop),
            assumptions=("The value is released only after the last question.",),
        )

    def advance(
        self, setup: Setup, state: LadderState, observation: Observation, draws: Draws
    ) -> Step:
        """As the Ladder, without releasing the value."""
        transition = super().advance(setup, state, observation, draws)
        return Step(transition.state, None, None, transition.improved)

    def advance_many(
        self, setup: Setup, state: LadderState, observations: Observations, draws: DrawsMany
    ) -> StepMany:
        """As ``advance``, for many questions."""
        run = super().advance_many(setup, state, observations, draws)
        no_values = np.full(len(observations.risks), np.nan)
        return StepMany(run.state, no_values, no_values.copy(), run.improved)

    def value(self, state: LadderState) -> float | None:
        """Return None: no value is released before the end."""
        return None

    def close(self, state: LadderState) -> float | None:
        """Return R, released at the end."""
        return super().value(state)
