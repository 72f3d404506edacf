"""Tactic of the shifted majority attack when noise hides small differences: random guesses."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.analysts._shifted._comparison_rule import normal_cdf_array, truncated_mean
from ladderboard.analysts._worlds import random_bits, unpack_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
    from ladderboard.mechanisms import Release

_LUCK = np.linspace(-5, 5, 161)  # of a guess, in standard deviations: fewer examples wrong
_SLACKS = np.linspace(-3, 3, 13)  # the noise that stays until the ladder moves
_SHIFTS = 61
_FINE = 4  # cells per standard deviation of a release, unless the grid is coarser
_LEAST = 1e-300

_REPLAN_AFTER = 1.25  # choose a new shift after a silence this much longer


def _normal_weights(points: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = np.exp(-points * points / 2)
    return weight / weight.sum()


class GuessOdds:
    """The odds of what a release shows about a guess whose luck has deviation ``spread``.

    ``shift`` lists how far above the ladder's value a guess can be expected. The noise of a
    comparison has two parts, one fresh for each question and one that stays until the ladder moves;
    silence says something about the latter, so a belief about it is kept.

    Arrays are indexed by that standing noise, by shift, and by how many cells the value falls:
    ``released`` and ``luck`` are the chance of each fall and the mean luck times that chance,
    ``stayed`` the chance that the ladder does not move, ``hidden`` that it moves without showing.
    """

    def __init__(self, rule: ComparisonRule, spread: float) -> None:
        noise = math.hypot(spread, rule.compare)
        blur = math.hypot(spread, rule.release)
        self.cell = max(rule.grid, blur / _FINE)
        cells = math.ceil((rule.step + 2 * noise + 5 * blur) / self.cell)
        self.falls = np.arange(1, cells + 1)
        self.shift = np.linspace(-rule.step - 2 * noise, -rule.step + 4.5 * noise, _SHIFTS)
        wrong = self.shift[:, None] - spread * _LUCK  # relative to the ladder's value
        slacks = _SLACKS if rule.standing else np.zeros(1)
        lead = -rule.step - wrong + rule.standing * slacks[:, None, None]
        crossed = _chance_below(lead, rule.fresh) * _normal_weights(_LUCK)
        self.stayed = 1 - crossed.sum(axis=2)
        # Released at least this many cells below the value; a move without a lower value is hidden.
        edges = -self.cell * (self.falls - 0.5)
        reached = _chance_below(edges[:, None, None] - wrong, rule.release)
        released = reached - np.concatenate((reached[1:], np.zeros_like(reached[:1])))
        by_shift = released.transpose(1, 2, 0)
        self.released = _sum_over_luck(crossed, by_shift)
        self.luck = _sum_over_luck(crossed * _LUCK, by_shift)
        self.hidden = 1 - self.stayed - self.released.sum(axis=2)
        self.fresh = _normal_weights(slacks)
        self.belief = self.fresh

    def reset_belief(self) -> None:
        """Forget what silence showed about the standing noise, which is new on a new ladder."""
        self.belief = self.fresh

    def best_shift(self, pace: float) -> int:
        """Return the most informative shift at which the value falls no faster than ``pace``."""
        released, luck = self._mix_over_belief()
        silent = 1 - released.sum(axis=1)
        gain = (luck**2 / np.maximum(released, _LEAST)).sum(axis=1)
        gain += luck.sum(axis=1) ** 2 / np.maximum(silent, 1e-9)
        fall = self.cell * (released @ self.falls)
        slow = fall <= pace
        return int(np.where(slow, gain, -1.0).argmax()) if slow.any() else _SHIFTS - 1

    def nearest_shift(self, shift: float) -> int:
        """Return the index of the nearest shift."""
        return int(np.abs(self.shift - shift).argmin())

    def update(self, index: int, fallen: float | None) -> float:
        """Update the belief and return the mean luck of a guess, given how far the value fell.

        ``index`` is that of its shift; ``fallen`` is None after silence.
        """
        released, luck = self.belief @ self.released[:, index], self.belief @ self.luck[:, index]
        if fallen is not None:
            self.reset_belief()  # the standing noise was drawn anew
            cell = min(max(round(fallen / self.cell), 1), len(self.falls)) - 1
            return float(luck[cell] / max(released[cell], _LEAST)) if released[cell] else 0.0
        hidden = float(self.belief @ self.hidden[:, index])
        self.belief = self.belief * self.stayed[:, index] + hidden * self.fresh
        self.belief = self.belief / self.belief.sum()
        return float(-luck.sum() / max(1 - released.sum(), 1e-9))

    def _mix_over_belief(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.tensordot(self.belief, self.released, 1), np.tensordot(self.belief, self.luck, 1)


def _sum_over_luck(
    crossed: NDArray[np.float64], by_shift: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sum over luck of moves (slack, shift, luck) times releases (shift, luck, cell)."""
    return np.ascontiguousarray((crossed.transpose(1, 0, 2) @ by_shift).transpose(1, 0, 2))


