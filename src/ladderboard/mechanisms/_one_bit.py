"""One bit: a Ladder that says only whether a model improved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ladderboard.mechanisms._ladder import Ladder, Standing
from ladderboard.mechanisms._step import Seen, SeenMany, Setup, Step, StepMany

if TYPE_CHECKING:
    from ladderboard.tape import Draws, DrawsMany

__all__ = ["OneBit"]


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

    def advance(self, setup: Setup, state: Standing, seen: Seen, draws: Draws) -> Step:
        """As the Ladder, keeping the value back."""
        done = super().advance(setup, state, seen, draws)
        return Step(done.state, None, None, done.improved)

    def advance_many(
        self, setup: Setup, state: Standing, seen: SeenMany, draws: DrawsMany
    ) -> StepMany:
        """As ``advance``, for many questions."""
        done = super().advance_many(setup, state, seen, draws)
        silence = np.full(len(seen.risks), np.nan)
        return StepMany(done.state, silence, silence.copy(), done.improved)

    def value(self, state: Standing) -> float | None:
        """Nothing is told before the end."""
        return None

    def close(self, state: Standing) -> float | None:
        """R, told at the end."""
        return super().value(state)
