"""The parameter-free Ladder (Blum and Hardt 2015)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.mechanisms._mechanism import Mechanism
from ladderboard.mechanisms._step import Seen, Setup, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ladderboard.tape import Draws

__all__ = ["ByExample", "Leader", "ParameterFreeLadder"]


class Leader(NamedTuple):
    """The last release, and the losses of the model it speaks of (None before the first)."""

    best: float
    losses: NDArray[np.float64] | None


@dataclass(frozen=True)
class ByExample(Mechanism):
    """A mechanism that compares a model with the leader example by example."""

    needs: ClassVar[Literal["risk", "losses"]] = "losses"
    state_type: ClassVar[Any] = Leader

    def check(self, setup: Setup) -> None:
        """A standard deviation needs two examples."""
        if setup.n < 2:
            raise InvalidSetting(f"{self.name} needs n of at least 2; got {setup.n}.")

    def begin(self, setup: Setup, draws: Draws) -> Leader:
        """R_0 is the worst risk there is."""
        return Leader(setup.high, None)

    def freeze(self, state: Leader) -> dict[str, Any]:
        """Write the losses as a list; a float survives JSON bit for bit."""
        losses = None if state.losses is None else state.losses.tolist()
        return {"best": state.best, "losses": losses}

    def thaw(self, written: Mapping[str, Any], setup: Setup) -> Leader:
        """Read them back."""
        losses = written["losses"]
        if losses is not None:
            losses = np.array(losses, dtype=np.float64)
            if losses.shape != (setup.n,):
                raise InvalidState(f"The saved state does not hold {setup.n} losses.")
        return Leader(float(written["best"]), losses)


def paired_margin(losses: NDArray[np.float64], leader: NDArray[np.float64] | float) -> float:
    """Return the standard error of the mean difference to the leader."""
    return float(np.std(losses - leader, ddof=1)) / math.sqrt(len(losses))


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
        if seen.risk < state.best - paired_margin(seen.losses, leader):
            value = round(seen.risk * setup.n) / setup.n
            return Step(Leader(value, seen.losses), value, value, value < state.best)
        return Step(state, state.best, None, False)
