"""What every analyst is: a frozen description that plays a game."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._coins import Coins
from ladderboard.analysts._game import Game, Score
from ladderboard.errors import BudgetSpent, InvalidSetting
from ladderboard.mechanisms import Mechanism
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from ladderboard.analysts._world import World

__all__ = ["Analyst"]


@dataclass(frozen=True)
class Analyst(ABC):
    """Whatever chooses the next model.

    A subclass is a frozen dataclass of settings with two parts: ``world`` makes the holdout it
    plays on, and ``play`` asks, seeing nothing but releases. Both draw only from the generator
    they are given, so a seed repeats a game. Run ``ladderboard.testing.check_analyst`` on yours.

    Examples
    --------
    >>> import ladderboard as lb
    >>> class Guesser(Analyst):
    ...     name = "guesser"
    ...     def play(self, game):
    ...         for _ in range(game.questions):
    ...             game.ask(game.rng.integers(0, 2, game.n))
    >>> score = Guesser().meet(lb.Exact(), n=1_000, questions=50, seed=1)
    >>> score.asked, round(score.leaderboard_error, 3)
    (50, 0.024)
    """

    name: ClassVar[str]

    def world(self, n: int, rng: np.random.Generator) -> World:
        """Return the world to play in; coin-flip labels of which nothing is known."""
        return Coins(n, rng)

    @abstractmethod
    def play(self, game: Game) -> None:
        """Ask questions with ``game.ask(model)`` until none is left, or none is wanted."""

    def meet(self, mechanism: Mechanism, *, n: int, questions: int, seed: int = 0) -> Score:
        """Play one game against a mechanism and return the score."""
        seed = _settings.whole("seed", seed, at_least=0)
        if not isinstance(mechanism, Mechanism):
            raise InvalidSetting(
                f"An analyst meets a Mechanism, as in lb.Exact(); got {_settings.shown(mechanism)}."
            )
        hidden, own = np.random.SeedSequence(seed).spawn(2)
        game = Game(
            self.world(n, np.random.default_rng(hidden)),
            mechanism,
            questions=questions,
            tape=NumpyTape(seed=seed),
            rng=np.random.default_rng(own),
        )
        with suppress(BudgetSpent):  # going on until nothing is left is a way to play
            self.play(game)
        return game.score()

    def describe(self) -> dict[str, Any]:
        """Return the settings, JSON-able: the analyst's identity."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"analyst": self.name, **settings}
