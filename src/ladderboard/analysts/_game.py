"""A game between an analyst and a mechanism, and the base class of all analysts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._worlds import CoinFlipWorld
from ladderboard.errors import BudgetSpent, InvalidRisk, InvalidSetting
from ladderboard.mechanisms import Mechanism, leaderboard_error
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.analysts._worlds import World
    from ladderboard.mechanisms import Release, Session
    from ladderboard.tape import Tape


class GameResult(NamedTuple):
    """How a game ended.

    ``leaderboard_error`` is that of Definition 1, ``bias`` how much better the last model looks on
    the holdout than it is (R_D - R_S), ``changes`` how often the board moved, ``asked`` how many
    questions were asked.
    """

    leaderboard_error: float
    bias: float
    changes: int
    asked: int


class Game:
    """What an analyst is given: questions to ask, and what is public.

    The analyst asks and sees the release. The game records the risk and the true risk and shows
    them only in the result.
    """

    def __init__(
        self,
        world: World,
        mechanism: Mechanism,
        *,
        questions: int,
        tape: Tape,
        rng: np.random.Generator,
    ) -> None:
        self.n = world.n
        self.mechanism = mechanism  # settings are public
        self._questions = _settings.integer("questions", questions, at_least=1)
        self._over = False
        self.known = world.known
        self.rng = rng
        self._world = world
        self._tape = tape
        self._sessions: dict[int, Session] = {}
        self._values: dict[int, float] = {}
        self._true_risks: list[float] = []
        self._released: list[float | None] = []
        self._board: float | None = None
        self._changes = 0
        self._changes_by_account: dict[int, int] = {}
        self._last_bias = math.nan

    @property
    def questions(self) -> int:
        """How many questions may be asked in total."""
        return self._questions

    @property
    def asked(self) -> int:
        """How many questions were asked."""
        return len(self._true_risks)

    @property
    def remaining(self) -> int:
        """How many questions are left."""
        return self.questions - self.asked

    def ask(self, model: Any, *, account: int = 0) -> Release:
        """Ask about a model and return the release.

        Parameters
        ----------
        model
            A model of this world, mostly a vector of predictions.
        account
            Which account asks. Every account has its own ladder.
        """
        if self._over:
            raise BudgetSpent("The game is over: its result has been read. Start a new game.")
        if not self.remaining:
            raise BudgetSpent(f"All {self.questions} questions have been asked.")
        session = self._sessions.get(account)
        if session is None:
            session = self.mechanism.start(n=self.n, tape=self._tape, ladder=account)
            self._sessions[account] = session
        world = self._world
        # Read once, so that both risks are of the same model even if the caller changes it.
        model = world.read(model)
        true_risk = world.true_risk(model)
        # With unlimited training data the training loss of a model is its true risk.
        training = true_risk if self.mechanism.needs_training else None
        others = self.changes_of_others(account)
        if self.mechanism.needs != "risk":
            losses = world.losses(model)
            risk = float(losses.mean())
            release = session.ask(losses=losses, training=training, others=others)
        else:
            risk = world.risk(model)
            release = session.ask(risk=risk, training=training, others=others)
        for number in (release.value, release.score):
            if number is not None and not math.isfinite(number):
                raise InvalidRisk(
                    f"{self.mechanism.name} released {number} for question {self.asked + 1}; "
                    "a release must be a finite number or None."
                )
        self._record(account, true_risk, risk, release)
        return release

    def value_of(self, account: int) -> float | None:
        """Return the released value of an account's ladder; None if there is none."""
        return self._values.get(account)

    def changes_of(self, account: int) -> int:
        """Return how often an account's ladder changed."""
        return self._changes_by_account.get(account, 0)

    def changes_of_others(self, account: int) -> int:
        """Return how often the other accounts' ladders changed that count on this account's."""
        counted = self.mechanism.shared_ladders
        if not counted:
            return 0
        others = (
            changes for other, changes in self._changes_by_account.items() if other != account
        )
        return sum(sorted(others)[-counted:])

    def register_final_model(self, model: Callable[[], Any]) -> None:
        """Register the model that would be asked if the next question were the last.

        Optional: only games that are recorded frame by frame use it. ``model`` may be called at any
        time and must not change anything.
        """

    def _record(self, account: int, true_risk: float, risk: float, release: Release) -> None:
        if release.value is not None:
            self._board = self._best_over_accounts(account, release.value)
        self._true_risks.append(true_risk)
        self._released.append(self._board)
        self._changes += release.improved
        self._changes_by_account[account] = self.changes_of(account) + release.improved
        self._last_bias = true_risk - risk

    def _best_over_accounts(self, account: int, value: float) -> float:
        """Return the best value of all accounts, which a shared leaderboard shows."""
        before = self._values.get(account, math.inf)
        self._values[account] = value
        if self._board is None or value <= self._board:
            return value
        # Search all accounts only if the best one rose, which the paper's own variant allows.
        return min(self._values.values()) if before == self._board else self._board

    def finish(self) -> GameResult:
        """End the game and return its result; later questions are refused."""
        self._over = True
        return GameResult(self._leaderboard_error(), self._last_bias, self._changes, self.asked)

    def _leaderboard_error(self) -> float:
        """Return Definition 1 over the released values; NaN if there are none."""
        best_true_risks = accumulate(self._true_risks, min)
        pairs = [
            (best, value)
            for best, value in zip(best_true_risks, self._released, strict=True)
            if value is not None
        ]
        if pairs:
            return leaderboard_error([best for best, _ in pairs], [value for _, value in pairs])
        # Mechanisms such as OneBit release their value only at close.
        closing = [session.close() for session in self._sessions.values()]
        values = [value for value in closing if value is not None]
        return abs(min(self._true_risks) - min(values)) if values else math.nan


