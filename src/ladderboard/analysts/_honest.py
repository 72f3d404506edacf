"""Honest analysts whose models are described by their true risk alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._worlds import TrueRiskWorld

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game


@dataclass(frozen=True)
class HonestAnalyst(Analyst):
    """Base class of analysts whose models are true risks, whatever the releases."""

    def world(self, n: int, rng: np.random.Generator) -> TrueRiskWorld:
        """Return a world where a model is its true risk."""
        return TrueRiskWorld(n, rng)

    @abstractmethod
    def true_risks(self, questions: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the true risks of all models, in the order in which they are asked."""

    def play(self, game: Game) -> None:
        """Ask one model after the other."""
        for risk in self.true_risks(game.questions, game.rng).tolist():
            game.ask(risk)


@dataclass(frozen=True)
class SteadyImprovement(HonestAnalyst):
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

    def true_risks(self, questions: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return risks that improve a little with each question."""
        return self.first + (self.last - self.first) * np.arange(questions) / max(questions - 1, 1)


@dataclass(frozen=True)
class Plateau(HonestAnalyst):
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

    def true_risks(self, questions: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the same risk for all models."""
        return np.full(questions, self.risk)


@dataclass(frozen=True)
class RandomSearch(HonestAnalyst):
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

    def true_risks(self, questions: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return uniform risks."""
        return self.best + (self.worst - self.best) * rng.random(questions)


@dataclass(frozen=True)
class Breakthroughs(HonestAnalyst):
    """Ask many models of which a handful are better than all before, as teams do.

    The best true risk falls from ``first`` to ``last`` in equal ratios, at random questions. The
    models between are variations of the best one, worse by up to half of its risk.

    Parameters
    ----------
    first, last
        The best true risk at the beginning, and at the end.
    records
        How often it falls; at most once a question.

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.GrowingLadder.calibrated(n=5_000, questions=300)
    >>> result = Breakthroughs().play_against(ladder, n=5_000, questions=300, seed=1)
    >>> result.changes, result.leaderboard_error < 0.02
    (7, True)
    """

    name: ClassVar[str] = "breakthroughs"

    first: float = 0.3
    last: float = 0.05
    records: int = 6

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            first=_settings.number("first", self.first, above=0, at_most=1),
            last=_settings.number("last", self.last, above=0, at_most=1),
            records=_settings.integer("records", self.records, at_least=1),
        )

    def true_risks(self, questions: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return variations of the best model so far, and a few better ones."""
        count = min(self.records, questions - 1)
        is_record = np.zeros(questions, dtype=np.int64)
        is_record[1 + rng.permutation(questions - 1)[:count]] = 1
        best = self.first * (self.last / self.first) ** (np.cumsum(is_record) / max(count, 1))
        worse = np.where(
            (is_record == 1) | (np.arange(questions) == 0), 0.0, rng.random(questions) / 2
        )
        risks: NDArray[np.float64] = np.minimum(best * (1 + worse), 1.0)
        return risks
