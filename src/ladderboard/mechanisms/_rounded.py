"""Rounded scores: what careful leaderboards do today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.mechanisms import _fixed
from ladderboard.mechanisms._teller import Teller

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany

__all__ = ["Rounded"]

_MOST_DIGITS = 12


@dataclass(frozen=True)
class Rounded(Teller):
    """Say every model's risk to so many digits after the point.

    Examples
    --------
    >>> Rounded(digits=2).start(n=1000).ask(risk=0.3141).score
    0.31
    """

    name: ClassVar[str] = "rounded"

    digits: int

    def __post_init__(self) -> None:
        digits = _settings.whole("digits", self.digits, at_least=0, at_most=_MOST_DIGITS)
        _settings.settle(self, digits=digits)

    @property
    def grid(self) -> float:
        """Scores are multiples of this."""
        return _fixed.from_units(self._grid)

    @property
    def _grid(self) -> int:
        return int(10 ** (_MOST_DIGITS - self.digits))

    def score(self, risk: float, draws: Draws) -> float:
        """The risk, rounded."""
        return _fixed.from_units(_fixed.nearest(_fixed.to_units(risk), self._grid))

    def score_many(self, risks: NDArray[np.float64], draws: DrawsMany) -> NDArray[np.float64]:
        """The risks, rounded."""
        return _fixed.many_from_units(_fixed.nearest(_fixed.many_to_units(risks), self._grid))
