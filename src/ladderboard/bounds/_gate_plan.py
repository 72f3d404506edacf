"""Planning a gate: the gain that would be proven, and the examples that a gain needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count, format_decimals, parse_number, round_up
from ladderboard.bounds._certify import read_beta, read_count
from ladderboard.bounds._paired import (
    LookPrices,
    TestForm,
    bet_logs,
    price_with_beta,
    required_net_wins,
)
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POWER = 0.8
_QUANTILES = 21  # of the number of differing examples, which is random
_MAX_EXAMPLES = 10**6
_MARGIN_STEP = 2**-12  # to which margins are found
_NORMAL_FROM = 20_000  # differing examples from which the normal law is close enough


class GatePlanRow(NamedTuple):
    """What a look would prove.

    ``gain`` is the difference of risks that is proven with the wanted probability; None if no
    difference is. ``least_differing`` is the least number of differing examples with which "better"
    can be said at all. ``margin`` is the least with which a candidate that is exactly as good as
    the incumbent is proven not worse with the wanted probability.
    """

    look: int
    nats: float
    gain: float | None
    least_differing: int
    margin: float


@dataclass(frozen=True)
class GatePlan:
    """Which gains a gate would prove while it has said "cannot tell" only; prints as text."""

    n: int
    looks: int
    differ: float
    beta: float
    power: float
    test: TestForm
    rows: tuple[GatePlanRow, ...]
    wanted: float | None = None
    needed: tuple[int | None, ...] = ()
    """For each row the number of examples that a wanted gain needs; None if more than a million."""
    largest_margin: float = 1.0
    """A margin must be smaller, or a constant prediction would be "not worse", too."""

    @property
    def sentences(self) -> list[str]:
        """The plan as sentences."""
        first, last = self.rows[0], self.rows[-1]
        lines = [
            (
                f"With {format_count(self.n, 'example')} and {format_count(self.looks, 'look')}, "
                "for a candidate that differs from the incumbent on "
                f"{format_decimals(100 * self.differ, 1)}% of the examples:"
            ),
            *(f"  look {row.look}: {self._describe_row(row)}" for row in self.rows),
            'if earlier looks said "cannot tell"; other verdicts make later gains harder to prove.',
        ]
        lines.append(self._describe_margins())
        if self.n < first.least_differing:
            lines.append(
                f'This set is too small to ever say "better": that needs {first.least_differing} '
                f"examples that differ at the first look, and there are {self.n}."
            )
        elif all(row.gain is None for row in self.rows):
            count = round(self.n * self.differ)
            differing = f"{format_count(count, 'example')} that differ{'s' if count == 1 else ''}"
            lines.append(
                f'This set is too small: with about {differing}, "better" is out of reach. '
                f"It needs {first.least_differing} wins without "
                f"a loss at the first look, and {last.least_differing} at the last."
            )
        return [*lines, self.size_sentence] if self.size_sentence else lines

    @property
    def size_sentence(self) -> str:
        """How many examples the wanted gain needs; empty without one."""
        if self.wanted is None:
            return ""
        parts = [
            f"{'more than a million' if count is None else f'{count:,}'} at look {row.look}"
            for row, count in zip(self.rows, self.needed, strict=True)
        ]
        return f"Examples that a gain of {self.wanted:g} needs: {', '.join(parts)}."

    def judge_margin(self, margin: float) -> str:
        """Return what to know about a margin that equal candidates would hardly pass, or ''."""
        wanted = self._usable_margin(self.rows[0])
        if wanted is None:  # as the plan says
            return ""
        if not margin:
            return (
                'The margin is 0, so "not worse" means "better", and an equal candidate does not '
                f"pass. --margin {wanted} lets it pass."
            )
        if margin < self.rows[0].margin:
            return (
                f"A margin of {margin:g} is small for this set: for an equal candidate to pass "
                f"with probability {self.power:g}, the first look needs {wanted}."
            )
        return ""

    def _usable_margin(self, row: GatePlanRow) -> str | None:
        """Return the margin with which an equal candidate passes, as text; None if none may."""
        text = round_up(row.margin, 2)
        return text if parse_number(text) < self.largest_margin else None

    def _describe_margins(self) -> str:
        first, last = self.rows[0], self.rows[-1]
        margin, later = self._usable_margin(first), self._usable_margin(last)
        if margin is None:
            return (
                "No margin lets an equal candidate pass: with one that is large enough, constant "
                "predictions would pass, too. Use more examples."
            )
        text = (
            f"An equal candidate is proven not worse with probability {self.power:g} if the margin "
            f"is at least {margin} at look 1"
        )
        if self.looks == 1:
            return f"{text}."
        at_last = f"at look {last.look}"
        return f"{text}, and {later} {at_last}." if later else f"{text}; {at_last} no margin does."

    def _describe_row(self, row: GatePlanRow) -> str:
        gain = "no gain" if row.gain is None else f"a gain of {row.gain:.2g}"
        return f"{gain} is proven with probability {self.power:g}"

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def describe(self) -> dict[str, Any]:
        """Return all fields as JSON-able values."""
        return {**vars(self), "rows": [row._asdict() for row in self.rows]}


def gate_plan(
    n: int | None,
    looks: int,
    differ: float = 0.1,
    *,
    beta: float = 0.05,
    gain: float | None = None,
    power: float = _POWER,
    test: TestForm = "sign",
    largest_margin: float = 1.0,
) -> GatePlan:
    """Return which gains a gate would prove at its first, tenth and last look.

    Parameters
    ----------
    n, looks
        How many examples, and how many looks. Without ``n`` the plan is for as many examples as
        the wanted gain needs.
    differ
        On which share of the examples a candidate differs from the incumbent.
    beta
        The probability with which any verdict may be false.
    gain
        A wanted gain, to plan the number of examples for.
    power
        The probability with which a gain should be proven.
    test
        ``"sign"`` for two classes, ``"convex"`` for more, ``"bets"`` for scores of a harness.
    largest_margin
        The loss of the best constant prediction, or a bound on it: margins from there on are
        refused.

    Examples
    --------
    >>> plan = gate_plan(300, 50, 0.1)
    >>> [(row.look, round(row.gain, 3)) for row in plan.rows]
    [(1, 0.067), (10, 0.067), (50, 0.074)]
    """
    looks = read_count("looks", looks)
    differ = _settings.number("differ", differ, above=0, at_most=1)
    power = _settings.number("power", power, above=0, below=1)
    beta, prices = read_beta(beta), LookPrices(looks)
    numbers = sorted({1, min(10, looks), looks})
    search = _GainSearch(differ, beta, power, test)
    needed: tuple[int | None, ...] = ()
    if gain is not None:
        gain = _settings.number("gain", gain, above=0, at_most=1)
        if gain > differ:
            raise InvalidSetting(
                f"gain cannot exceed differ, {differ:g}, the share of examples on which candidates "
                f"differ; got {gain:g}."
            )
        needed = tuple(search.examples_for(gain, prices.nats(look)) for look in numbers)
        if n is None:
            n = max(_MAX_EXAMPLES if count is None else count for count in needed)
    n = read_count("n", n)
    rows = tuple(
        GatePlanRow(
            look,
            prices.nats(look),
            search.smallest_gain(n, prices.nats(look)),
            search.least_differing(n, prices.nats(look)),
            search.smallest_margin(n, prices.nats(look)),
        )
        for look in numbers
    )
    return GatePlan(n, looks, differ, beta, power, test, rows, gain, needed, largest_margin)


@dataclass(frozen=True)
class _GainSearch:
    """Powers of a test where every example differs with the same probability."""

    differ: float
    beta: float
    power: float
    test: TestForm

    def smallest_gain(self, n: int, nats: float) -> float | None:
        """Return the gain that is proven with the wanted probability; None if none is."""
        cases = self._cases(n, nats)
        if _power(cases, 1.0) < self.power:
            return None
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if _power(cases, middle) >= self.power else (middle, high)
        return high * self.differ

    def smallest_margin(self, n: int, nats: float) -> float:
        """Return the margin by which an equal candidate is proven not worse, as often as wanted."""
        low, high = 0.0, 1.0
        while high - low > _MARGIN_STEP:
            middle = (low + high) / 2
            proven = _power(self._cases(n, nats, middle), 0.0) >= self.power
            low, high = (low, middle) if proven else (middle, high)
        return high

    def least_differing(self, n: int, nats: float) -> int:
        """Return the least number of differing examples that can prove, all of them won."""
        price = price_with_beta(nats, self.beta)
        differing = math.ceil(price / math.log(2))
        if self.test == "bets":
            while bet_logs(differing, 0, price, n) < price:
                differing += 1
        return differing

    def examples_for(self, gain: float, nats: float) -> int | None:
        """Return the least number of examples with which a gain is proven, about."""
        low, high = 1, 16
        while not self._proves(high, gain, nats):
            low, high = high, 2 * high
            if high > _MAX_EXAMPLES:
                return None
        while high - low > max(1, low // 200):
            middle = (low + high) // 2
            low, high = (low, middle) if self._proves(middle, gain, nats) else (middle, high)
        return high

    def _proves(self, n: int, gain: float, nats: float) -> bool:
        return _power(self._cases(n, nats), gain / self.differ) >= self.power

    def _cases(self, n: int, nats: float, margin: float = 0.0) -> list[tuple[int, float]]:
        """Return numbers of differing examples of equal probability, each with the wins needed."""
        levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        return [
            (differing, self._wins_needed(differing, n, nats, margin))
            for differing in _binomial_quantiles(n, self.differ, levels)
        ]

    def _wins_needed(self, differing: int, n: int, nats: float, margin: float) -> float:
        if self.test == "bets":
            return _wins_for_bets(differing, n, price_with_beta(nats, self.beta), margin)
        if differing > _NORMAL_FROM:
            price = price_with_beta(nats, self.beta)
            share = (1 - n * margin / differing) / 2
            deviation = math.sqrt(differing * share * (1 - share)) if share > 0 else 0.0
            return differing * share + _normal_quantile(price) * deviation
        net = required_net_wins(
            differing, nats, self.beta, binary=self.test == "sign", examples=n, margin=margin
        )
        return math.inf if net is None else (differing + net) / 2


def _wins_for_bets(differing: int, n: int, price: float, margin: float) -> float:
    """Return the least wins with which bets prove, if all other differing examples are losses."""
    low, high = 0, differing + 1
    while low < high:
        middle = (low + high) // 2
        if bet_logs(middle, differing - middle, price, n, margin=margin) >= price:
            high = middle
        else:
            low = middle + 1
    return low if low <= differing else math.inf


def _power(cases: list[tuple[int, float]], advantage: float) -> float:
    """Return the probability of enough wins; each differing example is won with (1 + a) / 2."""
    chance = (1 + advantage) / 2
    return sum(_tail(differing, wins, chance) for differing, wins in cases) / len(cases)


def _tail(trials: int, wins: float, chance: float) -> float:
    """Return P(Bin(trials, chance) >= wins)."""
    if wins > trials:
        return 0.0
    if chance >= 1 or wins <= 0:
        return 1.0
    if trials > _NORMAL_FROM:
        deviation = math.sqrt(trials * chance * (1 - chance))
        return 0.5 * math.erfc((wins - 0.5 - trials * chance) / deviation / math.sqrt(2))
    return float(_masses(trials, chance)[math.ceil(wins) :].sum())


def _masses(trials: int, chance: float) -> NDArray[Any]:
    """Return the binomial law."""
    successes = np.arange(trials + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    return np.asarray(
        np.exp(
            log_factorials[-1]
            - log_factorials
            - log_factorials[::-1]
            + successes * math.log(chance)
            + (trials - successes) * math.log1p(-chance)
        )
    )


def _binomial_quantiles(n: int, share: float, levels: NDArray[Any]) -> list[int]:
    if share >= 1:
        return [n] * len(levels)
    if n * share > _NORMAL_FROM:
        deviation = math.sqrt(n * share * (1 - share))
        return [
            round(n * share + deviation * _normal_quantile_of(float(level))) for level in levels
        ]
    cumulative = np.cumsum(_masses(n, share))
    return [min(int(place), n) for place in np.searchsorted(cumulative, levels)]


def _normal_quantile(price: float) -> float:
    """Return z with P(Z >= z) = exp(-price)."""
    return -_normal_quantile_of(math.exp(-price))


def _normal_quantile_of(level: float) -> float:
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if 0.5 * math.erfc(-middle / math.sqrt(2)) >= level else (middle, high)
        )
    return high
