"""Nats: the price of a transcript under weights that are fixed before the data.

Proofs: docs/explanation/certificates.md, "Weights".
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ladderboard.bounds._values import log_binomial

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.bounds._history import History
    from ladderboard.bounds._transcript import Transcript
    from ladderboard.bounds._values import Values

__all__ = ["Weights"]


@dataclass(frozen=True)
class Weights:
    """Weights over all (question, what was seen before it).

    Parameters
    ----------
    questions
        How many questions are allowed; None where that is not known beforehand.
    beta
        The failure probability to be shared out.
    ladders
        How many ladders are seen by everyone.
    """

    questions: int | None
    beta: float
    ladders: int = 1

    def nats(self, transcript: Transcript, history: History) -> float:
        """Return the largest price among the questions asked so far."""
        last = math.log(2 / self.beta)
        if transcript.every_question:
            t = history.asked
            return self._time(t) + (t - 1) * math.log(transcript.values.points) + last
        values = transcript.values
        if history.rounds is not None:
            return self._by_rounds(values, history) + last
        most = min(history.asked - 1, self.ladders * values.most)
        if history.count is not None:
            most = min(most, history.count)
        uniform = self._uniform(values, history.asked)
        top = uniform(_argmax(uniform, most))
        if history.counts is None or history.count is None:
            return top + last
        split = self._split_count(values, history.counts, most, history.asked)
        return _mix(top, split) + last

    def _time(self, t: int) -> float:
        """Return the price of the question's number alone."""
        return math.log(self.questions or t * (t + 1))

    def _when(self, t: int, changes: int) -> float:
        """Return the uniform price of the number of a question and of the changes before it."""
        rank = math.log((changes + 1) * (changes + 2))
        if self.questions is None:
            return self._time(t) + log_binomial(t - 1, changes) + rank
        return log_binomial(self.questions, changes + 1) + rank

    def _shared(self, values: Values, changes: int) -> float:
        if self.ladders == 1:
            return values.log_count(changes)
        return values.log_shared(changes, self.ladders)

    def _uniform(self, values: Values, t: int) -> Callable[[int], float]:
        return lambda changes: self._when(t, changes) + self._shared(values, changes)

    def _ways(self, changes: int) -> float:
        """Return the price of how so many changes are shared among the ladders."""
        return log_binomial(changes + self.ladders - 1, changes)

    def _split_count(self, values: Values, counts: tuple[int, ...], most: int, t: int) -> float:
        """Return a bound on the price by ladders, whatever the order the changes came in."""
        if self.ladders == 1:
            return math.inf
        parts = [values.log_split([_argmax(values.log_count, count)]) for count in counts]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return math.inf
        when = _argmax(lambda changes: self._when(t, changes), most)
        return self._when(t, when) + sum(known) + self._ways(most)

    def _by_rounds(self, values: Values, history: History) -> float:
        """Return the largest price under a mixture of uniform, record and split weights."""
        assert history.rounds is not None  # noqa: S101 - the caller looked
        rounds = history.rounds
        owners = history.owners if self.ladders > 1 else None
        held: Counter[object] = Counter()
        worst, drift = 0.0, 0.0
        for changes in range(len(rounds) + 1):
            # The last question before which so many changes were seen.
            t = rounds[changes] if changes < len(rounds) else history.asked
            if changes and rounds[changes - 1] >= t:
                break
            shared = self._shared(values, changes)
            prices = [_mix(self._when(t, changes), self._time(t) + math.log(t) + drift) + shared]
            if owners is not None:
                split = values.log_split(list(held.values()))
                if split is not None:
                    by_ladder = prices[0] - shared + split + self._ways(changes)
                    prices.append(by_ladder)
            worst = max(worst, prices[0] if len(prices) == 1 else _mix(*prices))
            if changes < len(rounds):
                drift += math.log(rounds[changes])
                if owners is not None:
                    held[owners[changes]] += 1
        return worst


def _mix(one: float, other: float) -> float:
    """Return the price under weights half and half; alone, one that prices everything."""
    if math.isinf(other):
        return one
    low, high = min(one, other), max(one, other)
    return low + math.log(2) - math.log1p(math.exp(low - high))


def _argmax(price: Callable[[int], float], most: int) -> int:
    """Return where a concave price is largest, among 0 .. most."""
    low, high = 0, max(most, 0)
    while low < high:
        middle = (low + high) // 2
        if price(middle + 1) > price(middle):
            low = middle + 1
        else:
            high = middle
    return low
