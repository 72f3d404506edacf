"""The Ladder (Blum and Hardt 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.mechanisms import _fixed
from ladderboard.mechanisms._climb import Rung, climb_many, on_grid
from ladderboard.mechanisms._mechanism import Mechanism
from ladderboard.mechanisms._step import Seen, SeenMany, Setup, Step, StepMany

if TYPE_CHECKING:
    from ladderboard.tape import Draws, DrawsMany

__all__ = ["Ladder", "Standing"]


class Standing(NamedTuple):
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
    state_type: ClassVar[Any] = Standing

    step: float
    grid: float | None = None

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            step=_fixed.read_size("step", self.step, above_zero=self.grid is None),
            grid=None
            if self.grid is None
            else _fixed.read_size("grid", self.grid, above_zero=True),
        )

    @cached_property
    def _units(self) -> tuple[int, int]:
        grid = self.step if self.grid is None else self.grid
        return _fixed.to_units(self.step), _fixed.to_units(grid)

    def begin(self, setup: Setup, draws: Draws) -> Standing:
        """R_0 is the worst risk there is."""
        return Standing(_fixed.to_units(setup.high))

    def advance(self, setup: Setup, state: Standing, seen: Seen, draws: Draws) -> Step:
        """Update if the risk is below R - step, to the risk rounded to the grid."""
        step, grid = self._units
        risk = _fixed.to_units(seen.risk)
        told = on_grid(setup, risk, grid)
        if risk < state.best - step and told < state.best:
            value = _fixed.from_units(told)
            return Step(Standing(told), value, value, True)
        return Step(state, _fixed.from_units(state.best), None, False)

    def advance_many(
        self,
        setup: Setup,
        state: Standing,
        seen: SeenMany,
        draws: DrawsMany,
    ) -> StepMany:
        """As ``advance``, for many questions."""
        step, grid = self._units
        risks = _fixed.many_to_units(seen.risks)
        done = climb_many(
            Rung(state.best, 0),
            step,
            risks,
            on_grid(setup, risks, grid),
            np.zeros_like(risks),
            forced_down=True,
        )
        value = _fixed.many_from_units(done.best)
        score = np.where(done.moved, value, np.nan)
        return StepMany(Standing(done.rung.best), value, score, done.improved)

    def value(self, state: Standing) -> float | None:
        """R as it stands."""
        return _fixed.from_units(state.best)
