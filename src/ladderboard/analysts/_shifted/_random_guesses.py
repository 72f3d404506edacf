"""How the shifted majority attack plays where noise hides small differences."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.analysts._shifted._normal import normal_cdf_array, truncated_mean
from ladderboard.analysts._worlds import random_bits, unpack_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
    from ladderboard.mechanisms import Release

_LUCK = np.linspace(-5, 5, 161)  # of a guess, in standard deviations: fewer examples wrong
_SLACKS = np.linspace(-3, 3, 13)  # the noise that stands until the next crossing
_SHIFTS = 61
_FINE = 4  # what is told is read to this part of its own spread, unless the grid is coarser
_LEAST = 1e-300

_REPLAN_AFTER = 1.25  # a silence this much longer calls for another choice


def _normal_weights(points: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = np.exp(-points * points / 2)
    return weight / weight.sum()


class GuessOdds:
    """What becomes of a guess whose luck has a standard deviation of ``spread`` examples.

    ``shift`` lists where a guess can be put: how far above the value that stands it is expected.
    The noise of a comparison has two halves, one fresh for each question and one that stands until
    the next crossing; the latter is what silence lets one guess at, so a belief about it is kept.

    Arrays are indexed by that standing noise, by shift, and by how many cells the value falls:
    ``told`` and ``luck`` are the chance of each fall and the mean luck over it, ``stayed`` the
    chance of no crossing, ``hidden`` that of one which shows nothing.
    """

    def __init__(self, rule: ComparisonRule, spread: float) -> None:
        noise = math.hypot(spread, rule.compare)
        blur = math.hypot(spread, rule.release)
        self.cell = max(rule.grid, blur / _FINE)
        cells = math.ceil((rule.step + 2 * noise + 5 * blur) / self.cell)
        self.falls = np.arange(1, cells + 1)
        self.shift = np.linspace(-rule.step - 2 * noise, -rule.step + 4.5 * noise, _SHIFTS)
        wrong = self.shift[:, None] - spread * _LUCK  # counted from the value that stands
        slacks = _SLACKS if rule.standing else np.zeros(1)
        lead = -rule.step - wrong + rule.standing * slacks[:, None, None]
        crossed = _chance_below(lead, rule.fresh) * _normal_weights(_LUCK)
        self.stayed = 1 - crossed.sum(axis=2)
        # Told at least so many cells below the value; a crossing told no lower shows nothing.
        edges = -self.cell * (self.falls - 0.5)
        reached = _chance_below(edges[:, None, None] - wrong, rule.release)
        told = reached - np.concatenate((reached[1:], np.zeros_like(reached[:1])))
        by_shift = told.transpose(1, 2, 0)
        self.told = _sum_over_luck(crossed, by_shift)
        self.luck = _sum_over_luck(crossed * _LUCK, by_shift)
        self.hidden = 1 - self.stayed - self.told.sum(axis=2)
        self.fresh = _normal_weights(slacks)
        self.belief = self.fresh

    def begin(self) -> None:
        """Forget what silence told: another ladder, another noise."""
        self.belief = self.fresh

    def best(self, pace: float) -> int:
        """Return the shift that teaches most among those at which the value falls no faster."""
        told, luck = self._mixed()
        silent = 1 - told.sum(axis=1)
        gain = (luck**2 / np.maximum(told, _LEAST)).sum(axis=1)
        gain += luck.sum(axis=1) ** 2 / np.maximum(silent, 1e-9)
        fall = self.cell * (told @ self.falls)
        slow = fall <= pace
        return int(np.where(slow, gain, -1.0).argmax()) if slow.any() else _SHIFTS - 1

    def at(self, shift: float) -> int:
        """Return the index of the nearest shift."""
        return int(np.abs(self.shift - shift).argmin())

    def hear(self, at: int, fallen: float | None) -> float:
        """Return the mean luck of a guess after its release: how far the value fell, or None."""
        told, luck = self.belief @ self.told[:, at], self.belief @ self.luck[:, at]
        if fallen is not None:
            self.begin()  # the standing noise was drawn anew
            cell = min(max(round(fallen / self.cell), 1), len(self.falls)) - 1
            return float(luck[cell] / max(told[cell], _LEAST)) if told[cell] else 0.0
        hidden = float(self.belief @ self.hidden[:, at])
        self.belief = self.belief * self.stayed[:, at] + hidden * self.fresh
        self.belief = self.belief / self.belief.sum()
        return float(-luck.sum() / max(1 - told.sum(), 1e-9))

    def _mixed(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.tensordot(self.belief, self.told, 1), np.tensordot(self.belief, self.luck, 1)


def _sum_over_luck(
    crossed: NDArray[np.float64], by_shift: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Multiply what crossed, by slack, shift and luck, with what is told, by shift, luck, cell."""
    return np.ascontiguousarray((crossed.transpose(1, 0, 2) @ by_shift).transpose(1, 0, 2))


