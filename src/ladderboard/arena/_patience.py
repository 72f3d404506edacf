"""Patience: how often a pair plays that is known to be slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism

__all__ = ["FULL", "QUICK", "Patience", "seconds_of"]

# Seconds a question, as measured on one core at n = 10,000; those not named are fast.
_ANALYSTS = {
    "hyperparameter_search": 1.2e-2,
    "log_loss": 6e-4,
    "one_bit": 4e-4,
    "multiclass": 3e-4,
    "abstaining": 3e-4,
    "sybil": 3e-4,
}
_FAST = 1e-4
# Mechanisms that look at every loss: seconds an example and question.
_BY_EXAMPLE = 2e-8


def seconds_of(mechanism: Mechanism, analyst: Analyst, n: int, k: int) -> float:
    """Return about how long one game takes."""
    question = _ANALYSTS.get(getattr(analyst, "name", ""), _FAST)
    return k * (question + (_BY_EXAMPLE * n if mechanism.needs == "losses" else 0.0))


@dataclass(frozen=True)
class Patience:
    """From how many seconds a game on fewer are played, a single one, or none."""

    few: float
    one: float
    none: float

    def games(self, usual: int, seconds: float) -> int:
        """Return how often to play a game that takes so long."""
        if seconds >= self.none:
            return 0
        if seconds >= self.one:
            return 1
        return min(usual, 3) if seconds >= self.few else usual


FULL = Patience(few=2, one=10, none=60)
QUICK = Patience(few=0.2, one=0.2, none=2)
