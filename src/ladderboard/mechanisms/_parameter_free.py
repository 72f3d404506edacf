"""The parameter-free Ladder (Blum and Hardt 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard.mechanisms._by_example import ByExample, Leader, clearly_below
from ladderboard.mechanisms._step import Seen, Setup, Step

if TYPE_CHECKING:
    from ladderboard.tape import Draws

__all__ = ["ParameterFreeLadder"]


@dataclass(frozen=True)
class ParameterFreeLadder(ByExample):
    """Release a model's risk when it beats the leader's by its standard error.

    The step is the standard error of the paired difference to the leader's losses, so it needs
    the losses and no setting. Releases are rounded to 1/n, and a model whose rounded risk is not
    below the leader's changes nothing.

    Examples
    --------
    >>> session = ParameterFreeLadder().start(n=4)
    >>> session.ask(losses=[1, 1, 0, 0]).value
    0.5
    >>> session.ask(losses=[1, 0, 0, 0]).value  # 0.25 is not below 0.5 - 0.25
    0.5
    >>> session.ask(losses=[0, 0, 0, 0]).value
    0.0

    References
    ----------
    Blum, Hardt, "The Ladder: A reliable leaderboard for machine learning competitions", 2015.
    """

    name: ClassVar[str] = "parameter_free_ladder"
    zero_one_only: ClassVar[bool] = True

    def advance(self, setup: Setup, state: Leader, seen: Seen, draws: Draws) -> Step:
        """Update if the risk is below R - s/sqrt(n) and, rounded to 1/n, below R."""
        assert seen.losses is not None  # noqa: S101 - the session refuses questions without them
        leader = setup.high if state.losses is None else state.losses
        value = min(round(seen.risk * setup.n) / setup.n, setup.high)
        # With losses other than 0 and 1 a model can be clearly below and round to the same value.
        # A score would then tell of a crossing that nobody counts.
        if clearly_below(seen.risk, state.best, seen.losses, leader) and value < state.best:
            return Step(Leader(value, seen.losses), value, value, True)
        return Step(state, state.best, None, False)
