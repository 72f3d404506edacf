"""Tactic of the shifted majority attack when small differences are visible: local search."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.analysts._shifted._comparison_rule import (
    normal_cdf,
    normal_density,
    upper_quantile,
    upper_tail_mean,
)
from ladderboard.analysts._shifted._placement import LadderRungs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
    from ladderboard.mechanisms import Release

_MIN_DOUBT = 1e-4  # the smallest doubt about an example
_EXACT_VARIANCE = 0.3  # below this variance a count of examples counts as known

_MAX_RELEASE_RATE = 0.65  # releases more frequent than this teach little
_MAX_BREADTH = 3.0  # no set is larger than this many times what the expected releases would cover
_MIN_PROMISE = 0.8  # a set is asked if it promises this share of what the best one does
_MIN_QUEUED_SETS = 3  # sets in a queue at least, so that no set is asked twice
_MAX_COUNTED = 400  # sets up to this size are treated exactly


class Flip(NamedTuple):
    """A set of examples to flip, and what to expect of the flipped model.

    ``wrong`` is the expected number of wrong ones among them; ``expected`` and ``variance``
    describe how many hard examples the flipped model has wrong; ``share`` is the share of the
    total doubt that lies in the set.
    """

    examples: NDArray[np.intp]
    wrong: float
    expected: float
    variance: float
    share: float


class LabelBeliefs:
    """A base vector of predictions and, for each, the doubt: the chance that it is wrong.

    Releases show the total number of wrong ones more precisely than the doubts do. It is modelled
    as normal with ``mean`` and ``variance``; given it, doubts are independent except for their sum.
    """

    def __init__(
        self, rng: np.random.Generator, hard: int, votes: NDArray[np.float64] | None = None
    ) -> None:
        self.hard = hard
        self.base = rng.integers(0, 2, hard).astype(np.bool_)
        self.doubt = np.full(hard, 0.5)
        if votes is not None:  # log-odds of the label 1
            self.base = np.where(votes == 0, self.base, votes > 0)
            self.doubt = 1 / (1 + np.exp(np.abs(votes)))
        self._sum = self.mean = float(self.doubt.sum())
        self._spread = self.variance = float((self.doubt * (1 - self.doubt)).sum())

    @property
    def exact(self) -> bool:
        """Whether the number of wrong examples is known."""
        return self.variance < _EXACT_VARIANCE

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.base ^ (self.doubt > 0.5)

    def update_total(self, wrong: float, blur: float) -> None:
        """Update the number of wrong ones by a released score with variance ``blur``."""
        trust = self.variance / (self.variance + blur) if self.variance + blur else 0.0
        self.mean += trust * (wrong - self.mean)
        self.variance *= 1 - trust

    def match_total(self) -> None:
        """Adjust the doubts to the number of wrong examples, the most doubtful ones most."""
        variance = self.doubt * (1 - self.doubt)
        self.doubt += (self.mean - self.doubt.sum()) * variance / max(variance.sum(), 1e-300)
        np.clip(self.doubt, _MIN_DOUBT, 1 - _MIN_DOUBT, out=self.doubt)
        self._sum = float(self.doubt.sum())
        self._spread = float((self.doubt * (1 - self.doubt)).sum())

    def describe_flip(self, examples: NDArray[np.intp]) -> Flip:
        """Return what to expect of the model that flips these examples."""
        doubt = self.doubt[examples]
        spread = float((doubt * (1 - doubt)).sum())
        share = min(spread / self._spread, 1.0)
        wrong = float(doubt.sum()) + share * (self.mean - self._sum)
        wrong = min(max(wrong, 0.0), float(len(examples)))
        expected = self.mean + len(examples) - 2 * wrong
        variance = (1 - 2 * share) ** 2 * self.variance + 4 * spread * (1 - share)
        return Flip(examples, wrong, expected, variance, share)

    def learn(self, flip: Flip, wrong: float) -> None:
        """Adjust doubts: ``wrong`` of the flipped examples are now believed wrong."""
        doubt = self.doubt[flip.examples]
        variance = doubt * (1 - doubt)
        before, spread = doubt.sum(), variance.sum()
        doubt += (wrong - before) * variance / max(spread, 1e-300)
        np.clip(doubt, _MIN_DOUBT, 1 - _MIN_DOUBT, out=doubt)
        self.doubt[flip.examples] = doubt
        self._sum += float(doubt.sum() - before)
        self._spread += float((doubt * (1 - doubt)).sum() - spread)

    def accept(self, flip: Flip, mean: float, variance: float) -> None:
        """Make the flipped model the base, with this mean and variance of wrong examples."""
        chosen = flip.examples
        self.base[chosen] ^= True
        before = self.doubt[chosen]
        self.doubt[chosen] = 1 - before
        self._sum += float((1 - 2 * before).sum())
        self.mean, self.variance = mean, max(variance, 0.0)

    def regress(self, flip: Flip, surprise: float, left: float) -> float:
        """Return the wrong ones among the flipped, and update the base, by linear regression.

        The flipped model has ``surprise`` more wrong examples than expected, with variance
        ``left`` remaining.
        """
        if not flip.variance:
            return flip.wrong
        carried = (1 - 2 * flip.share) * self.variance
        inner = (flip.variance - (1 - 2 * flip.share) * carried) / 4
        wrong = flip.wrong + (flip.share * carried - 2 * inner) / flip.variance * surprise
        gone = max(1 - left / flip.variance, 0.0)
        self.mean += carried / flip.variance * surprise
        self.variance = max(self.variance - carried**2 / flip.variance * gone, 0.0)
        return min(max(wrong, 0.0), float(len(flip.examples)))


def binomial_probabilities(chance: float, size: int) -> NDArray[np.float64]:
    """Return the binomial probabilities of 0 .. ``size`` successes."""
    chance = min(max(chance, 1e-12), 1 - 1e-12)
    number = np.arange(1, size + 1)
    ratios = np.log((size - number + 1) / number) + math.log(chance / (1 - chance))
    logs = np.concatenate(([0.0], np.cumsum(ratios)))
    odds = np.exp(logs - logs.max())
    return odds / odds.sum()


class ReleaseTarget(NamedTuple):
    """How often to get a release, the luck that it takes, and the mean luck of released sets."""

    chance: float
    luck: float
    mean: float


class LocalSearch:
    """Keep a base model, flip a set of its doubtful examples, and learn from release or silence.

    Easy mistakes shift the flipped model so that it is released only if the flips are luckier than
    ``luck`` standard deviations above their expectation. A released model becomes the base, so
    its luck is kept and pays for part of the next step. How often to get a release follows from
    the remaining questions and steps; how many examples to flip follows from how good the base
    already is: many at first, one by one at the end.
    """

    def __init__(
        self,
        game: Game,
        shifter: RiskShifter,
        rule: ComparisonRule,
        *,
        votes: NDArray[np.float64] | None = None,
    ) -> None:
        self.game, self.shifter, self.rule = game, shifter, rule
        self.beliefs = LabelBeliefs(game.rng, game.n - shifter.size, votes)
        self.wrong = shifter.size  # easy mistakes of the best model
        self.spread = math.sqrt(self.beliefs.hard) / 2
        self._rungs = LadderRungs.from_mechanism(game.mechanism, game.n)
        self._queue: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._size = 0

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.beliefs.vote()

    def open_ladder(self, account: int = 0) -> float:
        """Ask a first model with all easy examples wrong, and return the ladder's value."""
        if self.game.asked:
            release = self._ask_scored_flip(self.shifter.size, account, left=self.game.remaining)
        else:
            release = self.shifter.ask(
                self.game, self.beliefs.base, self.shifter.size, account=account
            )
            if release.score is not None:
                self.beliefs.update_total(
                    release.score * self.game.n - self.shifter.size, self.rule.blur
                )
        if release.value is None:
            return self.shifter.size + self.beliefs.mean
        return release.value * self.game.n

    def climb(self, value: float, *, account: int = 0, keep: int = 1) -> None:
        """Play a ladder at ``value`` wrong examples until ``keep`` questions are left."""
        if self.rule.by_difference:
            self.beliefs.variance = 0.0  # common mistakes cancel in the comparison
        while (left := self.game.remaining - keep) > 0:
            if self._rungs.by_value:
                self.rule = self._rungs.rule_at(value, self.game.changes_of(account))
            if self.rule.by_difference:
                value = self.wrong + self.beliefs.mean
            target = self._choose_target(value, left)
            flip = self.beliefs.describe_flip(self._next_set(target, target.chance * left))
            spread = math.sqrt(flip.variance)
            self.spread = 0.9 * self.spread + 0.1 * spread
            margin = self.rule.margin(len(flip.examples) + 1)
            threshold = value - margin
            wrong = self.shifter.clip(threshold + target.luck * spread - flip.expected)
            if self.rule.by_difference:
                threshold = value - self.rule.margin(len(flip.examples) + abs(self.wrong - wrong))
                wrong = self.shifter.clip(threshold + target.luck * spread - flip.expected)
            release = self.shifter.ask(self.game, self._flipped_model(flip), wrong, account=account)
            mean, variance = self._learn(flip, wrong, threshold, release)
            if ladder_moved(release):
                # Released because easy examples paid for it, it may still be the worse model.
                if mean < self.beliefs.mean or self.rule.by_difference:
                    self.beliefs.accept(flip, mean, variance)
                self.wrong = wrong
                value = self._value_after(release, threshold, wrong + mean)

    def play_with_scores(self) -> None:
        """Play against a mechanism that releases nearly exact scores for every model."""
        while (left := self.game.remaining - 1) > 0:
            self._ask_scored_flip(self.shifter.size, 0, left=left)

    def _ask_scored_flip(self, wrong: int, account: int, *, left: int) -> Release:
        """Ask a set of flips that is sure to get a score, and learn from the score."""
        blur = self.rule.blur
        size = max(math.ceil(self.beliefs.hard / left), math.ceil(4 * blur))
        if len(self._queue) < size:
            self.beliefs.match_total()
            self._queue = np.argsort(np.abs(self.beliefs.doubt - 0.5) + 1e-6 * self._jitter())
        flip = self.beliefs.describe_flip(self._take(min(size, self.beliefs.hard)))
        release = self.shifter.ask(self.game, self._flipped_model(flip), wrong, account=account)
        if release.score is not None and flip.variance:
            errors = release.score * self.game.n - wrong
            trust = flip.variance / (flip.variance + blur)
            surprise = trust * (errors - flip.expected)
            flipped_wrong = self.beliefs.regress(flip, surprise, flip.variance * (1 - trust))
            self.beliefs.learn(flip, flipped_wrong)
        return release

    def _value_after(self, release: Release, threshold: float, believed: float) -> float:
        """Return the ladder's value after a move, estimated if it is not released."""
        if release.value is not None:
            return release.value * self.game.n
        grid = self.rule.grid or 1.0
        return min(round(believed / grid) * grid, threshold)

    def _choose_target(self, value: float, left: int) -> ReleaseTarget:
        """Return how often to get a release, from the remaining questions and steps."""
        over = self.spread / 2  # how far below the threshold a released model falls
        step = self.rule.margin(max(self._size, 1)) + (over if over > self.rule.grid / 2 else 0.5)
        steps = (max(value - self.beliefs.mean, 0) + math.sqrt(self.beliefs.hard)) / step
        chance = min(max(min(_MAX_RELEASE_RATE, steps / left), 1 / max(left, 2)), _MAX_RELEASE_RATE)
        luck = upper_quantile(chance)
        return ReleaseTarget(chance, luck, upper_tail_mean(luck))

    def _next_set(self, target: ReleaseTarget, releases: float) -> NDArray[np.intp]:
        """Return the next set to flip, from the most doubtful examples not yet asked."""
        if len(self._queue) < self._size or not self._size:
            self._fill_queue(target, releases)
        return self._take(self._size)

    def _take(self, size: int) -> NDArray[np.intp]:
        """Take examples from the queue."""
        taken, self._queue = self._queue[:size], self._queue[size:]
        return taken

    def _fill_queue(self, target: ReleaseTarget, releases: float) -> None:
        """Sort examples by doubt; choose how many to flip, and how far down to go."""
        beliefs = self.beliefs
        beliefs.match_total()
        order = np.argsort(-(beliefs.doubt + 1e-6 * self._jitter()))
        doubt = beliefs.doubt[order]
        hope = np.cumsum(2 * doubt - 1)
        spread = np.cumsum(doubt * (1 - doubt))
        luck = 2 * np.sqrt(spread * np.maximum(1 - spread / spread[-1], 0))
        best = int((hope + target.mean * luck).argmax()) + 1
        limit = _MAX_BREADTH * beliefs.hard / max(releases, 1)
        self._size = size = max(min(best, math.ceil(limit)), 1)
        # Sets further down the queue promise less; stop at one that promises too little.
        starts = np.arange(0, beliefs.hard - size + 1, size)
        hopes = np.concatenate(([0.0], hope))
        spreads = np.concatenate(([0.0], spread))
        sums = hopes[starts + size] - hopes[starts]
        lucks = 2 * np.sqrt(np.maximum(spreads[starts + size] - spreads[starts], 0))
        promise = sums + target.mean * lucks
        sets = int((promise >= _MIN_PROMISE * promise[0]).sum()) if promise[0] > 0 else 1
        if size > beliefs.hard // 4:
            sets = 1  # a set and its complement would ask the same question
        pool = order[: max(sets, _MIN_QUEUED_SETS) * size]
        self._queue = self.game.rng.permutation(order if size > beliefs.hard // 4 else pool)

    def _flipped_model(self, flip: Flip) -> NDArray[np.bool_]:
        """Return the base with a set flipped."""
        model = self.beliefs.base.copy()
        model[flip.examples] ^= True
        return model

    def _learn(
        self, flip: Flip, wrong: int, threshold: float, release: Release
    ) -> tuple[float, float]:
        """Learn from a release or silence; return mean and variance of the model's hard errors."""
        errors = None if release.score is None else release.score * self.game.n - wrong
        if self.rule.by_difference and self.rule.blur >= 1:
            errors = None  # a blurred score says little about the difference
        moved = ladder_moved(release)
        threshold -= wrong
        if self.beliefs.exact and len(flip.examples) <= _MAX_COUNTED:
            exact = self._learn_exactly(flip, threshold, errors, moved=moved)
            if exact:
                return exact
        spread = math.sqrt(flip.variance)
        mean, variance = flip.expected, flip.variance
        if spread and (errors is None or self.rule.blur >= 1):
            sign = 1 if moved else -1
            lead = (threshold - mean) / spread
            tilt = normal_density(lead) / max(normal_cdf(sign * lead), 1e-12)
            mean -= sign * spread * tilt
            variance *= max(1 - tilt * (tilt + sign * lead), 1e-6)
        if errors is not None:
            trust = variance / (variance + self.rule.blur) if variance else 0.0
            mean += trust * (errors - mean)
            variance *= 1 - trust
        flipped_wrong = self.beliefs.regress(flip, mean - flip.expected, variance)
        self.beliefs.learn(flip, flipped_wrong)
        return mean, variance

    def _learn_exactly(
        self, flip: Flip, threshold: float, released: float | None, *, moved: bool
    ) -> tuple[float, float] | None:
        """Learn from the counts that fit the release, if the base's errors are known exactly."""
        size = len(flip.examples)
        wrong = np.arange(size + 1)
        errors = self.beliefs.mean + size - 2 * wrong
        chances = binomial_probabilities(flip.wrong / size, size)
        chances *= (errors < threshold - 1e-6) == moved
        if released is not None:
            chances *= np.abs(errors - released) <= self.rule.grid / 2 + 0.6
        total = float(chances.sum())
        if not total:
            return None
        chances /= total
        mean = float(chances @ wrong)
        self.beliefs.learn(flip, mean)
        return (
            float(chances @ errors),
            4 * max(float(chances @ (wrong * wrong)) - mean * mean, 0.0),
        )

    def _jitter(self) -> NDArray[np.float64]:
        return self.game.rng.random(self.beliefs.hard)


def ladder_moved(release: Release) -> bool:
    """Return whether the ladder accepted the model, even if its value did not fall."""
    return release.improved or release.score is not None
