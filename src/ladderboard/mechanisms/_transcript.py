"""Transcripts: what a mechanism can release, and in how many ways.

A mechanism states its own in :meth:`Mechanism.transcript`; certificates count them. Proofs:
docs/explanation/certificates.md, "Counting", "Noise" and "The sample part". All lengths are risks;
a unit is 1e-12.

One draw. *The discrete Gaussian* has P(X = x) ∝ exp(-x²/(2σ²)) on the integers. By Poisson
summation Σ_x exp(-x²/(2σ²)) = σ√(2π) Σ_j exp(-2π²σ²j²) ≥ σ√(2π), and for m ≥ 1 Σ_{x≥m}
exp(-x²/(2σ²)) ≤ ∫_{m-1}^∞. So P(X ≥ m) ≤ P(N(0, σ²) ≥ m - 1): the normal tail, a unit later. *The
discrete Laplace law* of scale a is that of ⌊aE⌋ - ⌊aE'⌋ with E, E' independent exponential, so it
is within a unit of a(E - E'), which is Laplace: P(X ≥ m) ≤ ½ e^{-(m-1)/a} for m ≥ 1. (With scale
a the standard deviation is √2 a; a Gaussian law is given by its standard deviation.)

A difference of two. *Gaussian.* P(X - Y = d) = exp(-d²/(4σ²)) Σ_y exp(-(y + d/2)²/σ²)/Z², with Z
≥ σ√(2π) as above. By Poisson summation the sum is at most σ√π Σ_j exp(-π²σ²j²) ≤ 1.0003 σ√π for σ
≥ 1 unit, which is the least noise there is. So P(X - Y = d) is at most 1.0003 times the density
of N(0, 2σ²) at d, and P(X - Y ≥ m) ≤ 1.0003 P(N(0, 2σ²) ≥ m - 1). *Laplace.* X - Y is within two
units of the difference of two Laplace variables, which exceeds x with probability ¼ (2 + x/a)
e^{-x/a}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.mechanisms._fixed_point import (
    UNITS,
    from_units,
    release_range,
    round_to_multiple,
    to_units,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ladderboard.mechanisms._session import Setup

ZERO_ONE = "The loss is zero-one, without weights and groups: every risk is a multiple of 1/n."
_CELL_TOLERANCE = 1e-6  # how far, in cells, a value may be from a multiple of 1/n by rounding
_MAX_DIRECT_TERMS = 1000
UNIT = 1e-12
_HALVINGS = 200
# The difference of two discrete Gaussians may exceed the continuous tail by this factor.
_EXCESS = 1.0003
# Risks are rounded to units, and so are losses before they are averaged.
_ROUNDING = 2 * UNIT


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

    @property
    def concave(self) -> bool:
        """Whether ``log_count`` is concave."""
        return True

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


@lru_cache(maxsize=1024)  # with a fixed budget the arguments are the same for every question
def noise_quantile(law: str, scale: float, chance: float) -> float:
    """Return q such that one draw is above q with probability at most ``chance``.

    ``scale`` is the standard deviation of a Gaussian law, the scale of a Laplace law.

    >>> round(noise_quantile("gaussian", 1.0, 0.025), 3)
    1.96
    >>> round(noise_quantile("laplace", 1.0, 0.025), 3)
    2.996
    """
    if scale == 0:
        return 0.0
    tail = _gaussian if law == "gaussian" else _laplace
    return scale * _invert_tail(tail, chance) + UNIT


@lru_cache(maxsize=1024)
def difference_quantile(law: str, scale: float, chance: float) -> float:
    """Return q such that the difference of two draws is above q with probability ``chance``.

    >>> round(difference_quantile("gaussian", 1.0, 0.025), 3)
    2.772
    """
    if scale == 0:
        return 0.0
    if law == "gaussian":
        return math.sqrt(2) * scale * _invert_tail(_gaussian, chance / _EXCESS) + UNIT
    return scale * _invert_tail(_laplace_difference, chance) + 2 * UNIT


def _gaussian(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _laplace(x: float) -> float:
    return math.exp(-x) / 2


def _laplace_difference(x: float) -> float:
    return (2 + x) * math.exp(-x) / 4


def _invert_tail(tail: Callable[[float], float], chance: float) -> float:
    """Return the least x >= 0 with tail(x) <= chance, rounded up."""
    low, high = 0.0, 1.0
    while tail(high) > chance:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if tail(middle) > chance:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True)
class ReleaseDeviation:
    """The parameters of R_t - min_i R_S(f_i): step, grid, and the three noises with their law."""

    step: float
    grid: float = 0.0
    compare: float = 0.0
    standing: float = 0.0
    release: float = 0.0
    law: str = "gaussian"
    noisy: bool = field(init=False, repr=False, compare=False)
    """Whether the noise needs a part of the failure probability."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noisy", bool(self.compare or self.standing or self.release))

    def interval(
        self,
        questions: int,
        beta: float,
        *,
        ladders: int = 1,
        anytime: bool = False,
        asked: int | None = None,
    ) -> tuple[float, float]:
        """Return an interval for R_t - min_i R_S(f_i) that fails with probability at most beta.

        It holds at all times simultaneously: up to ``questions``, or for any number of questions
        if ``anytime``, when ``questions`` is the number asked so far. If ``questions`` may be
        amended, ``asked`` is the number so far, and half of every draw's weight is the anytime one.
        """
        if not self.noisy:
            on_compare = on_release = 0.0
        elif anytime:
            shares = _anytime_shares(questions, ladders)
            on_compare, on_release = self._quantiles(shares, shares, beta)
        else:
            budget_shares = shares = _known_budget_shares(questions, ladders)
            if asked is not None:
                shares = _mixed_shares(
                    None if asked > questions else budget_shares, _anytime_shares(asked, ladders)
                )
            on_compare, on_release = self._quantiles(shares, budget_shares, beta)
        half = self.grid / 2
        low = -half - on_release
        high = max(self.step + on_compare, half + on_release)
        return low - _ROUNDING, high + _ROUNDING

    def _quantiles(
        self, shares: _Shares, budget_shares: _Shares, beta: float
    ) -> tuple[float, float]:
        """Return the quantiles of comparison and release.

        ``budget_shares`` decide whether the two noises of a comparison are bounded together.
        """
        compared = bool(self.compare or self.standing)
        beta /= compared + bool(self.release)
        on_release = noise_quantile(self.law, self.release, beta / 2 * shares.draw)
        if not self.standing:
            return noise_quantile(self.law, self.compare, beta * shares.draw), on_release
        if not self.compare:
            return noise_quantile(self.law, self.standing, beta * shares.slack), on_release
        if self.standing == self.compare and self._difference_quantile(
            budget_shares, beta
        ) < self._separate_quantiles(budget_shares, beta):
            return self._difference_quantile(shares, beta), on_release
        return self._separate_quantiles(shares, beta), on_release

    def _separate_quantiles(self, shares: _Shares, beta: float) -> float:
        on_draw = noise_quantile(self.law, self.compare, beta / 2 * shares.draw)
        return on_draw + noise_quantile(self.law, self.standing, beta / 2 * shares.slack)

    def _difference_quantile(self, shares: _Shares, beta: float) -> float:
        return difference_quantile(self.law, self.compare, beta * shares.pair)


