"""Thresholdout (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ladderboard import _settings
from ladderboard.errors import BudgetSpent
from ladderboard.mechanisms import _fixed_point
from ladderboard.mechanisms._base import Mechanism, smallest_gain
from ladderboard.mechanisms._session import Observation, Observations, Setup, Step, StepMany
from ladderboard.tape import Laplace

if TYPE_CHECKING:
    from ladderboard.tape import Draws, DrawsMany, Law


class ThresholdoutState(NamedTuple):
    """The lowest answer so far, the noise on the threshold, and the holdout answers used."""

    best: float | None
    slack: float
    used: int


@dataclass(frozen=True)
class Thresholdout(Mechanism):
    """Return the training risk while it agrees with the holdout's, else the holdout's plus noise.

    Parameters
    ----------
    threshold
        How far training and holdout may differ before the holdout answers (T).
    noise
        Scale of the Laplace noise (sigma): sigma on an answer, 2 sigma on the threshold, 4 sigma
        on the comparison.
    budget
        How often the holdout may answer (B); no limit if left out.

    Examples
    --------
    >>> session = Thresholdout(threshold=0.04, noise=0).start(n=1000)
    >>> session.ask(risk=0.30, training=0.28).score  # they agree: the training risk comes back
    0.28
    >>> session.ask(risk=0.30, training=0.10).score
    0.3

    References
    ----------
    Dwork et al., "Generalization in adaptive data analysis and holdout reuse", NIPS 2015, Fig. 1.
    """

    name: ClassVar[str] = "thresholdout"
    needs_training: ClassVar[bool] = True
    scores_every_question: ClassVar[bool] = True
    altered_how: ClassVar[str] = "with noise"
    uncounted: ClassVar[str] = (
        "Thresholdout releases unrounded scores, so its transcripts cannot be counted."
    )
    state_type: ClassVar[Any] = ThresholdoutState

    threshold: float = 0.04
    noise: float = 0.01
    budget: int | None = None

    def __post_init__(self) -> None:
        budget = self.budget
        _settings.set_frozen(
            self,
            threshold=_settings.number("threshold", self.threshold, at_least=0),
            noise=_settings.number(
                "noise", self.noise, at_least=0, at_most=_fixed_point.MAX_MAGNITUDE
            ),
            budget=None if budget is None else _settings.integer("budget", budget, at_least=1),
        )

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """Slots: eta on the comparison, xi on the answer, gamma on the next threshold."""
        return Laplace(4 * self.noise), Laplace(self.noise), Laplace(2 * self.noise)

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
        """The gain that shows whatever the training risk is; one that it shares shows sooner."""
        return smallest_gain(
            power,
            step=self.threshold,
            compare=4 * self.noise,
            standing=2 * self.noise,
            release=self.noise,
            law="laplace",
        )

    def release_error(self, n: int) -> float:
        """The noise of an answer; a training risk may differ by about the threshold."""
        return math.hypot(math.sqrt(2) * self.noise, self.threshold / math.sqrt(3))

    def begin(self, setup: Setup, draws: Draws) -> ThresholdoutState:
        """Start from a threshold with its first noise."""
        return ThresholdoutState(None, draws[2], 0)

    def advance_many(
        self, setup: Setup, state: ThresholdoutState, observations: Observations, draws: DrawsMany
    ) -> StepMany:
        """As ``advance``; raises unless the budget is certain to last for all questions."""
        count = len(observations.risks)
        if self.budget is not None and state.used + count > self.budget:
            raise BudgetSpent(
                f"{count} questions could need the holdout more than the "
                f"{self.budget - state.used} times that are left; ask one by one."
            )
        return super().advance_many(setup, state, observations, draws)

    def advance(
        self, setup: Setup, state: ThresholdoutState, observation: Observation, draws: Draws
    ) -> Step:
        """Fig. 1 of Dwork et al., step 2."""
        if self.budget is not None and state.used >= self.budget:
            raise BudgetSpent(
                f"The budget of {self.budget} holdout answers is used up; "
                "start again on fresh data."
            )
        training = observation.require_training()
        on_compare, on_answer, next_slack = draws
        best, slack, used = state
        if abs(observation.risk - training) > self.threshold + slack + on_compare:
            score, slack, used = observation.risk + on_answer, next_slack, used + 1
        else:
            score = training
        improved = best is None or score < best
        value = score if best is None or improved else best
        return Step(ThresholdoutState(value, slack, used), value, score, improved)
