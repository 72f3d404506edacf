"""Exact scores: what most leaderboards do today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard.mechanisms._teller import Teller

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany

__all__ = ["Exact"]


@dataclass(frozen=True)
class Exact(Teller):
    """Say every model's risk as it is.

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

    def score(self, risk: float, draws: Draws) -> float:
        """The risk."""
        return risk

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """The risks."""
        return risks
