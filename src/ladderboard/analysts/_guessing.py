"""Fresh guesses: how the shifted majority attack plays where noise hides small differences."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.analysts._bits import random_bits, unpack
from ladderboard.analysts._normal import mean_within
from ladderboard.analysts._odds import Odds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._easy_set import EasySet
    from ladderboard.analysts._game import Game
    from ladderboard.analysts._rule import Rule
    from ladderboard.mechanisms import Release

__all__ = ["Guessing"]

_OFTENER = 1.25  # a silence this much longer calls for another choice


class Guessing:
    """Ask whole random guesses, weigh each by the luck that the release lets expect, and vote.

    A guess is wrong on half of the hard examples, give or take ``sqrt(hard)/2``: its luck. The
    easy set puts it at a chosen distance above the value that stands, so that a release, or
    silence, says as much about the luck as the questions and the room left can pay for.
    """

    def __init__(self, game: Game, easy: EasySet, rule: Rule) -> None:
        self.game, self.easy, self.rule = game, easy, rule
        self.hard = game.n - easy.size
        self.spread = math.sqrt(self.hard) / 2
        self.votes = np.zeros(self.hard)

    def vote(self) -> NDArray[np.bool_]:
        """Return the weighted majority."""
        return self.votes > 0

    @cached_property
    def _odds(self) -> Odds:
        return Odds(self.rule, self.spread)

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
                patience = max(quiet + 1, int(quiet * _OFTENER))
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
        return mean_within((lead - half) / self.spread, (lead + half) / self.spread)

    def _guess(self) -> NDArray[np.bool_]:
        return unpack(random_bits(self.game.rng, self.hard), self.hard)

    def _weigh(self, guess: NDArray[np.bool_], luck: float) -> None:
        """Let a guess vote by the log-odds that it is right on an example."""
        edge = min(max(luck * self.spread / self.hard, -0.49), 0.49)
        weight = math.log((0.5 + edge) / (0.5 - edge))
        self.votes += np.where(guess, weight, -weight)