def _chance_below(distance: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return the chance that noise of this standard deviation stays below a distance."""
    return normal_cdf_array(distance / noise) if noise else (distance > 0).astype(float)


class RandomGuesses:
    """Ask whole random guesses, weigh each by the luck that the release lets expect, and vote.

    A guess is wrong on half of the hard examples, give or take ``sqrt(hard)/2``: its luck. The
    easy set puts it at a chosen distance above the value that stands, so that a release, or
    silence, says as much about the luck as the questions and the room left can pay for.
    """

    def __init__(self, game: Game, easy: RiskShifter, rule: ComparisonRule) -> None:
        self.game, self.easy, self.rule = game, easy, rule
        self.hard = game.n - easy.size
        self.spread = math.sqrt(self.hard) / 2
        self.votes = np.zeros(self.hard)

    def vote(self) -> NDArray[np.bool_]:
        """Return the weighted majority."""
        return self.votes > 0

    @cached_property
    def _odds(self) -> GuessOdds:
        return GuessOdds(self.rule, self.spread)

    def open(self, account: int = 0) -> float:
        """Ask a first guess with all easy examples wrong, and return the value that stands then."""
        release = self._tell(self._undecided(self.easy.size), account)
        if release.value is None:
            return self.easy.size + self.hard / 2
        return release.value * self.game.n

    def climb(self, value: float, *, account: int = 0, keep: int = 1) -> None:
        """Play a ladder that stands at ``value`` wrong examples, until ``keep`` questions are left.

        The shift is the one that teaches most at a pace that the room left allows. It is chosen
        anew after a release, and now and then in a long silence.
        """
        odds = self._odds
        odds.begin()
        shift, quiet, patience = 0.0, 0, 0
        while (left := self.game.remaining - keep) > 0:
            if quiet >= patience:
                room = max(value - self.hard / 2, 0) + self.spread
                shift = odds.shift[odds.best(room / left)]
                patience = max(quiet + 1, int(quiet * _REPLAN_AFTER))
            quiet += 1
            wrong = self.easy.clip(value + shift - self.hard / 2)
            at = odds.at(wrong + self.hard / 2 - value)
            guess = self._guess()
            release = self.easy.ask(self.game, guess, wrong, account=account)
            fallen = None
            if release.score is not None and release.value is not None:
                fallen = value - release.value * self.game.n
                value -= fallen
                quiet = patience = 0
            self._weigh(guess, odds.hear(at, fallen))

    def listen(self) -> None:
        """Play against a mechanism that says something about every model."""
        wrong = self._undecided(self.easy.size // 2)
        while self.game.remaining > 1:
            self._tell(wrong, 0)

    def _undecided(self, wrong: int) -> int:
        """Return about so many wrong easy examples, but half way between two things to be told."""
        grid = self.rule.grid
        if grid < self.spread / 2:
            return wrong
        middle = (math.floor((wrong + self.hard / 2) / grid) - 0.5) * grid
        return self.easy.clip(middle - self.hard / 2)

    def _tell(self, wrong: int, account: int) -> Release:
        """Ask a guess that is sure to be told of, and weigh it by what is told."""
        guess = self._guess()
        release = self.easy.ask(self.game, guess, wrong, account=account)
        if release.score is not None:
            lead = wrong + self.hard / 2 - release.score * self.game.n
            self._weigh(guess, self._luck(lead))
        return release

    def _luck(self, lead: float) -> float:
        """Return the mean luck of a guess told to be so many examples better than expected."""
        if self.rule.release:
            return lead * self.spread / (self.spread**2 + self.rule.blur)
        half = self.rule.grid / 2
        if not half:
            return lead / self.spread
        return truncated_mean((lead - half) / self.spread, (lead + half) / self.spread)

    def _guess(self) -> NDArray[np.bool_]:
        return unpack_bits(random_bits(self.game.rng, self.hard), self.hard)

    def _weigh(self, guess: NDArray[np.bool_], luck: float) -> None:
        """Let a guess vote by the log-odds that it is right on an example."""
        edge = min(max(luck * self.spread / self.hard, -0.49), 0.49)
        weight = math.log((0.5 + edge) / (0.5 - edge))
        self.votes += np.where(guess, weight, -weight)
