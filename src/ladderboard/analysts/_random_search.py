"""Random search: an honest analyst whose good models come when they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._draws import Draws

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game

__all__ = ["RandomSearch"]


@dataclass(frozen=True)
class RandomSearch(Analyst):
    """Ask models whose true risks are drawn at random, whatever is said of them.

    Records come in leaps, large ones first, and a record is asked about once. A mechanism that
    overlooks it, because its step is long or its noise unkind, is wrong until as good a model
    comes along again.

    Parameters
    ----------
    worst, best
        The true risks lie evenly between these.

    Examples
    --------
    >>> import ladderboard as lb
    >>> search = RandomSearch()
    >>> ladder = lb.Ladder(step=0.01)
    >>> round(search.meet(ladder, n=10_000, questions=1_000, seed=1).leaderboard_error, 3)
    0.011
    """

    name: ClassVar[str] = "random_search"

    worst: float = 0.5
    best: float = 0.25

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            worst=_settings.number("worst", self.worst, at_least=0, at_most=1),
            best=_settings.number("best", self.best, at_least=0, at_most=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> Draws:
        """Return a world where a model is its true risk."""
        return Draws(n, rng)

    def play(self, game: Game) -> None:
        """Try another model."""
        for _ in range(game.questions):
            game.ask(self.best + (self.worst - self.best) * game.rng.random())
