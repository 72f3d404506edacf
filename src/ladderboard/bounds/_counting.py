"""Counting transcripts, and the price of one in nats.

Proofs: docs/explanation/certificates.md, "Counting" and "Weights".
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ladderboard.bounds._transcript import ChangeHistory, Transcript

_MAX_DIRECT_TERMS = 1000
# Prices are rounded up by this fraction, more than all rounding errors on the way to them and from
# them to an interval: docs/explanation/certificates.md, "In floating point".
_ROUND_UP_FACTOR = 1e-11


@lru_cache(maxsize=65_536)
def log_binomial(total: int, chosen: int) -> float:
    """Return the logarithm of a binomial coefficient; up to rounding never too small.

    >>> round(math.exp(log_binomial(10, 3)))
    120
    """
    if not 0 <= chosen <= total:
        return -math.inf
    chosen = min(chosen, total - chosen)
    if chosen <= _MAX_DIRECT_TERMS:
        index = np.arange(chosen, dtype=np.float64)
        return float(np.log((total - index) / (chosen - index)).sum())
    # Stirling's series, cut above for the whole and below for the parts: an upper bound on paper,
    # off by less than 1e-11.
    rest = total - chosen
    entropy = chosen * math.log(total / chosen) - rest * math.log1p(-chosen / total)
    root = 0.5 * math.log(total / (2 * math.pi * chosen * rest))
    return (
        entropy
        + root
        + 1 / (12 * total)
        - _stirling_tail_lower_bound(chosen)
        - _stirling_tail_lower_bound(rest)
    )


def _stirling_tail_lower_bound(number: int) -> float:
    """Return a lower bound on the remainder of Stirling's formula for ln(number!)."""
    return 1 / (12 * number) - 1 / (360 * number**3)


@dataclass(frozen=True)
class ReleaseValues:
    """The values that a ladder's changes may have.

    Parameters
    ----------
    points
        How many values the first change may take.
    max_changes
        The largest number of changes one ladder can make.
    drop
        By how many cells a change lowers the value at least.
    """

    points: int
    max_changes: int
    drop: int = 1

    def log_count(self, changes: int) -> float:
        """Return (a bound on) the logarithm of the number of sequences of one ladder."""
        raise NotImplementedError

    def log_shared(self, changes: int, ladders: int) -> float:
        """Return the same for a number of changes on several ladders together."""
        # In order of time, since replay shows whose change it is; or as a set of (ladder, value).
        in_time = changes * math.log(self.points) if self.points else -math.inf
        return min(in_time, self._log_sets(changes, ladders)) if changes else 0.0

    def log_split(self, changes: Sequence[int]) -> float | None:
        """Return the same for given numbers of changes on each ladder; None if not used."""
        return None

    def _log_sets(self, changes: int, ladders: int) -> float:
        return log_binomial(ladders * self.points, changes)


