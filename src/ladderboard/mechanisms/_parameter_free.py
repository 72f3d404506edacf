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
    the losses and no setting. Releases are rounded to 1/n.

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

    def advance(self, setup: Setup, state: Leader, seen: Seen, draws: Draws) -> Step:
        """Update if the risk is below R - s/sqrt(n), to the risk rounded to 1/n."""
        assert seen.losses is not None  # noqa: S101 - the session refuses questions without them
        leader = setup.high if state.losses is None else state.losses
        if clearly_below(seen.risk, state.best, seen.losses, leader):
            value = min(round(seen.risk * setup.n) / setup.n, setup.high)
            return Step(Leader(value, seen.losses), value, value, value < state.best)
        return Step(state, state.best, None, False)
