"""The abstaining attack: predictions that are surely wrong shift the risk of a question."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
from ladderboard.analysts._shifted._local_search import LocalSearch
from ladderboard.analysts._shifted._majority import MIN_QUESTIONS, ShiftedMajority, play_with_scores
from ladderboard.analysts._shifted._placement import LadderRungs, PartialGuess, plan_placements
from ladderboard.analysts._worlds import CoinFlipWorld, RareClassWorld

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._worlds import World
    from ladderboard.mechanisms import Release

_REPLAN_AFTER = 1.25  # choose a new placement after a silence this much longer
_ABSTAIN = 2
_MAX_RARE = 0.3  # a class as common as the two others shifts nothing
_MAX_VOTED = 0.8  # at most this share of the examples is left to the vote
_MAX_EDGE = 0.49  # the surest belief about a guess, beyond chance


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
        attack with no label known.

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

    def __post_init__(self) -> None:
        if self.rare is not None:
            rare = _settings.number("rare", self.rare, at_least=0, at_most=_MAX_RARE)
            _settings.set_frozen(self, rare=rare)

    def world(self, n: int, rng: np.random.Generator) -> World:
        """Return coin flips and a rare class; without one, coin flips."""
        return (
            CoinFlipWorld(n, rng) if self.rare is None else RareClassWorld(n, rng, rare=self.rare)
        )

    def play(self, game: Game) -> None:
        """Find out whether every model gets a score, learn the labels, then ask about the vote."""
        if self.rare is None:
            ShiftedMajority(easy=0).play(game)
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
        changes = int(first.improved)
        while first.improved and game.remaining > 1:
            first = game.ask(abstention)
            changes += first.improved
        if first.score is not None:
            shifter.ask(game, play_with_scores(game, shifter, search).vote(), 0)
            return
        rungs = LadderRungs.from_mechanism(game.mechanism, game.n)
        climb = _AbstainingClimb(game, rungs, PartialGuess(game.n, self.rare))
        if first.value is not None:
            climb.value = first.value * game.n
            climb.changes = changes
        game.register_final_model(lambda: climb.vote().astype(np.int64))
        climb.play()
        shifter.ask(game, climb.vote(), 0)


class _PlacedGuess(NamedTuple):
    """Which examples to guess, the rest of the model, its expected errors and their deviation."""

    guessed: NDArray[np.intp]
    model: NDArray[np.int8]
    wrong: float
    deviation: float


class _AbstainingClimb:
    """The state of the attack on a ladder: log-odds of each label, its value and its changes."""

    def __init__(self, game: Game, rungs: LadderRungs, guess: PartialGuess) -> None:
        self.game, self.rungs, self.guess = game, rungs, guess
        self.odds = np.zeros(game.n)  # log-odds of the label 1
        self.value = float(game.n)
        self.changes = 0
        self.plan = plan_placements(rungs, guess, game.questions)

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.odds > 0

    def play(self) -> None:
        """Ask until one question is left, or none is worth asking."""
        quiet = replan_at = 0
        question: _PlacedGuess | None = None
        while (left := self.game.remaining - 1) > 0:
            if question is None or quiet >= replan_at:
                wanted = self.plan.expected_wrong(self.value, self.changes, left)
                if wanted is None:
                    return
                replan_at = max(quiet + 1, int(quiet * _REPLAN_AFTER))
                question = self._place_guess(wanted)
            quiet += 1
            bits = self.game.rng.integers(0, 2, len(question.guessed), dtype=np.int8)
            question.model[question.guessed] = bits
            if self._learn(question, bits, self.game.ask(question.model)):
                quiet, question = 0, None

    def _place_guess(self, wanted: float) -> _PlacedGuess:
        guess, n = self.guess, self.game.n
        sure = np.abs(self.odds)
        order = np.argsort(sure + 1e-9 * self.game.rng.random(n))
        model = np.full(n, _ABSTAIN, np.int8)
        size = max(guess.size(wanted), 1)
        wrong, variance = guess.expected(size), guess.variance(size)[1]
        if wanted < guess.fewest_wrong:  # the vote answers the surest examples
            wins = 2 * guess.right * (0.5 - 1 / (1 + np.exp(sure[order[::-1]])))
            won = np.cumsum(wins)
            voted = int(np.searchsorted(won, guess.fewest_wrong - wanted)) + 1
            voted = min(voted, int(_MAX_VOTED * n))
            size = n - voted
            model[order[size:]] = self.vote()[order[size:]]
            wrong = guess.fewest_wrong - (float(won[voted - 1]) if voted else 0.0)
        return _PlacedGuess(order[:size], model, wrong, math.sqrt(variance))

    def _learn(self, question: _PlacedGuess, bits: NDArray[np.int8], release: Release) -> bool:
        """Let the guess vote by its expected luck; return whether the ladder moved."""
        n, value = self.game.n, self.value
        wrong, deviation = question.wrong, question.deviation
        rule = self.rungs.rule_at(value, self.changes)
        if not release.improved:
            luck = self.plan.mean_luck(wrong, value, self.changes, None)
        elif release.value is None:  # the value is not released: estimate it
            luck = self.plan.mean_luck(wrong, value, self.changes, math.inf)
            estimate = min(wrong - luck * deviation, value - rule.step)
            self.value = max(estimate, 0.0)
        else:
            released = release.value * n
            luck = self.plan.mean_luck(wrong, value, self.changes, value - released)
            if value - wrong > rule.step + 3 * rule.compare + 3 * deviation:
                # Sure to be released: the value is the risk plus noise.
                luck = (wrong - released) * deviation / (deviation**2 + rule.blur)
            self.value = min(released, value)
        self.changes += release.improved
        right = self.guess.right
        share = right * (1 - right) / deviation  # of one example in the luck
        edge = min(max(luck * share, -_MAX_EDGE * 2 * right), _MAX_EDGE * 2 * right)
        weight = math.log((right + edge) / (right - edge))
        self.odds[question.guessed] += np.where(bits == 1, weight, -weight)
        return release.improved
