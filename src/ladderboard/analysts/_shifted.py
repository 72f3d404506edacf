"""The shifted majority attack: keep every question just beside the point where it would be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._coins import Coins
from ladderboard.analysts._easy_set import EasySet
from ladderboard.analysts._guessing import Guessing
from ladderboard.analysts._rule import Rule
from ladderboard.analysts._walking import Walking

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game
    from ladderboard.mechanisms import Release

__all__ = ["FEW", "ShiftedMajority", "ask_again", "listen"]

FEW = 4  # too few to learn anything from


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
    >>> round(attack.meet(lb.Ladder(step=0.01), n=10_000, questions=1_000, seed=1).bias, 2)
    0.05

    References
    ----------
    Hardt, "Climbing a shaky ladder: Better adaptive risk estimation", 2017, Section 4.
    """

    name: ClassVar[str] = "shifted_majority"

    easy: float = 0.5

    def __post_init__(self) -> None:
        _settings.settle(self, easy=_settings.number("easy", self.easy, at_least=0, below=1))

    def world(self, n: int, rng: np.random.Generator) -> Coins:
        """Return coin flips, some of them known."""
        return Coins(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Find out whether every model is told of, climb or listen, and ask the vote last."""
        easy = EasySet(game.known, game.n)
        rule = Rule.of(game.mechanism, game.n)
        walking = Walking(game, easy, rule)
        game.intend(lambda: easy.model(walking.vote(), 0))
        if game.questions < FEW:
            easy.ask(game, walking.vote(), 0)
            return
        value = walking.open()
        again = ask_again(game, easy, walking)
        tactic: Walking | Guessing = walking
        if again.score is not None:
            tactic = listen(game, easy, walking)
        else:
            if rule.compare:
                tactic = guess(game, easy, rule)
            tactic.climb(value if again.value is None else game.n * again.value)
        easy.ask(game, tactic.vote(), 0)


def ask_again(game: Game, easy: EasySet, walking: Walking) -> Release:
    """Ask the first model again: only a mechanism that speaks of every model has a score for it."""
    again = easy.ask(game, walking.beliefs.base, easy.size)
    while again.improved and game.remaining > 1:  # luck in the noise
        again = easy.ask(game, walking.beliefs.base, easy.size)
    return again


def listen(game: Game, easy: EasySet, walking: Walking) -> Walking | Guessing:
    """Spend all questions but one on a mechanism that speaks of every model."""
    tactic: Walking | Guessing = walking
    if walking.rule.drowns:
        tactic = guess(game, easy, walking.rule)
    tactic.listen()
    return tactic


def guess(game: Game, easy: EasySet, rule: Rule) -> Guessing:
    """Go over to fresh guesses, and to their vote."""
    tactic = Guessing(game, easy, rule)
    game.intend(lambda: easy.model(tactic.vote(), 0))
    return tactic