@dataclass(frozen=True)
class Analyst(ABC):
    """Base class of analysts, which choose the next model.

    A subclass is a frozen dataclass of settings with two methods: ``world`` makes the holdout it
    plays on, and ``play`` asks questions and sees only releases. Both draw only from the generator
    they are given, so a seed repeats a game. Run ``ladderboard.testing.check_analyst`` on yours.

    Examples
    --------
    >>> import ladderboard as lb
    >>> class Guesser(Analyst):
    ...     name = "guesser"
    ...     def play(self, game):
    ...         for _ in range(game.questions):
    ...             game.ask(game.rng.integers(0, 2, game.n))
    >>> result = Guesser().play_against(lb.Exact(), n=1_000, questions=50, seed=1)
    >>> result.asked, round(result.leaderboard_error, 3)
    (50, 0.024)
    """

    name: ClassVar[str]

    def world(self, n: int, rng: np.random.Generator) -> World:
        """Return the world to play in: by default coin-flip labels, all unknown."""
        return CoinFlipWorld(n, rng)

    @abstractmethod
    def play(self, game: Game) -> None:
        """Ask questions with ``game.ask(model)`` until none is left, or stop earlier."""

    def play_against(
        self, mechanism: Mechanism, *, n: int, questions: int, seed: int = 0
    ) -> GameResult:
        """Play one game against a mechanism and return its result."""
        seed = _settings.integer("seed", seed, at_least=0)
        if not isinstance(mechanism, Mechanism):
            raise InvalidSetting(
                f"An analyst needs a Mechanism, such as lb.Exact(); "
                f"got {_settings.safe_repr(mechanism)}."
            )
        world_seed, analyst_seed = np.random.SeedSequence(seed).spawn(2)
        game = Game(
            self.world(n, np.random.default_rng(world_seed)),
            mechanism,
            questions=questions,
            tape=NumpyTape(seed=seed),
            rng=np.random.default_rng(analyst_seed),
        )
        with suppress(BudgetSpent):  # an analyst may simply ask until the game refuses
            self.play(game)
        return game.finish()

    def describe(self) -> dict[str, Any]:
        """Return the settings, JSON-able: the analyst's identity."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"analyst": self.name, **settings}
