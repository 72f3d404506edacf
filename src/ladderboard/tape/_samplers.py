"""Exact samplers in integer arithmetic.

Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms
1 to 3. No logarithm, no exponential and no floating-point number is computed, so the law holds
exactly and every machine draws the same integer from the same stream. Why they are exact:
docs/explanation/tape.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ladderboard.tape._stream import Stream

__all__ = ["bernoulli_exp", "discrete_gaussian", "discrete_laplace"]


def bernoulli_exp(stream: Stream, numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator/denominator), for a ratio >= 0 (Alg. 1)."""
    whole, rest = divmod(numerator, denominator)
    for _ in range(whole):
        if not _bernoulli_exp_below_one(stream, 1, 1):
            return False
    return _bernoulli_exp_below_one(stream, rest, denominator)


def _bernoulli_exp_below_one(stream: Stream, numerator: int, denominator: int) -> bool:
    """Alg. 1 for a ratio in [0, 1]: the first K that fails Bernoulli(ratio/K) is odd."""
    if numerator == 0:
        return True
    k = 1
    below = stream.below
    while below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(stream: Stream, numerator: int, denominator: int = 1) -> int:
    """Draw x with probability proportional to exp(-|x| denominator/numerator) (Alg. 2).

    The scale is numerator/denominator.
    """
    while True:
        low = stream.below(numerator)
        if not _bernoulli_exp_below_one(stream, low, numerator):
            continue
        high = 0
        while _bernoulli_exp_below_one(stream, 1, 1):
            high += 1
        magnitude = (low + numerator * high) // denominator
        negative = stream.take(1)[0] & 1
        if negative and magnitude == 0:  # zero has one sign only
            continue
        return -magnitude if negative else magnitude


def discrete_gaussian(stream: Stream, numerator: int, denominator: int = 1) -> int:
    """Draw x with probability proportional to exp(-x² / (2 sd²)), sd = numerator/denominator.

    Alg. 3: a discrete Laplace draw of scale t = floor(sd) + 1, accepted with probability
    exp(-(|x| - sd²/t)² / (2 sd²)).
    """
    t = numerator // denominator + 1
    variance_top = numerator * numerator
    variance_bottom = denominator * denominator
    accept_bottom = 2 * variance_top * variance_bottom * t * t
    while True:
        x = discrete_laplace(stream, t)
        distance = abs(x) * t * variance_bottom - variance_top
        if bernoulli_exp(stream, distance * distance, accept_bottom):
            return x
