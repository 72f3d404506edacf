"""The shifted majority attack, and the same with many accounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
from ladderboard.analysts._shifted._local_search import LocalSearch
from ladderboard.analysts._shifted._random_guesses import RandomGuesses
from ladderboard.analysts._worlds import CoinFlipWorld

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game
    from ladderboard.mechanisms import Release

MIN_QUESTIONS = 4  # too few to learn anything from


@dataclass(frozen=True)
class ShiftedMajority(Analyst):
    """Use labels that are known to keep every guess where its release, or silence, says most.

    A ladder answers only what beats the best so far, so random guesses soon meet silence. An
    analyst who knows some labels (the easy set) starts with all of them wrong and mends them bit
    by bit: that pays for the steps of the ladder, while the guesses on the hard examples collect
    luck. It is patient: it places each guess above the line, so that only a lucky one is told, as
    lucky as the questions and the rungs left can pay for.

    Parameters
    ----------
    easy
        The part of the labels that is known, in (0, 1].

    Notes
    -----
    Where comparisons are free of noise it walks: it flips small sets of the best model so far and
    keeps what was told. Where they are noisy it guesses afresh and lets the guesses vote.

    Examples
    --------
    >>> import ladderboard as lb
    >>> attack = ShiftedMajority(easy=0.5)
    >>> round(attack.play_against(lb.Ladder(step=0.01), n=10_000, questions=1_000, seed=1).bias, 2)
    0.05

    References
    ----------
    Hardt, "Climbing a shaky ladder: Better adaptive risk estimation", 2017, Section 4.
    """

    name: ClassVar[str] = "shifted_majority"

    easy: float = 0.5

    def __post_init__(self) -> None:
        _settings.set_frozen(self, easy=_settings.number("easy", self.easy, at_least=0, below=1))

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Find out whether every model is told of, climb or listen, and ask the vote last."""
        easy = RiskShifter(game.known, game.n)
        rule = ComparisonRule.of(game.mechanism, game.n)
        walking = LocalSearch(game, easy, rule)
        game.register_final_model(lambda: easy.model(walking.vote(), 0))
        if game.questions < MIN_QUESTIONS:
            easy.ask(game, walking.vote(), 0)
            return
        value = walking.open()
        again = repeat_first_model(game, easy, walking)
        tactic: LocalSearch | RandomGuesses = walking
        if again.score is not None:
            tactic = play_with_scores(game, easy, walking)
        else:
            if rule.compare:
                tactic = start_random_guesses(game, easy, rule)
            tactic.climb(value if again.value is None else game.n * again.value)
        easy.ask(game, tactic.vote(), 0)


def repeat_first_model(game: Game, easy: RiskShifter, walking: LocalSearch) -> Release:
    """Ask the first model again: only a mechanism that speaks of every model has a score for it."""
    again = easy.ask(game, walking.beliefs.base, easy.size)
    while again.improved and game.remaining > 1:  # luck in the noise
        again = easy.ask(game, walking.beliefs.base, easy.size)
    return again


def play_with_scores(
    game: Game, easy: RiskShifter, walking: LocalSearch
) -> LocalSearch | RandomGuesses:
    """Spend all questions but one on a mechanism that speaks of every model."""
    tactic: LocalSearch | RandomGuesses = walking
    if walking.rule.drowns:
        tactic = start_random_guesses(game, easy, walking.rule)
    tactic.listen()
    return tactic


def start_random_guesses(game: Game, easy: RiskShifter, rule: ComparisonRule) -> RandomGuesses:
    """Go over to fresh guesses, and to their vote."""
    tactic = RandomGuesses(game, easy, rule)
    game.register_final_model(lambda: easy.model(tactic.vote(), 0))
    return tactic


@dataclass(frozen=True)
class SybilAttack(Analyst):
    """Register many accounts, take the first release of each, then be patient on every ladder.

    A ladder starts from the worst risk, so whoever asks first is told. With a ladder for every
    account, m accounts are m answers, as good as the noise on the release allows: the majority
    attack over accounts. The questions left are spent as the shifted majority attack spends them,
    with a fresh set of rungs on every ladder.

    Parameters
    ----------
    accounts
        How many; never more than there are questions to ask.
    easy
        The part of the labels that is known, in [0, 1).

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.Ladder(step=0.01)
    >>> one = SybilAttack(accounts=1).play_against(ladder, n=10_000, questions=1_000, seed=1)
    >>> many = SybilAttack(accounts=500).play_against(ladder, n=10_000, questions=1_000, seed=1)
    >>> round(one.bias, 2), round(many.bias, 2)
    (0.05, 0.07)
    """

    name: ClassVar[str] = "sybil"

    accounts: int = 100
    easy: float = 0.5

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            accounts=_settings.integer("accounts", self.accounts, at_least=1, at_most=2**62),
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Open every account, climb every ladder, and ask the vote last."""
        easy = RiskShifter(game.known, game.n)
        rule = ComparisonRule.of(game.mechanism, game.n)
        walking = LocalSearch(game, easy, rule)
        tactic: LocalSearch | RandomGuesses = walking
        if game.questions < MIN_QUESTIONS:
            easy.ask(game, tactic.vote(), 0)
            return
        values = [walking.open()]
        if repeat_first_model(game, easy, walking).score is not None:
            # Told of every model, one account hears as much as many.
            easy.ask(game, play_with_scores(game, easy, walking).vote(), 0)
            return
        count = min(self.accounts, game.remaining)
        if rule.compare or rule.drowns:
            tactic = RandomGuesses(game, easy, rule)
        values += [tactic.open(account) for account in range(1, count)]
        if not rule.compare and isinstance(tactic, RandomGuesses):
            tactic = LocalSearch(game, easy, rule, votes=tactic.votes)
        spare = game.remaining - 1
        for account, value in enumerate(values):
            keep = 1 + spare * (count - 1 - account) // count
            tactic.climb(value, account=account, keep=keep)
        easy.ask(game, tactic.vote(), 0)
