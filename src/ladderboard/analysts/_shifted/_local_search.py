"""How the shifted majority attack plays where small differences can be seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.analysts._shifted._normal import (
    normal_cdf,
    normal_density,
    upper_quantile,
    upper_tail_mean,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
    from ladderboard.mechanisms import Release

_MIN_DOUBT = 1e-4  # no example is ever believed beyond this
_EXACT_VARIANCE = 0.3  # a variance below which a count of examples is known

_MAX_RELEASE_RATE = 0.65  # to be told more often than this teaches little and costs room
_MAX_BREADTH = 3.0  # no set is larger than this many times what the tellings left would cover
_MIN_PROMISE = 0.8  # a set is asked while it promises this part of what the best one did
_MIN_QUEUED_SETS = 3  # a queue holds so many sets at least, so that no set comes back as it was
_MAX_COUNTED = 400  # sets up to this size are reckoned example by example


class Flip(NamedTuple):
    """A set of examples to flip: how many of them are believed wrong, and what that makes likely.

    ``wrong`` is the expected number of wrong ones among them; ``expected`` and ``variance``
    describe how many hard examples the flipped model has wrong; ``share`` is the part of all
    doubt that lies in the set.
    """

    examples: NDArray[np.intp]
    wrong: float
    expected: float
    variance: float
    share: float


class LabelBeliefs:
    """A base vector of predictions and, for each, the doubt: the chance that it is wrong.

    The number of wrong ones in all is known better than the doubts alone would tell, because
    releases speak of it. It is believed normal with ``mean`` and ``variance``; given it, doubts
    are independent but for their sum.
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

    def hear(self, wrong: float, blur: float) -> None:
        """Take in what was told about the base itself, with this variance."""
        trust = self.variance / (self.variance + blur) if self.variance + blur else 0.0
        self.mean += trust * (wrong - self.mean)
        self.variance *= 1 - trust

    def settle(self) -> None:
        """Make the doubts agree with the number of wrong examples, moving the doubtful most."""
        room = self.doubt * (1 - self.doubt)
        self.doubt += (self.mean - self.doubt.sum()) * room / max(room.sum(), 1e-300)
        np.clip(self.doubt, _MIN_DOUBT, 1 - _MIN_DOUBT, out=self.doubt)
        self._sum = float(self.doubt.sum())
        self._spread = float((self.doubt * (1 - self.doubt)).sum())

    def flip(self, examples: NDArray[np.intp]) -> Flip:
        """Describe the model that flips these."""
        doubt = self.doubt[examples]
        spread = float((doubt * (1 - doubt)).sum())
        share = min(spread / self._spread, 1.0)
        wrong = float(doubt.sum()) + share * (self.mean - self._sum)
        wrong = min(max(wrong, 0.0), float(len(examples)))
        expected = self.mean + len(examples) - 2 * wrong
        variance = (1 - 2 * share) ** 2 * self.variance + 4 * spread * (1 - share)
        return Flip(examples, wrong, expected, variance, share)

    def learn(self, flip: Flip, wrong: float) -> None:
        """Take in that so many of the flipped examples are believed wrong now."""
        doubt = self.doubt[flip.examples]
        room = doubt * (1 - doubt)
        before, spread = doubt.sum(), room.sum()
        doubt += (wrong - before) * room / max(spread, 1e-300)
        np.clip(doubt, _MIN_DOUBT, 1 - _MIN_DOUBT, out=doubt)
        self.doubt[flip.examples] = doubt
        self._sum += float(doubt.sum() - before)
        self._spread += float((doubt * (1 - doubt)).sum() - spread)

    def accept(self, flip: Flip, mean: float, variance: float) -> None:
        """Make the flipped model the base; it has so many wrong."""
        chosen = flip.examples
        self.base[chosen] ^= True
        before = self.doubt[chosen]
        self.doubt[chosen] = 1 - before
        self._sum += float((1 - 2 * before).sum())
        self.mean, self.variance = mean, max(variance, 0.0)

    def regress(self, flip: Flip, moved: float, left: float) -> float:
        """Return the wrong ones among the flipped, and correct the base, by linear regression.

        The flipped model's wrong examples turned out ``moved`` above what was expected, with
        variance ``left`` remaining.
        """
        if not flip.variance:
            return flip.wrong
        carried = (1 - 2 * flip.share) * self.variance
        inner = (flip.variance - (1 - 2 * flip.share) * carried) / 4
        wrong = flip.wrong + (flip.share * carried - 2 * inner) / flip.variance * moved
        gone = max(1 - left / flip.variance, 0.0)
        self.mean += carried / flip.variance * moved
        self.variance = max(self.variance - carried**2 / flip.variance * gone, 0.0)
        return min(max(wrong, 0.0), float(len(flip.examples)))


