"""Mechanisms that publish a score for every model: exact, rounded or noisy."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.mechanisms import _fixed_point
from ladderboard.mechanisms._base import NEEDS_ZERO_ONE, Mechanism, smallest_gain
from ladderboard.mechanisms._session import (
    ComparisonSettings,
    Observation,
    Observations,
    Setup,
    Step,
    StepMany,
)
from ladderboard.mechanisms._transcript import ZERO_ONE, ReleaseDeviation, ReleaseValues, Transcript
from ladderboard.tape import DiscreteGaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany, Law

_MAX_DIGITS = 12


class BestScoreState(NamedTuple):
    """The lowest score released so far; None before the first."""

    best: float | None


@dataclass(frozen=True)
class ScoreMechanism(Mechanism):
    """A mechanism that releases a score for every question; the value is the lowest so far."""

    scores_every_question: ClassVar[bool] = True
    state_type: ClassVar[Any] = BestScoreState

    @abstractmethod
    def score(self, risk: float, draws: Draws) -> float:
        """Return the score to release for a model with this risk."""

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """As ``score``, for many questions."""
        rows = list(zip(*(column.tolist() for column in draws), strict=True)) or [()] * len(risks)
        scores = [self.score(risk, row) for risk, row in zip(risks.tolist(), rows, strict=True)]
        return np.array(scores, dtype=np.float64)

    def explain(self, n: int) -> str:
        """Return how the score of every question is altered, if it is."""
        return f"Releases every score {self.altered_how or 'exactly'}"

    def begin(self, setup: Setup, draws: Draws) -> BestScoreState:
        """Return the state before the first score."""
        return BestScoreState(None)

    def advance(
        self, setup: Setup, state: BestScoreState, observation: Observation, draws: Draws
    ) -> Step:
        """Release the score and keep the lowest."""
        score = self.score(observation.risk, draws)
        if state.best is None or score < state.best:
            return Step(BestScoreState(score), score, score, True)
        return Step(state, state.best, score, False)

    def advance_many(
        self,
        setup: Setup,
        state: BestScoreState,
        observations: Observations,
        draws: DrawsMany,
    ) -> StepMany:
        """As ``advance``, for many questions."""
        score = self.score_many(observations.risks, draws)
        before = np.inf if state.best is None else state.best
        value = np.minimum.accumulate(np.concatenate(([before], score)))
        improved = value[1:] < value[:-1]
        last = float(value[-1])
        return StepMany(
            BestScoreState(None if np.isinf(last) else last), value[1:], score, improved
        )


@dataclass(frozen=True)
class Exact(ScoreMechanism):
    """Release every model's exact risk.

    Examples
    --------
    >>> session = Exact().start(n=3)
    >>> session.ask(losses=[1, 0, 0]).score
    0.3333333333333333
    >>> session.ask(risk=0.5)
    Release(value=0.3333333333333333, score=0.5, improved=False, question=2)
    """

    name: ClassVar[str] = "exact"
    zero_one_only: ClassVar[bool] = True
    uncounted: ClassVar[str] = f"Exact {NEEDS_ZERO_ONE}"

    def attacker_gain(self, *, n: int, questions: int) -> float:
        """That of a vote of random guesses on all labels, each weighted by its luck.

        The sum of weighted votes for the label of an example has mean sqrt(questions / n) in units
        of its standard deviation, so the vote is right with probability Phi of that.
        """
        return math.erf(math.sqrt(questions / (2 * n))) / 2

    def transcript(self, setup: Setup) -> Transcript | None:
        """A multiple of 1/n for every question."""
        if (setup.low, setup.high) != (0, 1):
            return None
        return Transcript(
            ReleaseValues(setup.n + 1, setup.n + 1),
            ReleaseDeviation(0.0),
            0,
            setup.n,
            1 / setup.n,
            every_question=True,
            assumptions=(ZERO_ONE,),
        )

    def score(self, risk: float, draws: Draws) -> float:
        """The risk."""
        return risk

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """The risks."""
        return risks


@dataclass(frozen=True)
class Rounded(ScoreMechanism):
    """Release every model's risk, rounded to ``digits`` decimals.

    Examples
    --------
    >>> Rounded(digits=2).start(n=1000).ask(risk=0.3141).score
    0.31
    """

    name: ClassVar[str] = "rounded"
    altered_how: ClassVar[str] = "rounded"

    digits: int

    def __post_init__(self) -> None:
        digits = _settings.integer("digits", self.digits, at_least=0, at_most=_MAX_DIGITS)
        _settings.set_frozen(self, digits=digits)

    @property
    def grid(self) -> float:
        """Scores are multiples of this."""
        return _fixed_point.from_units(self._grid)

    @property
    def _grid(self) -> int:
        return int(10 ** (_MAX_DIGITS - self.digits))

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
        """Half a grid cell."""
        return smallest_gain(power, grid=self.grid)

    def comparison(self, n: int) -> ComparisonSettings:
        """Scores are multiples of the grid."""
        return ComparisonSettings(grid=self.grid, compares_released=True)

    def transcript(self, setup: Setup) -> Transcript:
        """A multiple of the grid for every question."""
        bottom, top = _fixed_point.release_range(setup.low, setup.high, self._grid)
        points = (top - bottom) // self._grid + 1
        return Transcript(
            ReleaseValues(points, points),
            ReleaseDeviation(0.0, self.grid),
            bottom // self._grid,
            top // self._grid,
            self.grid,
            every_question=True,
        )

    def score(self, risk: float, draws: Draws) -> float:
        """The risk, rounded."""
        return _fixed_point.from_units(
            _fixed_point.round_to_multiple(_fixed_point.to_units(risk), self._grid)
        )

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """The risks, rounded."""
        return _fixed_point.array_from_units(
            _fixed_point.round_to_multiple(_fixed_point.array_to_units(risks), self._grid)
        )


@dataclass(frozen=True)
class Noisy(ScoreMechanism):
    """Release every model's risk plus Gaussian noise with standard deviation ``sd``.

    The same model asked again gets other noise, so the mean of many answers reveals the risk.

    Examples
    --------
    >>> import ladderboard as lb
    >>> lb.Noisy(sd=0.01).start(n=1000, tape=lb.Tape(seed=1)).ask(risk=0.3).score
    0.286314979454
    """

    name: ClassVar[str] = "noisy"
    altered_how: ClassVar[str] = "with noise"
    uncounted: ClassVar[str] = (
        "Noisy releases unrounded scores, so its transcripts cannot be counted."
    )

    sd: float

    def __post_init__(self) -> None:
        _settings.set_frozen(self, sd=_fixed_point.read_magnitude("sd", self.sd))

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """One slot: the noise on the score."""
        return (DiscreteGaussian(_fixed_point.to_units(self.sd)),)

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
        """A quantile of the noise: ``released`` is the lowest noisy score so far."""
        return smallest_gain(power, release=self.sd)

    def comparison(self, n: int) -> ComparisonSettings:
        """Scores have noise."""
        return ComparisonSettings(release_noise=self.sd, compares_released=True)

    def score(self, risk: float, draws: Draws) -> float:
        """The risk plus noise."""
        return _fixed_point.from_units(_fixed_point.to_units(risk) + draws[0])

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """The risks plus noise."""
        return _fixed_point.array_from_units(_fixed_point.array_to_units(risks) + draws[0])