@dataclass(frozen=True)
class GridValues(ReleaseValues):
    """Values on a grid, each lower than the last by at least ``drop`` cells."""

    @classmethod
    def from_grid(cls, points: int, drop: int) -> GridValues:
        """Return the cells of a grid; b changes need 1 + (b - 1) drop points."""
        points = max(points, 0)
        return cls(points, (points + drop - 1) // drop, drop)

    def log_count(self, changes: int) -> float:
        """Return ln C(points - (b - 1)(drop - 1), b)."""
        if changes == 0:
            return 0.0
        return log_binomial(self.points - (changes - 1) * (self.drop - 1), changes)

    def log_split(self, changes: Sequence[int]) -> float:
        """Return the sum over ladders."""
        return sum(map(self.log_count, changes))


@dataclass(frozen=True)
class FallingValues(ReleaseValues):
    """Strictly falling values on ``points`` points, counted as points^b / b!.

    A little more than C(points, b), so that the bound falls as the number of points, which is
    here that of the examples, grows.
    """

    def log_count(self, changes: int) -> float:
        """Return b ln(points) - ln(b!)."""
        return self._log_sets(changes, 1)

    def _log_sets(self, changes: int, ladders: int) -> float:
        return changes * math.log(ladders * self.points) - math.lgamma(changes + 1)


@dataclass(frozen=True)
class HiddenValues(ReleaseValues):
    """Changes are visible, their values are not."""

    def log_count(self, changes: int) -> float:
        """Return ln 1: no value is visible."""
        return 0.0

    def log_shared(self, changes: int, ladders: int) -> float:
        """Return ln 1: no value is visible, and replay shows whose change it is."""
        return 0.0


@dataclass(frozen=True)
class TranscriptWeights:
    """Weights over all pairs of a question and the transcript before it.

    Parameters
    ----------
    questions
        How many questions are allowed; None if not known beforehand.
    beta
        The failure probability to distribute.
    ladders
        How many ladders are visible to everyone.
    amendable
        Whether ``questions`` may be changed later: half of the weight is then that for any number.
    """

    questions: int | None
    beta: float
    ladders: int = 1
    amendable: bool = False

    def nats(self, transcript: Transcript, history: ChangeHistory) -> float:
        """Return the largest price among the questions asked so far, rounded up."""
        return (self._largest(transcript, history) + math.log(2 / self.beta)) * (
            1 + _ROUND_UP_FACTOR
        )

    def _largest(self, transcript: Transcript, history: ChangeHistory) -> float:
        if transcript.every_question:
            t = history.asked
            return self._question_number_price(t) + (t - 1) * math.log(transcript.values.points)
        values = transcript.values
        if history.rounds is not None:
            return self._price_by_rounds(values, history, history.rounds)
        max_changes = min(history.asked - 1, self.ladders * values.max_changes)
        if history.count is not None:
            max_changes = min(max_changes, history.count)
        top = _largest(self._uniform_price(values, history.asked), max_changes)
        if history.counts is None or history.count is None:
            return top
        split = self._split_count(values, history.counts, max_changes, history.asked)
        return _mix_prices(top, split)

    def _question_number_price(self, t: int) -> float:
        """Return the price of the question's number alone."""
        return self._mix_known_and_anytime(t, math.log(self.questions or 1), math.log(t * (t + 1)))

    def _change_times_price(self, t: int, changes: int) -> float:
        """Return the uniform price of the number of a question and of the changes before it."""
        rank = math.log((changes + 1) * (changes + 2))
        known = log_binomial(self.questions or 0, changes + 1)
        return rank + self._mix_known_and_anytime(
            t, known, math.log(t * (t + 1)) + log_binomial(t - 1, changes)
        )

    def _mix_known_and_anytime(self, t: int, known: float, anytime: float) -> float:
        """Return a price by the weights for a known number of questions, for any, or both."""
        if self.questions is None:
            return anytime
        if not self.amendable:
            return known
        return _mix_evenly(anytime, math.inf if t > self.questions else known)

    def _values_price(self, values: ReleaseValues, changes: int) -> float:
        if self.ladders == 1:
            return values.log_count(changes)
        return values.log_shared(changes, self.ladders)

    def _uniform_price(self, values: ReleaseValues, t: int) -> Callable[[int], float]:
        return lambda changes: (
            self._change_times_price(t, changes) + self._values_price(values, changes)
        )

    def _ladder_split_price(self, changes: int) -> float:
        """Return the price of how the changes are shared among the ladders."""
        return log_binomial(changes + self.ladders - 1, changes)

    def _split_count(
        self, values: ReleaseValues, counts: tuple[int, ...], max_changes: int, t: int
    ) -> float:
        """Return a bound on the price by ladders, whatever the order the changes came in."""
        if self.ladders == 1:
            return math.inf
        if values.log_split([]) is None:
            return math.inf
        known = sum(_largest(values.log_count, count) for count in counts)
        return (
            _largest(lambda changes: self._change_times_price(t, changes), max_changes)
            + known
            + self._ladder_split_price(max_changes)
        )

    def _price_by_rounds(
        self, values: ReleaseValues, history: ChangeHistory, rounds: tuple[int, ...]
    ) -> float:
        """Return the largest price under a mixture of uniform, record and split weights."""
        owners = history.owners if self.ladders > 1 else None
        counts_by_ladder: Counter[object] = Counter()
        worst, drift = 0.0, 0.0
        for changes in range(len(rounds) + 1):
            # The last question before which this many changes were seen.
            t = rounds[changes] if changes < len(rounds) else history.asked
            if changes and rounds[changes - 1] >= t:
                break
            shared = self._values_price(values, changes)
            prices = [
                _mix_prices(
                    self._change_times_price(t, changes),
                    self._question_number_price(t) + math.log(t) + drift,
                )
                + shared
            ]
            if owners is not None:
                split = values.log_split(list(counts_by_ladder.values()))
                if split is not None:
                    by_ladder = prices[0] - shared + split + self._ladder_split_price(changes)
                    prices.append(by_ladder)
            worst = max(worst, prices[0] if len(prices) == 1 else _mix_prices(*prices))
            if changes < len(rounds):
                drift += math.log(rounds[changes])
                if owners is not None:
                    counts_by_ladder[owners[changes]] += 1
        return worst


def _mix_prices(first: float, second: float) -> float:
    """Return the price under an even mixture, or the first price if the second is infinite."""
    return first if math.isinf(second) else _mix_evenly(first, second)


def _mix_evenly(first: float, second: float) -> float:
    """Return the price under an even mixture of two weights; one price may be infinite."""
    low, high = min(first, second), max(first, second)
    return low + math.log(2) - math.log1p(math.exp(low - high))


def _largest(price: Callable[[int], float], max_changes: int) -> float:
    """Return the largest value of a concave price over 0 .. max_changes.

    Ternary search: it compares prices far apart, which differ even where neighbours on a flat top,
    or of huge prices, do not.
    """
    low, high = 0, max(max_changes, 0)
    while high - low > 2:
        third = (high - low) // 3
        if price(low + third) < price(high - third):
            low += third
        else:
            high -= third
    return max(map(price, range(low, high + 1)))
