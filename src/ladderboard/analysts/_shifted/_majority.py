"""The shifted majority attack, and its variant with many accounts (sybil attack)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._shifted._climb import play_placed_guesses
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
from ladderboard.analysts._shifted._local_search import LocalSearch
from ladderboard.analysts._shifted._placement import GuessModel
from ladderboard.analysts._shifted._random_guesses import RandomGuesses
from ladderboard.analysts._worlds import CoinFlipWorld

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game
    from ladderboard.mechanisms import Release

MIN_QUESTIONS = 4  # fewer teach nothing
MAX_ACCOUNTS = 2**62


@dataclass(frozen=True)
class ShiftedMajority(Analyst):
    """Use known labels to keep every guess where its release, or silence, is most informative.

    A ladder releases a value only for a model that beats the best so far, so random guesses soon
    get no release. An analyst that knows some labels (the easy examples) starts with all of them
    wrong and corrects them gradually: that pays for the ladder's steps, while guesses on the hard
    examples accumulate luck. Each guess is placed above the threshold, so that only a lucky one is
    released, as lucky as the remaining questions and steps can pay for.

    Parameters
    ----------
    easy
        The share of the labels that is known, in [0, 1).
    walk
        Whether to search locally against noisy ladders, too.

    Notes
    -----
    If comparisons are free of noise it searches locally: it flips small sets of the best model so
    far and keeps those that were released. If they are noisy it asks random guesses and votes; each
    is placed by dynamic programming, or if noise stays until the ladder moves, by its odds.

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
    walk: bool = False

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
            walk=bool(self.walk),
        )

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Find out whether every model gets a score, learn the labels, then ask about the vote."""
        shifter = RiskShifter(game.known, game.n)
        rule = ComparisonRule.from_mechanism(game.mechanism, game.n)
        search = LocalSearch(game, shifter, rule)
        game.register_final_model(lambda: shifter.model(search.vote(), 0))
        if game.questions < MIN_QUESTIONS:
            shifter.ask(game, search.vote(), 0)
            return
        value = search.open_ladder()
        again = repeat_first_model(game, shifter, search)
        tactic: LocalSearch | RandomGuesses = search
        if again.score is not None:
            tactic = play_with_scores(game, shifter, search)
        else:
            noisy = rule.compare and not self.walk
            if noisy and not rule.standing:
                play_placed_guesses(game, GuessModel(game.n, shifter.size, None))
                return
            if noisy:
                tactic = start_random_guesses(game, shifter, rule)
            tactic.climb(value if again.value is None else game.n * again.value)
        shifter.ask(game, tactic.vote(), 0)


def repeat_first_model(game: Game, shifter: RiskShifter, search: LocalSearch) -> Release:
    """Ask the first model again; a score shows that the mechanism scores every model."""
    again = shifter.ask(game, search.beliefs.base, shifter.size)
    while again.improved and game.remaining > 1:  # moved by noise alone
        again = shifter.ask(game, search.beliefs.base, shifter.size)
    return again


def play_with_scores(
    game: Game, shifter: RiskShifter, search: LocalSearch
) -> LocalSearch | RandomGuesses:
    """Spend all questions but one against a mechanism that scores every model."""
    tactic: LocalSearch | RandomGuesses = search
    if search.rule.hides_few_examples:
        tactic = start_random_guesses(game, shifter, search.rule)
    tactic.play_with_scores()
    return tactic


def start_random_guesses(game: Game, shifter: RiskShifter, rule: ComparisonRule) -> RandomGuesses:
    """Switch to random guesses and their vote."""
    tactic = RandomGuesses(game, shifter, rule)
    game.register_final_model(lambda: shifter.model(tactic.vote(), 0))
    return tactic


@dataclass(frozen=True)
class SybilAttack(Analyst):
    """Register many accounts, use the first release of each, then attack every ladder.

    A ladder starts from the worst risk, so the first question on it always gets a release. With a
    ladder for every account, m accounts give m scores, as precise as the release noise allows: the
    majority attack over accounts. The remaining questions are spent like those of the shifted
    majority attack, on every ladder.

    Parameters
    ----------
    accounts
        How many accounts; at most the number of questions is used.
    easy
        The share of the labels that is known, in [0, 1).

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
            accounts=_settings.integer("accounts", self.accounts, at_least=1, at_most=MAX_ACCOUNTS),
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Open every account, climb every ladder, then ask about the vote."""
        shifter = RiskShifter(game.known, game.n)
        rule = ComparisonRule.from_mechanism(game.mechanism, game.n)
        search = LocalSearch(game, shifter, rule)
        tactic: LocalSearch | RandomGuesses = search
        if game.questions < MIN_QUESTIONS:
            shifter.ask(game, tactic.vote(), 0)
            return
        values = [search.open_ladder()]
        if repeat_first_model(game, shifter, search).score is not None:
            # If every model gets a score, one account learns as much as many.
            shifter.ask(game, play_with_scores(game, shifter, search).vote(), 0)
            return
        count = min(self.accounts, game.remaining)
        if rule.compare and not rule.standing:
            play_placed_guesses(game, GuessModel(game.n, shifter.size, None), count)
            return
        if rule.compare or rule.hides_few_examples:
            tactic = RandomGuesses(game, shifter, rule)
        values += [tactic.open_ladder(account) for account in range(1, count)]
        if not rule.compare and isinstance(tactic, RandomGuesses):
            tactic = LocalSearch(game, shifter, rule, votes=tactic.votes)
        spare = game.remaining - 1
        for account, value in enumerate(values):
            keep = 1 + spare * (count - 1 - account) // count
            tactic.climb(value, account=account, keep=keep)
        shifter.ask(game, tactic.vote(), 0)
