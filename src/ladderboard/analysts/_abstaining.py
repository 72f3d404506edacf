"""The abstaining attack: what is surely wrong shifts a question without knowing a label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._coins import Coins
from ladderboard.analysts._easy_set import EasySet
from ladderboard.analysts._rare_class import RareClass
from ladderboard.analysts._rule import Rule
from ladderboard.analysts._rungs import Guess, rungs_for
from ladderboard.analysts._shifted import FEW, ShiftedMajority, listen
from ladderboard.analysts._walking import Walking

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._world import World
    from ladderboard.mechanisms import Release

__all__ = ["AbstainingAttack"]

_LONGER = 1.25  # a silence this much longer calls for another placement
_ABSTAIN = 2
_MOST_RARE = 0.3  # a class as common as the two others shifts nothing
_VOTED = 0.8  # no larger part of the examples is left to the vote
_SETTLED = 0.49  # no guess is believed surer than this beyond chance


@dataclass(frozen=True)
class AbstainingAttack(Analyst):
    """Abstain on some examples, guess the others, and put every guess where its answer says most.

    A prediction that is no class is surely wrong. So any amount can be added to the risk of a
    question without knowing a label, which the shifted majority attack needs half of the labels
    for; and all labels can be attacked. How many to abstain on comes from dynamic programming over
    the value that stands and the questions left. The examples whose labels are least sure so far
    are guessed, the surest are abstained on; once the ladder is below the risk of guesses, the
    surest are answered by the vote.

    Parameters
    ----------
    rare
        The share of labels of the class that it abstains with: 0 where a prediction that is no
        class is accepted, a small number where that is refused and a class is rare. ``None`` where
        two classes are declared: it cannot abstain then, and plays the shifted majority attack
        with no label known.

    Notes
    -----
    The placement is made for ladders; against noise-free ones, flipping parts of the best model,
    as the shifted majority attack does, may gain more. A mechanism that tells every model's score
    is listened to, without abstaining.

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.ShakyLadder.calibrated(n=1_000, questions=1_000)
    >>> score = AbstainingAttack().meet(ladder, n=1_000, questions=1_000, seed=1)
    >>> score.bias * 1_000**0.5 > 1.5
    True
    >>> declared = AbstainingAttack(rare=None).meet(ladder, n=1_000, questions=1_000, seed=1)
    >>> declared.bias < score.bias
    True
    """

    name: ClassVar[str] = "abstaining"

    rare: float | None = 0.0

    def __post_init__(self) -> None:
        if self.rare is not None:
            rare = _settings.number("rare", self.rare, at_least=0, at_most=_MOST_RARE)
            _settings.settle(self, rare=rare)

    def world(self, n: int, rng: np.random.Generator) -> World:
        """Return coin flips and a rare class; without one, coin flips."""
        return Coins(n, rng) if self.rare is None else RareClass(n, rng, rare=self.rare)

    def play(self, game: Game) -> None:
        """Find out whether every model is told of, climb or listen, and ask the vote last."""
        if self.rare is None:
            ShiftedMajority(easy=0).play(game)
            return
        easy = EasySet(game.known, game.n)
        rule = Rule.of(game.mechanism, game.n)
        walking = Walking(game, easy, rule)
        if game.questions < FEW:
            easy.ask(game, walking.vote(), 0)
            return
        # A ladder says nothing about a model that it was told of before.
        nothing = np.full(game.n, _ABSTAIN)
        first = game.ask(nothing)
        while first.improved and game.remaining > 1:
            first = game.ask(nothing)
        if first.score is not None:
            easy.ask(game, listen(game, easy, walking).vote(), 0)
            return
        if rule.by_difference:  # two guesses differ on half of the examples
            rule = rule._replace(step=rule.margin(game.n // 2), grid=1.0, by_difference=0.0)
        climb = _Climb(game, rule, Guess(game.n, self.rare))
        if first.value is not None:
            climb.value = first.value * game.n
        game.intend(lambda: climb.vote().astype(np.int64))
        climb.play()
        easy.ask(game, climb.vote(), 0)


class _Question(NamedTuple):
    """Which examples to guess, the rest of the model, its expected errors and their deviation."""

    guessed: NDArray[np.intp]
    model: NDArray[np.int8]
    wrong: float
    deviation: float


class _Climb:
    """The state of the attack on a ladder: log-odds of each label, and the value that stands."""

    def __init__(self, game: Game, rule: Rule, guess: Guess) -> None:
        self.game, self.rule, self.guess = game, rule, guess
        self.odds = np.zeros(game.n)  # log-odds of the label 1
        self.value = float(game.n)
        self.rungs = rungs_for(rule, guess, game.questions)

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.odds > 0

    def play(self) -> None:
        """Ask until one question is left, or none is worth asking."""
        quiet = patience = 0
        question: _Question | None = None
        while (left := self.game.remaining - 1) > 0:
            if question is None or quiet >= patience:
                wanted = self.rungs.place(self.value, left)
                if wanted is None:
                    return
                patience = max(quiet + 1, int(quiet * _LONGER))
                question = self._prepare(wanted)
            quiet += 1
            bits = self.game.rng.integers(0, 2, len(question.guessed), dtype=np.int8)
            question.model[question.guessed] = bits
            if self._learn(question, bits, self.game.ask(question.model)):
                quiet, question = 0, None

    def _prepare(self, wanted: float) -> _Question:
        guess, n = self.guess, self.game.n
        sure = np.abs(self.odds)
        order = np.argsort(sure + 1e-9 * self.game.rng.random(n))
        model = np.full(n, _ABSTAIN, np.int8)
        size = max(guess.size(wanted), 1)
        wrong, variance = guess.expected(size), guess.variance(size)[1]
        if wanted < guess.least:  # the vote answers the surest examples
            wins = 2 * guess.right * (0.5 - 1 / (1 + np.exp(sure[order[::-1]])))
            won = np.cumsum(wins)
            voted = int(np.searchsorted(won, guess.least - wanted)) + 1
            voted = min(voted, int(_VOTED * n))
            size = n - voted
            model[order[size:]] = self.vote()[order[size:]]
            wrong = guess.least - (float(won[voted - 1]) if voted else 0.0)
        return _Question(order[:size], model, wrong, math.sqrt(variance))

    def _learn(self, question: _Question, bits: NDArray[np.int8], release: Release) -> bool:
        """Let the guess vote by what its answer lets expect; return whether the ladder moved."""
        n, value = self.game.n, self.value
        wrong, deviation = question.wrong, question.deviation
        if not release.improved:
            luck = self.rungs.believed(wrong, value, None)
        elif release.value is None:  # the value is kept back: about where the guess is believed
            luck = self.rungs.believed(wrong, value, math.inf)
            told = min(wrong - luck * deviation, value - self.rule.step)
            self.value = max(told, 0.0)
        else:
            told = release.value * n
            luck = self.rungs.believed(wrong, value, value - told)
            if value - wrong > self.rule.step + 3 * self.rule.compare + 3 * deviation:
                # Told for sure: what is told is the risk, blurred.
                luck = (wrong - told) * deviation / (deviation**2 + self.rule.blur)
            self.value = min(told, value)
        right = self.guess.right
        share = right * (1 - right) / deviation  # of one example in the luck
        edge = min(max(luck * share, -_SETTLED * 2 * right), _SETTLED * 2 * right)
        weight = math.log((right + edge) / (right - edge))
        self.odds[question.guessed] += np.where(bits == 1, weight, -weight)
        return release.improved
