"""What goes into a step, and what comes out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.mechanisms import _fixed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DAMAGED", "Seen", "SeenMany", "Setup", "Step", "StepMany", "risk_of"]

DAMAGED = "The saved state is damaged; give back what session.state returned."


class Setup(NamedTuple):
    """What is fixed for a whole session: the number of examples and the range of the risk."""

    n: int
    low: float
    high: float


class Seen(NamedTuple):
    """What a mechanism may look at for one question."""

    risk: float
    losses: NDArray[np.float64] | None
    training: float | None


def risk_of(setup: Setup, losses: NDArray[np.float64]) -> float:
    """Return the risk of a model with these losses, one for each example."""
    return min(max(_fixed.mean(losses), setup.low), setup.high)


class SeenMany(NamedTuple):
    """What a mechanism may look at for many questions that were chosen beforehand."""

    risks: NDArray[np.float64]
    training: NDArray[np.float64] | None


class Step(NamedTuple):
    """What a question leads to: the next state, and what is said."""

    state: Any
    value: float | None
    score: float | None
    improved: bool


class StepMany(NamedTuple):
    """What many questions lead to: the last state, and what is said after each (None as NaN)."""

    state: Any
    value: NDArray[np.float64]
    score: NDArray[np.float64]
    improved: NDArray[np.bool_]