def binomial_probabilities(chance: float, most: int) -> NDArray[np.float64]:
    """Return the binomial probabilities of 0 .. ``most``."""
    chance = min(max(chance, 1e-12), 1 - 1e-12)
    number = np.arange(1, most + 1)
    ratios = np.log((most - number + 1) / number) + math.log(chance / (1 - chance))
    logs = np.concatenate(([0.0], np.cumsum(ratios)))
    odds = np.exp(logs - logs.max())
    return odds / odds.sum()


class ReleaseTarget(NamedTuple):
    """How often to be told, how lucky a set must be for it, and how lucky those told will be."""

    chance: float
    least: float
    mean: float


class LocalSearch:
    """Keep a base model, flip a set of its doubtful examples, and learn from release or silence.

    Every question asks: is this set of flips lucky? The easy set puts the flipped model so that it
    is told only if more of the flips were right than ``least`` standard deviations above what was
    expected. A told model becomes the base, so its luck is kept, and pays for part of the step to
    the next rung. How patient to be follows from the questions and the rungs left; how many to
    flip from how good the base already is: many at first, one by one at the end.
    """

    def __init__(
        self,
        game: Game,
        easy: RiskShifter,
        rule: ComparisonRule,
        *,
        votes: NDArray[np.float64] | None = None,
    ) -> None:
        self.game, self.easy, self.rule = game, easy, rule
        self.beliefs = LabelBeliefs(game.rng, game.n - easy.size, votes)
        self.wrong = easy.size  # easy examples that the best model has wrong
        self.spread = math.sqrt(self.beliefs.hard) / 2
        self._queue: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._size = 0

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.beliefs.vote()

    def open(self, account: int = 0) -> float:
        """Ask a first model with all easy examples wrong, and return the value that stands then."""
        if self.game.asked:
            release = self._tell(self.easy.size, account, left=self.game.remaining)
        else:
            release = self.easy.ask(self.game, self.beliefs.base, self.easy.size, account=account)
            if release.score is not None:
                self.beliefs.hear(release.score * self.game.n - self.easy.size, self.rule.blur)
        if release.value is None:
            return self.easy.size + self.beliefs.mean
        return release.value * self.game.n

    def climb(self, value: float, *, account: int = 0, keep: int = 1) -> None:
        """Play a ladder that stands at ``value`` wrong, until ``keep`` questions are left."""
        if self.rule.by_difference:
            self.beliefs.variance = 0.0  # what both have wrong cancels in the comparison
        while (left := self.game.remaining - keep) > 0:
            if self.rule.by_difference:
                value = self.wrong + self.beliefs.mean
            patience = self.patience(value, left)
            flip = self.beliefs.flip(self.next_set(patience, patience.chance * left))
            spread = math.sqrt(flip.variance)
            self.spread = 0.9 * self.spread + 0.1 * spread
            margin = self.rule.margin(len(flip.examples) + 1)
            line = value - margin
            wrong = self.easy.clip(line + patience.least * spread - flip.expected)
            if self.rule.by_difference:
                line = value - self.rule.margin(len(flip.examples) + abs(self.wrong - wrong))
                wrong = self.easy.clip(line + patience.least * spread - flip.expected)
            release = self.easy.ask(self.game, self.flipped(flip), wrong, account=account)
            mean, variance = self.learn(flip, wrong, line, release)
            if ladder_moved(release):
                # Told because easy examples paid for it, it may still be the worse model.
                if mean < self.beliefs.mean or self.rule.by_difference:
                    self.beliefs.accept(flip, mean, variance)
                self.wrong = wrong
                value = self.stands(release, line, wrong + mean)

    def listen(self) -> None:
        """Play against a mechanism that tells every model's score, nearly exactly."""
        while (left := self.game.remaining - 1) > 0:
            self._tell(self.easy.size, 0, left=left)

    def _tell(self, wrong: int, account: int, *, left: int) -> Release:
        """Ask a set of flips that is sure to be told of, and learn from what is told."""
        blur = self.rule.blur
        size = max(math.ceil(self.beliefs.hard / left), math.ceil(4 * blur))
        if len(self._queue) < size:
            self.beliefs.settle()
            self._queue = np.argsort(np.abs(self.beliefs.doubt - 0.5) + 1e-6 * self._jitter())
        flip = self.beliefs.flip(self.take(min(size, self.beliefs.hard)))
        release = self.easy.ask(self.game, self.flipped(flip), wrong, account=account)
        if release.score is not None and flip.variance:
            told = release.score * self.game.n - wrong
            trust = flip.variance / (flip.variance + blur)
            moved = trust * (told - flip.expected)
            right = self.beliefs.regress(flip, moved, flip.variance * (1 - trust))
            self.beliefs.learn(flip, right)
        return release

    def stands(self, release: Release, line: float, believed: float) -> float:
        """Return the value after a change; where it is not told it is reckoned."""
        if release.value is not None:
            return release.value * self.game.n
        grid = self.rule.grid or 1.0
        return min(round(believed / grid) * grid, line)

    def patience(self, value: float, left: int) -> ReleaseTarget:
        """Choose how often to be told from the questions and the rungs left."""
        over = self.spread / 2  # how far below the line a told model falls
        rung = self.rule.margin(max(self._size, 1)) + (over if over > self.rule.grid / 2 else 0.5)
        rungs = (max(value - self.beliefs.mean, 0) + math.sqrt(self.beliefs.hard)) / rung
        chance = min(max(min(_MAX_RELEASE_RATE, rungs / left), 1 / max(left, 2)), _MAX_RELEASE_RATE)
        least = upper_quantile(chance)
        return ReleaseTarget(chance, least, upper_tail_mean(least))

    def next_set(self, patience: ReleaseTarget, tellings: float) -> NDArray[np.intp]:
        """Return the next set to flip, from the most doubtful examples that were not asked yet."""
        if len(self._queue) < self._size or not self._size:
            self.line_up(patience, tellings)
        return self.take(self._size)

    def take(self, size: int) -> NDArray[np.intp]:
        """Take examples from the queue."""
        taken, self._queue = self._queue[:size], self._queue[size:]
        return taken

    def line_up(self, patience: ReleaseTarget, tellings: float) -> None:
        """Sort examples by doubt; choose how many to flip, and how far down to go."""
        beliefs = self.beliefs
        beliefs.settle()
        order = np.argsort(-(beliefs.doubt + 1e-6 * self._jitter()))
        doubt = beliefs.doubt[order]
        hope = np.cumsum(2 * doubt - 1)
        spread = np.cumsum(doubt * (1 - doubt))
        luck = 2 * np.sqrt(spread * np.maximum(1 - spread / spread[-1], 0))
        best = int((hope + patience.mean * luck).argmax()) + 1
        most = _MAX_BREADTH * beliefs.hard / max(tellings, 1)
        self._size = size = max(min(best, math.ceil(most)), 1)
        # Sets further down the queue promise less; stop where one promises too little.
        starts = np.arange(0, beliefs.hard - size + 1, size)
        hopes = np.concatenate(([0.0], hope))
        spreads = np.concatenate(([0.0], spread))
        sums = hopes[starts + size] - hopes[starts]
        lucks = 2 * np.sqrt(np.maximum(spreads[starts + size] - spreads[starts], 0))
        promise = sums + patience.mean * lucks
        sets = int((promise >= _MIN_PROMISE * promise[0]).sum()) if promise[0] > 0 else 1
        if size > beliefs.hard // 4:
            sets = 1  # a set and its complement would ask the same twice
        pool = order[: max(sets, _MIN_QUEUED_SETS) * size]
        self._queue = self.game.rng.permutation(order if size > beliefs.hard // 4 else pool)

    def flipped(self, flip: Flip) -> NDArray[np.bool_]:
        """Return the base with a set flipped."""
        model = self.beliefs.base.copy()
        model[flip.examples] ^= True
        return model

    def learn(self, flip: Flip, wrong: int, line: float, release: Release) -> tuple[float, float]:
        """Take in a release or silence; return the mean and variance of the model's hard errors."""
        told = None if release.score is None else release.score * self.game.n - wrong
        if self.rule.by_difference and self.rule.blur >= 1:
            told = None  # a blurred word about the whole says little about the difference
        moved = ladder_moved(release)
        line -= wrong
        if self.beliefs.exact and len(flip.examples) <= _MAX_COUNTED:
            counted = self.count(flip, line, told, moved=moved)
            if counted:
                return counted
        spread = math.sqrt(flip.variance)
        mean, variance = flip.expected, flip.variance
        if spread and (told is None or self.rule.blur >= 1):
            sign = 1 if moved else -1
            lead = (line - mean) / spread
            tilt = normal_density(lead) / max(normal_cdf(sign * lead), 1e-12)
            mean -= sign * spread * tilt
            variance *= max(1 - tilt * (tilt + sign * lead), 1e-6)
        if told is not None:
            trust = variance / (variance + self.rule.blur) if variance else 0.0
            mean += trust * (told - mean)
            variance *= 1 - trust
        right = self.beliefs.regress(flip, mean - flip.expected, variance)
        self.beliefs.learn(flip, right)
        return mean, variance

    def count(
        self, flip: Flip, line: float, told: float | None, *, moved: bool
    ) -> tuple[float, float] | None:
        """Learn exactly, where the base is known, from the numbers that fit the release."""
        size = len(flip.examples)
        wrong = np.arange(size + 1)
        errors = self.beliefs.mean + size - 2 * wrong
        chances = binomial_probabilities(flip.wrong / size, size)
        chances *= (errors < line - 1e-6) == moved
        if told is not None:
            chances *= np.abs(errors - told) <= self.rule.grid / 2 + 0.6
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
    """Tell whether a ladder took the model: some say so without the value going down."""
    return release.improved or release.score is not None
