"""Tellers: mechanisms that say something about every model, and keep the best of it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard.mechanisms._mechanism import Mechanism
from ladderboard.mechanisms._step import Seen, SeenMany, Setup, Step, StepMany

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany

__all__ = ["Best", "Teller"]


class Best(NamedTuple):
    """The lowest score said so far; None before the first."""

    best: float | None


@dataclass(frozen=True)
class Teller(Mechanism):
    """Say a score for every question; the value is the lowest said so far."""

    state_type: ClassVar[Any] = Best

    @abstractmethod
    def score(self, risk: float, draws: Draws) -> float:
        """Return what is said about a model with this risk."""

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """As ``score``, for many questions."""
        rows = list(zip(*(column.tolist() for column in draws), strict=True)) or [()] * len(risks)
        said = [self.score(risk, row) for risk, row in zip(risks.tolist(), rows, strict=True)]
        return np.array(said, dtype=np.float64)

    def begin(self, setup: Setup, draws: Draws) -> Best:
        """Nothing was said yet."""
        return Best(None)

    def advance(self, setup: Setup, state: Best, seen: Seen, draws: Draws) -> Step:
        """Say the score and keep the lowest."""
        score = self.score(seen.risk, draws)
        if state.best is None or score < state.best:
            return Step(Best(score), score, score, True)
        return Step(state, state.best, score, False)

    def advance_many(
        self,
        setup: Setup,
        state: Best,
        seen: SeenMany,
        draws: DrawsMany,
    ) -> StepMany:
        """As ``advance``, for many questions."""
        score = self.score_many(seen.risks, draws)
        before = np.inf if state.best is None else state.best
        value = np.minimum.accumulate(np.concatenate(([before], score)))
        improved = value[1:] < value[:-1]
        last = float(value[-1])
        return StepMany(Best(None if np.isinf(last) else last), value[1:], score, improved)
