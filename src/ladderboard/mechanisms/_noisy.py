"""Noisy scores: every model's risk, blurred."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.mechanisms import _fixed
from ladderboard.mechanisms._teller import Teller
from ladderboard.tape import DiscreteGaussian

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany, Law

__all__ = ["Noisy"]


@dataclass(frozen=True)
class Noisy(Teller):
    """Say every model's risk plus Gaussian noise of this standard deviation (on the risk).

    The same model asked again gets other noise, so the mean of many answers tells the risk.

    Examples
    --------
    >>> import ladderboard as lb
    >>> lb.Noisy(sd=0.01).start(n=1000, tape=lb.Tape(seed=1)).ask(risk=0.3).score
    0.286314979454
    """

    name: ClassVar[str] = "noisy"

    sd: float

    def __post_init__(self) -> None:
        _settings.settle(self, sd=_fixed.read_size("sd", self.sd))

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """One slot: the noise on the score."""
        return (DiscreteGaussian(_fixed.to_units(self.sd)),)

    def score(self, risk: float, draws: Draws) -> float:
        """The risk plus noise."""
        return _fixed.from_units(_fixed.to_units(risk) + draws[0])

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """The risks plus noise."""
        return _fixed.many_from_units(_fixed.many_to_units(risks) + draws[0])
