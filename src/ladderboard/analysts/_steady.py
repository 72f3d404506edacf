"""Steady improvement: an honest analyst who gets better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._draws import Draws

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game

__all__ = ["SteadyImprovement"]


@dataclass(frozen=True)
class SteadyImprovement(Analyst):
    """Ask models whose true risks fall in a straight line, whatever is said of them.

    Parameters
    ----------
    first, last
        The true risks of the first model and of the last.

    Examples
    --------
    >>> import ladderboard as lb
    >>> score = SteadyImprovement().meet(lb.Ladder(step=0.01), n=10_000, questions=100, seed=1)
    >>> round(score.leaderboard_error, 3)
    0.018
    """

    name: ClassVar[str] = "steady_improvement"

    first: float = 0.5
    last: float = 0.25

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            first=_settings.number("first", self.first, at_least=0, at_most=1),
            last=_settings.number("last", self.last, at_least=0, at_most=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> Draws:
        """Return a world where a model is its true risk."""
        return Draws(n, rng)

    def play(self, game: Game) -> None:
        """Improve a little with each question."""
        last = max(game.questions - 1, 1)
        for at in range(game.questions):
            game.ask(self.first + (self.last - self.first) * at / last)
