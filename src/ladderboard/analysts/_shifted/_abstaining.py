"""The abstaining attack: predictions that are surely wrong shift the risk of a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._shifted._climb import play_placed_guesses
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
from ladderboard.analysts._shifted._local_search import LocalSearch
from ladderboard.analysts._shifted._majority import (
    MAX_ACCOUNTS,
    MIN_QUESTIONS,
    SybilAttack,
    play_with_scores,
)
from ladderboard.analysts._shifted._placement import GuessModel
from ladderboard.analysts._worlds import CoinFlipWorld, RareClassWorld

if TYPE_CHECKING:
    from ladderboard.analysts._game import Game
    from ladderboard.analysts._worlds import World

_ABSTAIN = 2
_MAX_RARE = 0.3  # a class as common as the two others shifts nothing


@dataclass(frozen=True)
class AbstainingAttack(Analyst):
    """Abstain on some examples and guess the others, where the release is most informative.

    A prediction that is not a class is surely wrong. It adds any amount to the risk of a question
    without knowing a label, for which the shifted majority attack must know half of them; and all
    labels can be attacked. How many to abstain on comes from dynamic programming over the ladder's
    value and the questions left. The examples whose labels are least sure so far
    are guessed, the surest are abstained on; once the ladder is below the risk of guesses, the
    surest are answered by the vote.

    Parameters
    ----------
    rare
        The share of labels of the class that it abstains with: 0 if predictions that are not a
        class are accepted, a small number if they are refused and one class is rare. ``None`` if
        there are only two declared classes: it cannot abstain then, and plays the shifted majority
        attack.
    easy
        The share of the labels that is known, in [0, 1).
    accounts
        How many accounts it holds. It plays their ladders one after the other.

    Notes
    -----
    The placement is designed for ladders; against noise-free ones, flipping parts of the best
    model, as the shifted majority attack does, may gain more. Against a mechanism that scores every
    model it does not abstain.

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.ShakyLadder.calibrated(n=1_000, questions=1_000)
    >>> result = AbstainingAttack().play_against(ladder, n=1_000, questions=1_000, seed=1)
    >>> result.bias * 1_000**0.5 > 1.5
    True
    >>> without = AbstainingAttack(rare=None)
    >>> without.play_against(ladder, n=1_000, questions=1_000, seed=1).bias < result.bias
    True
    """

    name: ClassVar[str] = "abstaining"

    rare: float | None = 0.0
    easy: float = 0.0
    accounts: int = 1

    def __post_init__(self) -> None:
        rare = self.rare
        if rare is not None:
            rare = _settings.number("rare", rare, at_least=0, at_most=_MAX_RARE)
        _settings.set_frozen(
            self,
            rare=rare,
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
            accounts=_settings.integer("accounts", self.accounts, at_least=1, at_most=MAX_ACCOUNTS),
        )

    def world(self, n: int, rng: np.random.Generator) -> World:
        """Return coin flips and a rare class; without one, coin flips."""
        if self.rare is None:
            return CoinFlipWorld(n, rng, easy=self.easy)
        return RareClassWorld(n, rng, rare=self.rare, easy=self.easy)

    def play(self, game: Game) -> None:
        """Find out whether every model gets a score, learn the labels, then ask about the vote."""
        if self.rare is None:
            SybilAttack(self.accounts, self.easy).play(game)
            return
        shifter = RiskShifter(game.known, game.n)
        rule = ComparisonRule.from_mechanism(game.mechanism, game.n)
        search = LocalSearch(game, shifter, rule)
        if game.questions < MIN_QUESTIONS:
            shifter.ask(game, search.vote(), 0)
            return
        # A ladder releases nothing for a model that it has seen before.
        abstention = np.full(game.n, _ABSTAIN)
        first = game.ask(abstention)
        while first.improved and game.remaining > 1:
            first = game.ask(abstention)
        if first.score is not None:
            shifter.ask(game, play_with_scores(game, shifter, search).vote(), 0)
            return
        guess = GuessModel(game.n, shifter.size, self.rare)
        play_placed_guesses(game, guess, min(self.accounts, game.remaining))
