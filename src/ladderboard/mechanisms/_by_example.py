"""Mechanisms that compare a model with the leader example by example."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.mechanisms._fixed import UNITS
from ladderboard.mechanisms._mechanism import Mechanism, check_field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ladderboard.mechanisms._step import Setup
    from ladderboard.tape import Draws

__all__ = ["ByExample", "Leader", "clearly_below"]


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

    def thaw(self, written: Mapping[str, Any], setup: Setup, fresh: Leader) -> Leader:
        """Read them back."""
        best, losses = written["best"], written["losses"]
        if losses is not None:
            losses = np.array(losses, dtype=np.float64)
            if losses.shape != (setup.n,) or not np.isfinite(losses).all():
                raise InvalidState(f"The saved state does not hold {setup.n} losses.")
        check_field(best, fresh.best)
        return Leader(best, losses)


def clearly_below(
    risk: float, best: float, losses: NDArray[np.float64], leader: NDArray[np.float64] | float
) -> bool:
    """Return whether the risk is below the best by more than the standard error of the difference.

    A gain of exactly one standard error is a tie, and common: one more example right is a gain of
    1/n, and so is its standard error. It must be exceeded by a unit of 1e-12, so that rounding,
    which is a thousand times smaller, does not decide.
    """
    margin = float(np.std(losses - leader, ddof=1)) / math.sqrt(len(losses))
    return best - risk > margin + 1 / UNITS