def _chance_below(distance: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return the chance that noise of this standard deviation stays below a distance."""
    return normal_cdf_array(distance / noise) if noise else (distance > 0).astype(float)


class RandomGuesses:
    """Ask random guesses, weigh each by the luck that its release implies, and vote.

    A guess is wrong on half of the hard examples, plus or minus ``sqrt(hard)/2``: its luck. Easy
    mistakes put it at a chosen distance above the ladder's value, so that a release, or silence,
    is as informative about the luck as the remaining questions and easy labels allow.
    """

    def __init__(self, game: Game, shifter: RiskShifter, rule: ComparisonRule) -> None:
        self.game, self.shifter, self.rule = game, shifter, rule
        self.hard = game.n - shifter.size
        self.spread = math.sqrt(self.hard) / 2
        self.votes = np.zeros(self.hard)

    def vote(self) -> NDArray[np.bool_]:
        """Return the weighted majority."""
        return self.votes > 0

    @cached_property
    def _odds(self) -> GuessOdds:
        return GuessOdds(self.rule, self.spread)

    def open_ladder(self, account: int = 0) -> float:
        """Ask a first guess with all easy examples wrong, and return the ladder's value."""
        release = self._ask_scored_guess(self._between_releases(self.shifter.size), account)
        if release.value is None:
            return self.shifter.size + self.hard / 2
        return release.value * self.game.n

    def climb(self, value: float, *, account: int = 0, keep: int = 1) -> None:
        """Play a ladder at ``value`` wrong examples until ``keep`` questions are left.

        The shift is the most informative one at a pace that lasts. It is chosen again after a
        release, and sometimes during a long silence.
        """
        odds = self._odds
        odds.reset_belief()
        shift, quiet, replan_at = 0.0, 0, 0
        while (left := self.game.remaining - keep) > 0:
            if quiet >= replan_at:
                budget = max(value - self.hard / 2, 0) + self.spread
                shift = odds.shift[odds.best_shift(budget / left)]
                replan_at = max(quiet + 1, int(quiet * _REPLAN_AFTER))
            quiet += 1
            wrong = self.shifter.clip(value + shift - self.hard / 2)
            index = odds.nearest_shift(wrong + self.hard / 2 - value)
            guess = self._random_guess()
            release = self.shifter.ask(self.game, guess, wrong, account=account)
            fallen = None
            if release.score is not None and release.value is not None:
                fallen = value - release.value * self.game.n
                value -= fallen
                quiet = replan_at = 0
            self._add_vote(guess, odds.update(index, fallen))

    def play_with_scores(self) -> None:
        """Play against a mechanism that releases a score for every model."""
        wrong = self._between_releases(self.shifter.size // 2)
        while self.game.remaining > 1:
            self._ask_scored_guess(wrong, 0)

    def _between_releases(self, wrong: int) -> int:
        """Return about ``wrong`` easy mistakes, moved half way between two releasable values."""
        grid = self.rule.grid
        if grid < self.spread / 2:
            return wrong
        middle = (math.floor((wrong + self.hard / 2) / grid) - 0.5) * grid
        return self.shifter.clip(middle - self.hard / 2)

    def _ask_scored_guess(self, wrong: int, account: int) -> Release:
        """Ask a guess that is sure to get a score, and weigh it by the score."""
        guess = self._random_guess()
        release = self.shifter.ask(self.game, guess, wrong, account=account)
        if release.score is not None:
            lead = wrong + self.hard / 2 - release.score * self.game.n
            self._add_vote(guess, self._expected_luck(lead))
        return release

    def _expected_luck(self, lead: float) -> float:
        """Return the mean luck of a guess that scored ``lead`` examples better than expected."""
        if self.rule.release:
            return lead * self.spread / (self.spread**2 + self.rule.blur)
        half = self.rule.grid / 2
        if not half:
            return lead / self.spread
        return truncated_mean((lead - half) / self.spread, (lead + half) / self.spread)

    def _random_guess(self) -> NDArray[np.bool_]:
        return unpack_bits(random_bits(self.game.rng, self.hard), self.hard)

    def _add_vote(self, guess: NDArray[np.bool_], luck: float) -> None:
        """Let a guess vote by the log-odds that it is right on an example."""
        edge = min(max(luck * self.spread / self.hard, -0.49), 0.49)
        weight = math.log((0.5 + edge) / (0.5 - edge))
        self.votes += np.where(guess, weight, -weight)
