"""How far the released value lies from the least risk on the holdout, by step, grid and noise.

Proofs: docs/explanation/certificates.md, "Noise" and "The sample part". All lengths are risks; a
unit is 1e-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

UNIT = 1e-12
_HALVINGS = 200
# The difference of two discrete Gaussians may exceed the continuous tail by this factor.
_EXCESS = 1.0003
# Risks are rounded to units, and so are losses before they are averaged.
_ROUNDING = 2 * UNIT


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

    @property
    def noisy(self) -> bool:
        """Whether the noise needs a part of the failure probability."""
        return bool(self.compare or self.standing or self.release)

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
