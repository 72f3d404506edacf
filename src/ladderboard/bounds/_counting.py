"""The changes of a board that are known, and the price of a transcript in nats.

Proofs: docs/explanation/certificates.md, "Weights".

*In floating point.* Everything above is about real numbers, and is computed in doubles, with ε =
2⁻⁵³. Every price is a sum of logarithms that are not negative, so its relative error is a few ε
for each operation: below 2·10⁻¹⁴ for the sums of at most 1,000 logarithms, and likewise for the
longer binomials, which are bounded by Stirling's series: ln x! lies between its first terms with
1/(12x) - 1/(360x³) and with 1/(12x), so that an upper bound for the whole and lower ones for the
parts are off by less than 10⁻¹¹ in prices above 1,000. b ln(n+1) - ln b! is the one difference,
at least b where the first term is at most 70 b.

*The largest price* is looked for by thirds. Let f be concave on [low, high], computed with errors
of at most e, and m₁ and m₂ a third in from both ends. If m₁ looks lower, [low, m₁) is left. If
that was wrong, f(m₁) > f(m₂) ≥ f(m₁) - 2e, and for x < m₁ the chord through m₁ and m₂ lies above
f: f(x) ≤ f(m₁) + (m₁ - x)/(m₂ - m₁) · 2e ≤ f(m₁) + 2e, as m₁ - x ≤ m₂ - m₁; and m₁ is kept. The
same on the other side. Below 10¹⁵ there are at most 90 steps, so at most 180e is lost: 4·10⁻¹² of
the price. (Halving by neighbours would go astray where prices differ by less than e from one b to
the next: on flat tops, and everywhere beyond 10¹⁵.) So each price is multiplied by 1 + 10⁻¹¹,
which also covers the square root and the sums of the Hoeffding form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import VisibleChange, log_binomial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ladderboard.mechanisms import ReleaseValues, ReplayedChanges, Transcript


# Prices are rounded up by this fraction, more than all rounding errors on the way to them and from
# them to an interval: see "In floating point" above.
_ROUND_UP_FACTOR = 1e-11


class Nats(NamedTuple):
    """The largest price among all models so far, and among those that made a change."""

    every: float
    changer: float


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
    proven
        Whether every change comes with one bit more: whether it was proven.
    """

    questions: int | None
    beta: float
    ladders: int = 1
    amendable: bool = False
    proven: bool = False

    def nats(
        self,
        transcript: Transcript,
        history: ChangeHistory,
        replayed: ReplayedChanges | None = None,
        shown: Sequence[int] | None = None,
    ) -> Nats:
        """Return the largest prices among the questions asked so far, rounded up.

        ``replayed`` is what follows from the values of the changes, if they are known, and
        ``shown`` which changes may have released the value that is shown; all of them if None.
        """
        failure = math.log(2 / self.beta)
        return Nats(
            *(
                (price + failure) * (1 + _ROUND_UP_FACTOR)
                for price in self._largest_prices(transcript, history, replayed, shown)
            )
        )

    def _largest_prices(
        self,
        transcript: Transcript,
        history: ChangeHistory,
        replayed: ReplayedChanges | None,
        shown: Sequence[int] | None,
    ) -> Nats:
        if transcript.every_question:
            t = history.asked
            total = self._question_number_price(t) + (t - 1) * math.log(transcript.values.points)
            return Nats(total, total)
        values = transcript.values
        if history.rounds is not None:
            prices = self._prices_by_rounds(values, history, history.rounds, replayed)
            if shown is None:
                # With one ladder its last change shows the value, with several it may be any.
                changes = range(len(history.rounds))
                shown = changes[-1:] if self.ladders == 1 else changes
            own_prices = None if replayed is None else replayed.own_prices
            changers = (prices[j] + (own_prices[j] if own_prices else 0.0) for j in shown)
            return Nats(max(prices), max(changers, default=0.0))
        max_changes = min(history.asked, self.ladders * values.max_changes)
        if history.count is not None:
            max_changes = min(max_changes, history.count)
        # A change made by the last question was seen by no model yet.
        seen = min(max_changes, history.asked - 1)
        largest = partial(
            _largest, self._uniform_price(values, history.asked), concave=values.concave
        )
        return Nats(
            *(self._price_by_count(largest, values, history, b) for b in (seen, max_changes - 1))
        )

    def _price_by_count(
        self,
        largest: Callable[[int], float],
        values: ReleaseValues,
        history: ChangeHistory,
        max_changes: int,
    ) -> float:
        """Return the largest price of a model that had seen at most this many changes."""
        top = largest(max_changes)
        if history.counts is None:
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
        return (
            rank
            + self._bits_price(changes)
            + self._mix_known_and_anytime(
                t, known, math.log(t * (t + 1)) + log_binomial(t - 1, changes)
            )
        )

    def _bits_price(self, changes: int) -> float:
        return changes * math.log(2) if self.proven else 0.0

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
        return cache(
            lambda changes: (
                self._change_times_price(t, changes) + self._values_price(values, changes)
            )
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
        known = sum(_largest(values.log_count, b, concave=values.concave) for b in counts)
        return (
            _largest(lambda changes: self._change_times_price(t, changes), max_changes)
            + known
            + self._ladder_split_price(max_changes)
        )

    def _prices_by_rounds(
        self,
        values: ReleaseValues,
        history: ChangeHistory,
        rounds: tuple[int, ...],
        replayed: ReplayedChanges | None,
    ) -> list[float]:
        """Return the largest price by number of changes seen: that of the model of the next one.

        The weights are a mixture of uniform, record and split ones.
        """
        times, drift = _prices_of_rounds(self, rounds)
        if not rounds or rounds[-1] < history.asked:
            times = (*times, self.rounds_price(history.asked, len(rounds), drift))
        if replayed is not None:
            return [time + value for time, value in zip(times, replayed.prices, strict=False)]
        owners = history.owners if self.ladders > 1 else None
        counts_by_ladder: Counter[object] = Counter()
        prices: list[float] = []
        for changes, time in enumerate(times):
            price = time + self._values_price(values, changes)
            if owners is not None:
                split = values.log_split(list(counts_by_ladder.values()))
                if split is not None:
                    price = _mix_prices(price, time + split + self._ladder_split_price(changes))
                if changes < len(rounds):
                    counts_by_ladder[owners[changes]] += 1
            prices.append(price)
        return prices

    def rounds_price(self, t: int, changes: int, drift: float) -> float:
        """Return the price of question t and the rounds of the changes before it, mixed.

        ``drift`` is the sum of the logarithms of these rounds.
        """
        return _mix_prices(
            self._change_times_price(t, changes),
            self._question_number_price(t) + math.log(t) + drift + self._bits_price(changes),
        )


@lru_cache(maxsize=1024)  # they stay the same while a board does not change
def _prices_of_rounds(
    weights: TranscriptWeights, rounds: tuple[int, ...]
) -> tuple[tuple[float, ...], float]:
    """Return what each change pays for the rounds up to it, and the drift of all."""
    prices, drift = [], 0.0
    for changes, t in enumerate(rounds):
        # It is the last question before which this many changes were seen.
        prices.append(weights.rounds_price(t, changes, drift))
        drift += math.log(t)
    return tuple(prices), drift


def _mix_prices(first: float, second: float) -> float:
    """Return the price under an even mixture, or the first price if the second is infinite."""
    return first if math.isinf(second) else _mix_evenly(first, second)


def _mix_evenly(first: float, second: float) -> float:
    """Return the price under an even mixture of two weights; one price may be infinite."""
    low, high = min(first, second), max(first, second)
    return low + math.log(2) - math.log1p(math.exp(low - high))


def _largest(price: Callable[[int], float], max_changes: int, *, concave: bool = True) -> float:
    """Return the largest value of a price over 0 .. max_changes.

    A concave price that still rises at the end is largest there. Otherwise ternary search: it
    compares prices far apart, which differ even where neighbours on a flat top, or of huge prices,
    do not.
    """
    low, high = 0, max(max_changes, 0)
    if concave and high and price(high) > price(high - 1):
        return price(high)
    while concave and high - low > 2:
        third = (high - low) // 3
        if price(low + third) < price(high - third):
            low += third
        else:
            high -= third
    return max(map(price, range(low, high + 1)))


@dataclass(frozen=True)
class ChangeHistory:
    """The known changes among the first ``asked`` questions.

    Parameters
    ----------
    asked
        How many questions were asked.
    count
        How many changes there were, or None for the worst case.
    rounds
        The questions at which they came, if known.
    owners
        The ladder of each change, in the order of ``rounds``, if both are known.
    counts
        How many changes each ladder had, if known.
    changes
        All of this with the released values, if known.
    """

    asked: int
    count: int | None
    rounds: tuple[int, ...] | None = None
    owners: tuple[Any, ...] | None = None
    counts: tuple[int, ...] | None = None
    changes: tuple[VisibleChange, ...] | None = None

    @classmethod
    def read(cls, changes: Any, asked: int) -> ChangeHistory:
        """Return the history from the argument ``changes`` of ``certificate``."""
        if changes is None:
            return cls(asked, None)
        if isinstance(changes, Mapping):
            return cls._read_ladders(changes, asked)
        if _is_list(changes):
            changes = tuple(changes)
            if changes and all(isinstance(change, VisibleChange) for change in changes):
                _read_rounds("changes", [change.question for change in changes], asked)
                return cls.from_changes(changes, asked)
            rounds = _read_rounds("changes", changes, asked)
            return cls(asked, len(rounds), rounds)
        return cls(asked, _read_change_count("changes", changes, asked))

    @classmethod
    def from_changes(cls, changes: tuple[VisibleChange, ...], asked: int) -> ChangeHistory:
        """Return the history of changes that a ledger recorded."""
        rounds = tuple(change.question for change in changes)
        owners = tuple(change.ladder for change in changes)
        counts = tuple(Counter(owners).values())
        return cls(asked, len(rounds), rounds, owners, counts, changes)

    @classmethod
    def _read_ladders(cls, changes: Mapping[Any, Any], asked: int) -> ChangeHistory:
        names = {owner: f"changes[{_settings.safe_repr(owner)}]" for owner in changes}
        if all(_is_list(change) for change in changes.values()):
            # Read each value once: it may be an iterator.
            read = {
                owner: _read_rounds(names[owner], owned_changes, asked)
                for owner, owned_changes in changes.items()
            }
            owned = sorted(
                (
                    (round_, owner)
                    for owner, owned_changes in read.items()
                    for round_ in owned_changes
                ),
                key=lambda pair: pair[0],
            )
            rounds = _read_rounds("changes", [round_ for round_, _ in owned], asked)
            owners = tuple(owner for _, owner in owned)
            counts = tuple(map(len, read.values()))
            return cls(asked, len(rounds), rounds, owners, counts)
        counts = tuple(
            _read_change_count(names[owner], owned_changes, asked)
            for owner, owned_changes in changes.items()
        )
        return cls(asked, _read_change_count("changes", sum(counts), asked), counts=counts)


def _is_list(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return False
    try:
        iter(value)
    except TypeError:  # a zero-dimensional array has __iter__ and raises
        return False
    return True


def _read_change_count(name: str, value: Any, asked: int) -> int:
    return _settings.integer(name, value, at_least=0, at_most=asked)


def _read_rounds(name: str, values: Iterable[Any], asked: int) -> tuple[int, ...]:
    rounds = tuple(
        _settings.integer(f"a round in {name}", round_, at_least=1, at_most=asked)
        for round_ in values
    )
    if any(after <= before for before, after in pairwise(rounds)):
        raise InvalidSetting(
            f"{name} must be the questions at which the board changed, in rising order; "
            f"got {_settings.safe_repr(list(rounds))}."
        )
    return rounds
