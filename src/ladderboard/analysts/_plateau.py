"""A plateau: an honest analyst who gets no better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._draws import Draws

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game

__all__ = ["Plateau"]


@dataclass(frozen=True)
class Plateau(Analyst):
    """Ask models that are all equally good and err independently.

    The best of k scores is better than the models are, by about sqrt(2 log k) standard errors. A
    board that tells it has climbed by luck alone, without anybody wishing it to.

    Parameters
    ----------
    risk
        The true risk of every model.

    Examples
    --------
    >>> import ladderboard as lb
    >>> plateau = Plateau()
    >>> round(plateau.meet(lb.Exact(), n=10_000, questions=1_000, seed=1).leaderboard_error, 3)
    0.015
    >>> ladder = lb.Ladder(step=0.01)
    >>> round(plateau.meet(ladder, n=10_000, questions=1_000, seed=1).leaderboard_error, 3)
    0.01
    """

    name: ClassVar[str] = "plateau"

    risk: float = 0.25

    def __post_init__(self) -> None:
        _settings.settle(self, risk=_settings.number("risk", self.risk, at_least=0, at_most=1))

    def world(self, n: int, rng: np.random.Generator) -> Draws:
        """Return a world where a model is its true risk."""
        return Draws(n, rng)

    def play(self, game: Game) -> None:
        """Ask another model just as good."""
        for _ in range(game.questions):
            game.ask(self.risk)
