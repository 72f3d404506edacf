"""Honest analysts whose models are described by their true risk alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._worlds import TrueRiskWorld

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game


@dataclass(frozen=True)
class SteadyImprovement(Analyst):
    """Ask models whose true risks fall in a straight line, whatever the releases.

    Parameters
    ----------
    first, last
        The true risks of the first model and of the last.

    Examples
    --------
    >>> import ladderboard as lb
    >>> analyst, ladder = SteadyImprovement(), lb.Ladder(step=0.01)
    >>> result = analyst.play_against(ladder, n=10_000, questions=100, seed=1)
    >>> round(result.leaderboard_error, 3)
    0.018
    """

    name: ClassVar[str] = "steady_improvement"

    first: float = 0.5
    last: float = 0.25

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            first=_settings.number("first", self.first, at_least=0, at_most=1),
            last=_settings.number("last", self.last, at_least=0, at_most=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> TrueRiskWorld:
        """Return a world where a model is its true risk."""
        return TrueRiskWorld(n, rng)

    def play(self, game: Game) -> None:
        """Improve a little with each question."""
        last = max(game.questions - 1, 1)
        for index in range(game.questions):
            game.ask(self.first + (self.last - self.first) * index / last)


@dataclass(frozen=True)
class Plateau(Analyst):
    """Ask models that are all equally good and err independently.

    The best of k scores is better than the models are, by about sqrt(2 log k) standard errors: a
    board that shows it has improved by luck alone, without an attack.

    Parameters
    ----------
    risk
        The true risk of every model.

    Examples
    --------
    >>> import ladderboard as lb
    >>> plateau = Plateau()
    >>> for mechanism in (lb.Exact(), lb.Ladder(step=0.01)):
    ...     result = plateau.play_against(mechanism, n=10_000, questions=1_000, seed=1)
    ...     print(round(result.leaderboard_error, 3))
    0.015
    0.01
    """

    name: ClassVar[str] = "plateau"

    risk: float = 0.25

    def __post_init__(self) -> None:
        _settings.set_frozen(self, risk=_settings.number("risk", self.risk, at_least=0, at_most=1))

    def world(self, n: int, rng: np.random.Generator) -> TrueRiskWorld:
        """Return a world where a model is its true risk."""
        return TrueRiskWorld(n, rng)

    def play(self, game: Game) -> None:
        """Ask another model just as good."""
        for _ in range(game.questions):
            game.ask(self.risk)


@dataclass(frozen=True)
class RandomSearch(Analyst):
    """Ask models whose true risks are drawn at random, whatever the releases.

    Improvements are large at first, and each is asked about once. A mechanism that misses one,
    because of a large step or unlucky noise, is wrong until an equally good model is asked.

    Parameters
    ----------
    worst, best
        The true risks are uniform between these.

    Examples
    --------
    >>> import ladderboard as lb
    >>> search = RandomSearch()
    >>> ladder = lb.Ladder(step=0.01)
    >>> round(search.play_against(ladder, n=10_000, questions=1_000, seed=1).leaderboard_error, 3)
    0.011
    """

    name: ClassVar[str] = "random_search"

    worst: float = 0.5
    best: float = 0.25

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            worst=_settings.number("worst", self.worst, at_least=0, at_most=1),
            best=_settings.number("best", self.best, at_least=0, at_most=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> TrueRiskWorld:
        """Return a world where a model is its true risk."""
        return TrueRiskWorld(n, rng)

    def play(self, game: Game) -> None:
        """Try another model."""
        for _ in range(game.questions):
            game.ask(self.best + (self.worst - self.best) * game.rng.random())
