"""Exact paired tests of two models on the same examples: better, or not worse by a margin.

B_i is the rival's loss on example i minus the candidate's. The null hypothesis is that the expected
sum of B_i + margin is at most 0. Proofs: docs/explanation/gate.md.

*In floating point.* Every quantity is a sum of logarithms of double precision. An error is at
most a few units in the last place of each term: below 10⁻¹⁴ times ln d! for binomial tails, with
their coefficients rounded up, and below 10⁻¹⁵ times the number of examples for bets. Tails are
raised, and products of bets lowered, by 10⁻¹² times these magnitudes, and prices raised by 10⁻¹¹
of themselves. So a verdict is never due to rounding. Sums that underflow count as 10⁻²⁹⁰. On
another machine the logarithms may differ in their last bits; a verifier accepts either verdict
within 10⁻⁹ of the threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import log_binomial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


Outcome = Literal["better", "not_worse", "cannot_tell", "worse"]
TestForm = Literal["sign", "convex", "bets"]

# More than all rounding errors, as a fraction of the largest logarithm that is added up.
_ROUNDING = 1e-12
# A sum that underflows is never taken for zero.
_LEAST_PROBABILITY = 1e-290
# Terms of a tail are left out from where they are exp(-50) of the first.
_NEGLIGIBLE = 50.0
# Two logarithms this far apart are in the right order, however they were computed.
_CLEAR = 1e-6
_LARGEST_BET = 0.9
# Bets are made for squared differences that add up to 0.8, 0.2, 0.05, ... of the examples. The
# second and the third are common; together they get this many times the weight of all others.
_LARGEST_SHARE, _SHARE_RATIO = 0.8, 4
_COMMON, _COMMON_ODDS = slice(1, 3), 9


def price_with_beta(nats: float, beta: float) -> float:
    """Return ln(1 / (beta w)) for a price of nats = -ln w, rounded up."""
    return (nats - math.log(beta)) * (1 + 1e-11)


def log_sign_tail(differing: int, wins: int, share: float = 0.5) -> float:
    """Return ln P(Bin(differing, share) >= wins), rounded up.

    It bounds the probability of this many wins among independent examples with unequal chances
    whose mean is at most ``share``, if wins >= differing * share + 1. Otherwise 0 is returned.

    >>> round(math.exp(log_sign_tail(10, 9)) * 2**10, 6)  # 10 of 9, and 1 of 10
    11.0
    """
    if wins < differing * share + 1:
        return 0.0
    if wins > differing or share <= 0:
        return -math.inf
    first, total = _sign_tail(differing, wins, share)
    return min(first + math.log(total) + _slack(differing), 0.0)


def _sign_tail(differing: int, wins: int, share: float) -> tuple[float, float]:
    """Return ln P(Bin = wins), rounded up, and how many times that the tail from there is."""
    odds = share / (1 - share)
    first = (
        log_binomial(differing, wins)
        + wins * math.log(share)
        + (differing - wins) * math.log1p(-share)
    )
    successes = np.arange(wins, wins + _terms(differing, wins, share), dtype=np.float64)
    ratios = (differing - successes) / (successes + 1) * odds
    return first, 1 + float(ratios.cumprod().sum())


def _terms(differing: int, wins: int, share: float) -> int:
    """Return after how many terms of a tail the others add up to less than is rounded up."""
    rest = differing - wins
    if not rest:
        return 0
    # The logarithms of the ratios begin at -first and fall by at least 2 * fall each: 1/a + 1/b is
    # at least 4 / (a + b). So j terms multiply to less than exp(-(first - fall) j - fall j^2).
    first = math.log((wins + 1) / rest * ((1 - share) / share))
    fall = 2 / (differing + 1)
    half = (first - fall) / 2
    return min(math.ceil((math.sqrt(half**2 + fall * _NEGLIGIBLE) - half) / fall), rest)


def log_convex_tail(differing: int, total: float, share: float = 0.5) -> float:
    """Return a bound on ln P(S >= total), rounded up, for S of ``differing`` terms in [0, 1].

    The terms are independent and their expectations have a mean of at most ``share``. The bound is
    the least E(Bin - h)+ / (total - h) over whole h: at most e times the tail of the binomial law.

    >>> math.exp(log_convex_tail(100, 65)) / math.exp(log_sign_tail(100, 65)) < math.e
    True
    """
    if total <= differing * share:
        return 0.0
    if total > differing or share <= 0:
        return -math.inf
    lowest = math.floor(differing * share)
    first = (
        log_binomial(differing, lowest)
        + lowest * math.log(share)
        + (differing - lowest) * math.log1p(-share)
    )
    successes = np.arange(lowest, differing, dtype=np.float64)
    ratios = (differing - successes) / (successes + 1) * (share / (1 - share))
    # masses[j] = P(Bin = lowest + j) and excess[j] = E(Bin - lowest - j)+, over P(Bin = lowest).
    masses = np.concatenate([[1.0], np.cumprod(ratios)])
    tails = np.cumsum(masses[::-1])[::-1]
    excess = np.append(np.cumsum(tails[::-1])[::-1][1:], 0.0)
    thresholds = np.arange(lowest, math.ceil(total), dtype=np.float64)
    bounds = np.maximum(excess[: len(thresholds)], _LEAST_PROBABILITY) / (total - thresholds)
    return min(first + math.log(float(bounds.min())) + _slack(differing), 0.0)


def _slack(differing: int) -> float:
    return _ROUNDING * (1 + math.lgamma(differing + 1))


def log_bets(differences: NDArray[Any], price: float, scale: float | None = None) -> float:
    """Return ln E, rounded down: the mean over bets theta of prod(1 + theta * difference).

    If the expected sum of the differences is at most 0, P(E >= 1/a) <= a. The bets depend on
    ``price`` = ln(1/a) and on ``scale``, the largest possible sum of squared differences, which
    must not depend on labels; the number of examples by default.

    Parameters
    ----------
    differences
        One per example, in [-1, 2]: B_i + margin, multiplied by the weight over the largest weight.
    price
        The value of ln E that proves.
    scale
        Of the differences.
    """
    thetas, weights = _bets(price, len(differences) if scale is None else scale)
    logs = [float(np.log1p(theta * differences).sum()) for theta in thetas]
    return _mix_bets(logs, weights) - _ROUNDING * (1 + len(differences))


def bet_logs(wins: int, losses: int, price: float, examples: int, *, margin: float = 0.0) -> float:
    """Return ln E, not rounded, for this many differences of 1 and of -1; all others are 0."""
    thetas, weights = _bets(price, examples)
    counts = ((wins, 1 + margin), (losses, margin - 1), (examples - wins - losses, margin))
    logs = [
        sum(count * math.log1p(theta * difference) for count, difference in counts)
        for theta in thetas
    ]
    return _mix_bets(logs, weights)


def _mix_bets(logs: list[float], weights: list[float]) -> float:
    """Return the logarithm of the weighted mean of exponentials."""
    largest = max(logs)
    return largest + math.log(
        sum(w * math.exp(log - largest) for w, log in zip(weights, logs, strict=True))
    )


def _bets(price: float, scale: float) -> tuple[list[float], list[float]]:
    """Return the bets and their weights: theta is best where the squares add up to share * scale.

    With sum S and squares V, ln E is about theta S - theta^2 V / 2; it reaches the price first at
    theta = sqrt(2 price / V).
    """
    shares = [_LARGEST_SHARE]
    while 2 * price < _LARGEST_BET**2 * shares[-1] * scale:
        shares.append(shares[-1] / _SHARE_RATIO)
    thetas = [min(math.sqrt(2 * price / (share * scale)), _LARGEST_BET) for share in shares]
    common = len(shares[_COMMON])
    raw = [1.0] * len(shares)
    raw[_COMMON] = [_COMMON_ODDS * (len(shares) - common or 1) / 2] * common
    return thetas, [weight / sum(raw) for weight in raw]


@lru_cache(maxsize=64)  # a gate publishes the number, and then compares with it
def required_net_wins(
    differing: int,
    nats: float,
    beta: float,
    *,
    binary: bool = True,
    examples: int | None = None,
    margin: float = 0.0,
) -> int | None:
    """Return the least wins minus losses that prove "better" under zero-one loss; None if none do.

    With a margin: that prove "not worse by more than the margin", which may be negative. The result
    does not depend on labels, so it may be shown.

    Parameters
    ----------
    differing
        On how many examples the two predictions differ.
    nats
        The price of the look, -ln w.
    beta
        The probability with which any verdict may be false.
    binary
        Whether there are two classes, so that one of two different predictions is right.
    examples
        The number of all examples; needed with a margin.
    margin
        In units of the risk.

    Examples
    --------
    >>> required_net_wins(30, nats=0, beta=0.05), required_net_wins(30, nats=5.3, beta=0.05)
    (10, 20)
    """
    price = price_with_beta(nats, beta)
    share = _null_share(differing, examples, margin)
    if share < 0:
        return -differing
    step = 2 if binary else 1
    likely = _likely_wins(differing, share, price)
    if binary and _is_least(differing, math.ceil(likely), share, price):
        return 2 * math.ceil(likely) - differing
    # Net wins -differing, -differing + step, ...: the least that proves, by bisection from where
    # an approximation has it, in steps that double.
    low, high, distance = 0, 2 * differing // step + 1, 1
    middle = min(math.ceil(likely * 2 / step), high - 1)
    while low < high:
        if _is_proven(differing, middle * step - differing, share, price, binary=binary):
            high, middle = middle, max(middle - distance, (low + middle) // 2)
        else:
            low, middle = middle + 1, min(middle + distance, (middle + 1 + high) // 2)
        distance *= 2
    net = low * step - differing
    return net if net <= differing else None


def _likely_wins(differing: int, share: float, price: float) -> float:
    """Return about how many wins have a probability of exp(-price).

    From where a normal law has them, with Newton's method on an approximation of the tail: by
    Stirling's formula, and as for a normal law beside the last term.
    """
    z = math.sqrt(2 * max(price - math.log(2.5 * math.sqrt(2 * price) + 1), 0.0))
    wins = differing * share + z * math.sqrt(differing * share * max(1 - share, 0.0))
    for _ in range(3):
        rest = differing - wins
        if not differing * share < wins < differing:
            break
        slope = math.log(wins * (1 - share) / (rest * share))
        deviation = math.sqrt(wins * rest / differing)
        z = slope * deviation
        tail = (0.5 / deviation + 4 / (3 * z + math.sqrt(z * z + 8))) / math.sqrt(2 * math.pi)
        entropy = wins * math.log(wins / (differing * share))
        entropy += rest * math.log(rest / (differing * (1 - share)))
        wins += (math.log(tail) - entropy + price) / slope
    return wins


def _is_least(differing: int, wins: int, share: float, price: float) -> bool:
    """Tell whether this many wins prove it and one fewer does not; False if rounding may decide.

    One less has a tail of P(Bin = wins - 1) more, which follows from the terms of this one.
    """
    if not differing * share + 2 <= wins <= differing:
        return False
    first, total = _sign_tail(differing, wins, share)
    tail = first + math.log(total) + _slack(differing)
    ratio = (differing - wins + 1) / wins * (share / (1 - share))
    return tail <= -price and tail + math.log1p(1 / (ratio * total)) > -price + _CLEAR


def _null_share(differing: int, examples: int | None, margin: float) -> float:
    """Return the largest mean chance of a win under the null hypothesis; negative if impossible."""
    if not margin:
        return 0.5
    if examples is None:
        raise InvalidSetting("A margin needs the number of examples.")
    # Rounded up, which is on the safe side.
    return (
        -1.0
        if examples * margin > differing
        else (1 - examples * margin / differing) / 2 + _ROUNDING
    )


def _is_proven(differing: int, net: int, share: float, price: float, *, binary: bool) -> bool:
    wins = (differing + net) / 2
    if binary:
        return log_sign_tail(differing, round(wins), share) <= -price
    return log_convex_tail(differing, wins, share) <= -price


def proven_better(
    losses_before: Any,
    losses_after: Any,
    nats: float,
    beta: float,
    *,
    margin: float = 0.0,
    binary: bool = False,
    differing: int | None = None,
    weight: Any = None,
) -> bool:
    """Return whether losses prove a model better than the one before, or not worse by a margin.

    The two models, the price and all options must not depend on labels except through what was
    released before. Then the prices of all looks at the same labels decide how often any of the
    answers is false: with weights w = exp(-nats) that add up to at most 1, with probability at most
    beta, at any time.

    Parameters
    ----------
    losses_before, losses_after
        In [0, 1], one per example, or the mean of each group.
    nats
        The price of this look, -ln w.
    beta
        The probability with which any answer may be false.
    margin
        Prove "not worse by more than this" instead of "better".
    binary
        For zero-one loss with two classes: the sign test.
    differing
        For zero-one loss with more classes: on how many examples the predictions differ.
    weight
        Of examples or groups, at least 0.

    Examples
    --------
    >>> before, after = np.repeat([1, 0, 0], [14, 4, 82]), np.repeat([0, 1, 0], [14, 4, 82])
    >>> proven_better(before, after, nats=0, beta=0.05, binary=True)
    True
    >>> proven_better(before, after, nats=3, beta=0.05, binary=True)
    False
    """
    before, after = (
        np.asarray(losses, dtype=np.float64) for losses in (losses_before, losses_after)
    )
    margin = _settings.number("margin", margin, at_least=0, below=1)
    if before.shape != after.shape or before.ndim != 1:
        raise InvalidSetting("Both models need one loss per example.")
    if weight is None and (binary or differing is not None):
        if binary:
            differing = int(np.count_nonzero(before != after))
        needed = required_net_wins(
            differing or 0, nats, beta, binary=binary, examples=len(before), margin=margin
        )
        return needed is not None and round(float((before - after).sum())) >= needed
    scales = np.ones(len(before)) if weight is None else np.asarray(weight, dtype=np.float64)
    scales = scales / scales.max()
    price = price_with_beta(nats, beta)
    differences = scales * (before - after + margin)
    return log_bets(differences, price, float((scales**2).sum())) >= price


class PairedEvidence(NamedTuple):
    """Everything about two models that decides a verdict. Secret, except ``differing``.

    Parameters
    ----------
    differing
        The number of examples with different predictions; None if they are not known.
    net
        Wins minus losses, for the sign test and the convex bound.
    better, not_worse, worse
        The logarithms of the products of bets.
    """

    differing: int | None
    net: int | None = None
    better: float | None = None
    not_worse: float | None = None
    worse: float | None = None


@dataclass(frozen=True)
class PairedTest:
    """The rule by which a look at two models gets its verdict.

    Parameters
    ----------
    form
        ``"sign"`` for zero-one loss with two classes, ``"convex"`` for zero-one loss with more,
        ``"bets"`` for everything else.
    examples
        The number of examples, or of groups.
    beta
        The probability with which any verdict may be false.
    worse
        Whether "worse" is a verdict; then half of beta is for it.

    Examples
    --------
    >>> test = PairedTest("sign", examples=500, beta=0.05)
    >>> test.required(50, nats=3.3, margin=0.02)
    (22, 12)
    >>> test.outcome(PairedEvidence(50, net=14), nats=3.3, margin=0.02)
    'not_worse'
    """

    form: TestForm
    examples: int
    beta: float
    worse: bool = False

    def options(self, margin: float, differing: int | None = None) -> int:
        """Return how many verdicts a look can give that depend on labels.

        "Cannot tell" is not counted; nor is "not worse" if it is certain, because the models differ
        on too few examples to be apart by more than the margin.
        """
        return 1 + (margin > 0 and not self.is_certain(margin, differing)) + self.worse

    def is_certain(self, margin: float, differing: int | None) -> bool:
        """Tell whether "not worse" holds whatever the labels are."""
        known = differing is not None and self.form != "bets"
        return known and margin > 0 and self.examples * margin > (differing or 0)

    def required(self, differing: int, nats: float, margin: float) -> tuple[int | None, int | None]:
        """Return the least net wins that prove "better", and "not worse by the margin".

        None if no number does. With bets there is no such number.
        """
        if self.form == "bets":
            return None, None
        binary = self.form == "sign"
        better = required_net_wins(differing, nats, self._level, binary=binary)
        if not margin:
            return better, better
        return better, required_net_wins(
            differing, nats, self._level, binary=binary, examples=self.examples, margin=margin
        )

    def measure(
        self,
        before: NDArray[Any],
        after: NDArray[Any],
        *,
        differing: int | None,
        nats: float,
        margin: float,
        weight: NDArray[Any] | None = None,
    ) -> PairedEvidence:
        """Return the evidence in the losses of the incumbent and the candidate."""
        if self.form != "bets":  # all losses are 0 or 1
            net = int(np.count_nonzero(before)) - int(np.count_nonzero(after))
            return PairedEvidence(differing, net=net)
        gains = before - after
        scales = np.ones(len(gains)) if weight is None else weight / weight.max()
        price, scale = price_with_beta(nats, self._level), float((scales**2).sum())
        return PairedEvidence(
            differing,
            better=log_bets(scales * gains, price, scale),
            not_worse=log_bets(scales * (gains + margin), price, scale),
            worse=log_bets(-scales * gains, price, scale) if self.worse else None,
        )

    def outcome(self, evidence: PairedEvidence, nats: float, margin: float) -> Outcome:
        """Return the verdict that the evidence proves at the price of a look."""
        better, not_worse, worse = self._proven(evidence, nats, margin)
        if better:
            return "better"
        if worse:
            return "worse"
        return "not_worse" if not_worse and margin else "cannot_tell"

    def _proven(
        self, evidence: PairedEvidence, nats: float, margin: float
    ) -> tuple[bool, bool, bool]:
        if self.form == "bets":
            price = price_with_beta(nats, self._level)
            better, not_worse, worse = (
                value is not None and value >= price
                for value in (evidence.better, evidence.not_worse, evidence.worse)
            )
            return better, not_worse, worse
        net = evidence.net or 0
        needed, allowed = self.required(evidence.differing or 0, nats, margin)
        return (
            needed is not None and net >= needed,
            allowed is not None and net >= allowed,
            self.worse and needed is not None and -net >= needed,
        )

    @property
    def _level(self) -> float:
        return self.beta / 2 if self.worse else self.beta


# Shares of the weight: for the first looks and for all looks while nothing was proven; for looks
# after verdicts, half for the declared number of looks and half for any number.
_FIRST, _ALL, _AFTER = 0.35, 0.4, 0.25
_FIRST_LOOKS = 10
MOST_VERDICTS = 3  # better, not worse, worse


@dataclass(frozen=True)
class LookPrices:
    """The price of every look of a gate, in nats.

    A look is cheap if it is among the first, or if all looks before it said "cannot tell".

    Parameters
    ----------
    looks
        The declared number of looks.

    Examples
    --------
    >>> prices = LookPrices(200)
    >>> [round(prices.nats(look), 1) for look in (1, 10, 11, 200)]
    [3.3, 3.3, 6.2, 6.2]
    >>> round(prices.nats(5, [1]), 1), round(prices.nats(200, [1]), 1)
    (7.6, 12.7)
    """

    looks: int

    def nats(self, look: int, verdicts: Sequence[int] = (), *, lost: int = 0) -> float:
        """Return -ln of the weight of a look.

        Parameters
        ----------
        look
            Its number, from 1.
        verdicts
            For every earlier look that said more than "cannot tell", how many different verdicts
            it could have given: 1 for "better" alone, 2 with "not worse".
        lost
            How many earlier looks have an unknown outcome, because an old copy was restored.
        """
        if not len(verdicts) + lost < look <= self.looks:
            raise InvalidSetting(
                f"look must be from {len(verdicts) + lost + 1} to {self.looks}; got {look}."
            )
        return max(
            self._nats(look, [*verdicts, *[MOST_VERDICTS] * unknown]) for unknown in range(lost + 1)
        )

    def largest(self, looks: int, verdicts: Sequence[int], *, lost: int = 0) -> float:
        """Return a bound on the price of everything that was seen of the looks, at any time.

        ``looks`` is how many were taken, including those that were lost.
        """
        look = min(looks + 1, self.looks)
        seen = [*verdicts, *[MOST_VERDICTS] * lost]
        return max(self._nats(look, seen[:count]) for count in range(min(len(seen), look - 1) + 1))

    def _nats(self, look: int, verdicts: Sequence[int]) -> float:
        looks, count = self.looks, len(verdicts)
        if looks == 1:
            return 0.0
        if not count:
            first = min(_FIRST_LOOKS, looks)
            return -math.log(_ALL / looks + (_FIRST / first if look <= first else 0))
        declared = log_binomial(looks, count + 1)
        anytime = math.log(look * (look + 1)) + log_binomial(look - 1, count)
        return (
            math.log(2 * count * (count + 1) / _AFTER)
            + sum(math.log(options) for options in verdicts)
            + min(declared, anytime)
            - math.log1p(math.exp(-abs(declared - anytime)))
        )
