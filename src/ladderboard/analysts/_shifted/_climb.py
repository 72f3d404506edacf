"""Tactic against noisy ladders: placed guesses, on one ladder or on those of several accounts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.analysts._shifted._placement import LadderRungs, plan_placements
from ladderboard.analysts._worlds import unpack_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._shifted._comparison_rule import ComparisonRule
    from ladderboard.analysts._shifted._placement import GuessModel
    from ladderboard.mechanisms import Release

_REPLAN_AFTER = 1.25  # choose a new placement after a silence this much longer
_ABSTAIN = 2
_MAX_VOTED = 0.8  # at most this share of the examples is left to the vote
_MIN_EDGE = 1e-3  # examples that the vote is less sure of are guessed
_MAX_EDGE = 0.49  # the surest belief about a guess, beyond chance


class _PlacedGuess(NamedTuple):
    """Which examples to guess, the rest of the model, its expected errors and their deviation."""

    guessed: NDArray[np.intp]
    model: NDArray[np.int8]
    wrong: float
    deviation: float


class PlannedClimb:
    """Place guesses where dynamic programming says, and vote by the luck that releases imply.

    The known examples are the first ones. Those whose labels are least sure are guessed, the surest
    are abstained on; below the risk of guesses the surest are answered by the vote.
    """

    def __init__(self, game: Game, guess: GuessModel, accounts: int = 1) -> None:
        self.game, self.guess = game, guess
        self.rungs = LadderRungs.from_mechanism(game.mechanism, game.n)
        self.plan = plan_placements(self.rungs, guess, game.questions)
        self.odds = np.zeros(guess.unknown)  # log-odds of the label 1
        released = [game.value_of(account) for account in range(accounts)]
        self.values = [game.n * (1.0 if value is None else value) for value in released]
        self._known = unpack_bits(game.known.labels, game.n)[: guess.known]

    def vote(self) -> NDArray[np.int8]:
        """Return the model of known and likeliest labels."""
        return np.concatenate((self._known, self.odds > 0)).astype(np.int8)

    def play(self) -> None:
        """Ask until one question is left, or none is worth asking."""
        for account in range(len(self.values)):
            self._play_ladder(account)

    def _play_ladder(self, account: int) -> None:
        quiet = replan_at = 0
        question: _PlacedGuess | None = None
        while (left := self.game.remaining - 1) > 0:
            if question is None or quiet >= replan_at:
                # Ladders before this one are spent; those after it share the questions left.
                ladders = [
                    (self.values[index], self._effective_changes(index))
                    for index in range(account, len(self.values))
                ]
                wanted = self.plan.expected_wrong(ladders, 0, left)
                if wanted is None:
                    return
                replan_at = max(quiet + 1, int(quiet * _REPLAN_AFTER))
                question = self._place_guess(wanted)
            quiet += 1
            bits = self.game.rng.integers(0, 2, len(question.guessed), dtype=np.int8)
            question.model[self.guess.known + question.guessed] = bits
            rule = self.rungs.rule_at(self.values[account], self._effective_changes(account))
            release = self.game.ask(question.model, account=account)
            luck = self._expected_luck(question, rule, release, account)
            self._add_vote(question, bits, luck)
            if release.improved:
                quiet, question = 0, None

    def _effective_changes(self, account: int) -> float:
        """Return the changes after which the next step would be as large without the others'."""
        changes, others = self.game.changes_of(account), self.game.changes_of_others(account)
        growth = self.game.mechanism.rung_growth(changes + 1, others) if others else None
        return self.rungs.changes_at(growth[-1]) if growth else changes

    def _place_guess(self, wanted: float) -> _PlacedGuess:
        guess = self.guess
        sure = np.abs(self.odds)
        order = np.argsort(sure + 1e-9 * self.game.rng.random(guess.unknown))
        size, mistakes = guess.size(wanted), guess.mistakes(wanted)
        wrong = guess.expected(size, mistakes)
        variance = sum(guess.variances(size))
        answers = np.full(guess.unknown, _ABSTAIN, np.int8)
        if wanted < guess.fewest_wrong:  # the vote answers the surest examples
            edge = 0.5 - 1 / (1 + np.exp(sure[order[::-1]]))
            won = np.cumsum(2 * guess.right * edge)
            voted = int(np.searchsorted(won, guess.fewest_wrong - wanted)) + 1
            voted = min(voted, int(_MAX_VOTED * guess.unknown), int((edge > _MIN_EDGE).sum()))
            size = guess.unknown - voted
            answers[order[size:]] = self.odds[order[size:]] > 0
            wrong -= float(won[voted - 1]) if voted else 0.0
            variance -= float(np.sum(edge[:voted] ** 2))
        model = np.concatenate((self._known, answers)).astype(np.int8)
        model[:mistakes] ^= 1
        return _PlacedGuess(order[:size], model, wrong, math.sqrt(max(variance, 0.25)))

    def _expected_luck(
        self, question: _PlacedGuess, rule: ComparisonRule, release: Release, account: int
    ) -> float:
        """Return the mean luck of a guess after its release, and note the ladder's new value."""
        value, deviation = self.values[account], question.deviation
        distance = question.wrong - value
        if not release.improved:
            return rule.luck_if_silent(distance, deviation)
        if release.value is None:  # the value is not released: estimate it
            luck = rule.luck_if_crossed(distance, deviation)
            estimate = min(question.wrong - luck * deviation, value - rule.step)
            self.values[account] = max(estimate, 0.0)
            return luck
        released = release.value * self.game.n
        self.values[account] = min(released, value)
        return rule.luck_if_released(distance, deviation, value - released)

    def _add_vote(self, question: _PlacedGuess, bits: NDArray[np.int8], luck: float) -> None:
        """Let a guess vote by the log-odds that it is right on an example."""
        right = self.guess.right
        share = right * (1 - right) / question.deviation  # of one example in the luck
        edge = min(max(luck * share, -_MAX_EDGE * 2 * right), _MAX_EDGE * 2 * right)
        weight = math.log((right + edge) / (right - edge))
        self.odds[question.guessed] += np.where(bits == 1, weight, -weight)


def play_placed_guesses(game: Game, guess: GuessModel, accounts: int = 1) -> None:
    """Learn labels with all questions but one, then ask about the vote."""
    climb = PlannedClimb(game, guess, accounts)
    game.register_final_model(climb.vote)
    climb.play()
    game.ask(climb.vote())