class _Shares(NamedTuple):
    """The shares of the failure probability for a draw, a slack and a pair of draws.

    The smallest ones, which are those of the last question.
    """

    draw: float
    slack: float
    pair: float


def _known_budget_shares(k: int, ladders: int) -> _Shares:
    """Return even shares, for a known number of questions."""
    opened = min(ladders, k)
    return _Shares(1 / k, 1 / (k - 1 + opened), 1 / (k * (k - 1) // 2 + k * opened))


def _anytime_shares(t: int, ladders: int) -> _Shares:
    """Return the shares of question t under weights for any number of questions."""
    draw = 1 / (t * (t + 1))
    slack = draw if ladders == 1 else draw / 2
    return _Shares(draw, slack, draw / (t - 1 + min(ladders, t)))


def _mixed_shares(known: _Shares | None, anytime: _Shares) -> _Shares:
    """Return the mean of both; ``known`` is None for questions beyond the initial budget."""
    known = _Shares(0, 0, 0) if known is None else known
    return _Shares(*((a + b) / 2 for a, b in zip(known, anytime, strict=True)))


class VisibleChange(NamedTuple):
    """A change as everybody sees it.

    ``question`` is its number over all ladders, from 1, ``value`` the released value and
    ``error_class`` the class of the model's standard error, where it is released.
    """

    question: int
    value: float
    ladder: Any = 0
    error_class: int | None = None


class ReplayedChanges(NamedTuple):
    """What follows from the changes of a board, in the order of their questions.

    Parameters
    ----------
    prices
        What was released costs this much, by the number of changes seen.
    own_prices
        What the limit on the variance of each model that made a change costs besides.
    above
        How far its risk on the holdout lies above the value released for it, at most.
    noises
        The standard deviation of the noise in that value, which is cut so that it is in ``above``.
    variances
        A limit on the variance of its losses on the holdout; infinite if there is none.
    floor
        No model so far has a lower risk on the holdout.
    reach
        No model is further below the value that it was compared with, without being released.
    cut
        At how many standard deviations noise is cut.
    """

    prices: tuple[float, ...]
    own_prices: tuple[float, ...]
    above: tuple[float, ...]
    noises: tuple[float, ...]
    variances: tuple[float, ...]
    floor: float
    reach: float
    cut: float


@dataclass(frozen=True)
class Transcript:
    """The possible releases of a mechanism.

    Parameters
    ----------
    values
        The values that changes may have, or all scores if ``every_question``.
    deviation
        How far the released value may lie from the least risk on the holdout.
    lowest, highest, cell
        The range of releases, in cells; a ladder has R_0 besides.
    every_question
        Whether every model gets a score; then questions are counted, not changes.
    assumptions
        Additional assumptions.
    """

    values: ReleaseValues
    deviation: ReleaseDeviation
    lowest: int
    highest: int
    cell: float
    every_question: bool = False
    assumptions: tuple[str, ...] = ()

    def can_release(self, value: float, high: float, changes: int | None) -> bool:
        """Return whether the value is possible after this many changes (None: any number)."""
        ladder = not self.every_question
        # In units, as in the ladder's state: the upper end of the range may lie between two.
        if ladder and not changes and to_units(value) == to_units(high):
            return True
        if ladder and changes == 0:
            return False
        cells = value / self.cell
        near = abs(cells - round(cells)) < _CELL_TOLERANCE * max(1.0, abs(cells) * _CELL_TOLERANCE)
        highest = self.highest
        if ladder and changes:
            highest -= (changes - 1) * self.values.drop
        return near and self.lowest <= round(cells) <= highest

    def deviation_after(
        self, released: float | None, changes: int, others: int
    ) -> ReleaseDeviation:
        """Return how far the released value may lie from the least risk on the holdout.

        ``released`` is None if it is not known. ``changes`` is the largest number of changes of one
        ladder, ``others`` that of all others together.
        """
        return self.deviation

    def replay(self, changes: tuple[VisibleChange, ...], ladders: int) -> ReplayedChanges | None:
        """Return what follows from the values of changes; None if nothing more than their number.

        Raises ``InvalidState`` if they are impossible.
        """
        return None

    def difference_range(self, setup: Setup) -> tuple[float, float]:
        """Return the range of a risk minus a release, in all cases."""
        top, bottom = self.highest * self.cell, self.lowest * self.cell
        if not self.every_question:
            top = max(top, from_units(to_units(setup.high)))  # R_0
        return setup.low - max(top, setup.high), setup.high - min(bottom, setup.low)


def ladder_transcript(step: int, grid: int, setup: Setup) -> Transcript:
    """Return the possible releases of a Ladder with this step and grid, in units."""
    bottom, top = release_range(setup.low, setup.high, grid)
    start = to_units(setup.high)
    # A crossing has risk <= R - step - 1 in units, and lands within half a cell of it.
    drop = max(1, -(-(2 * step + 2 - grid) // (2 * grid)))
    first = min(round_to_multiple(start - step - 1, grid), multiple_below(start, grid), top)
    return Transcript(
        GridValues.from_grid((first - bottom) // grid + 1, drop),
        ReleaseDeviation(step / UNITS, grid / UNITS),
        bottom // grid,
        first // grid,
        grid / UNITS,
    )


def multiple_below(units: int, grid: int) -> int:
    """Return the largest multiple of the grid strictly below."""
    return (units - 1) // grid * grid
