"""Limits for a mean: by relative entropy, by tails of the binomial law, for a fresh sample.

Proofs: docs/explanation/certificates.md, "The theorem", "Exact tails" and "A fresh sample".

*In floating point.* *kl* is computed as q g((p-q)/q) + (1-q) g((q-p)/(1-q)), where g(x) = x -
ln(1+x) ≥ 0: the linear parts of the two logarithms cancel on paper. g itself is summed from its
series for |x| ≤ 0.1, so the relative error is below 10⁻¹³, however close p is to q. Its inverses
are solved for a right side larger by as much, and the end of the last bracket that lies outside
is returned; at q = 0 and q = 1 they are 1 - e^{-c} and e^{-c}. Another range than [0, 1] is
scaled there and back with a few last bits to spare on either side.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ladderboard import _settings

if TYPE_CHECKING:
    from collections.abc import Callable

_HALVINGS = 1100  # enough for all powers of two between 0 and 1, and a double's bits
_SMALL = 0.1
# The relative error of ``kl`` is below this; what is solved for is moved outwards by as much.
_SLACK = 1e-13
_NEWTON_STEPS, _LAST_STEP = 8, 1e-6  # of Newton's method; the error after a step is its square
_NEWTON_TOLERANCE = 1e-12  # its usual relative error, where it is not within two last bits
_CANCELLED = 1e-6  # below this the plain formula of kl has too few digits
_CLEARLY = 1e-12  # above rounding errors, relative or not, of numbers in [0, 1]
_NEGLIGIBLE = 1e-280  # so far above _SMALLEST that q ln(p / q) is below p's last bit
_NOISE_PARTS = 24  # of the law of a noise; each counts with its worst end
_LATTICE = 1e-6  # what the steps of the lattice that noise is drawn on can add to a part
_PRECISION = 1e-6
_SMALLEST = 1e-300  # below this doubles lose digits; 0 is further out


def kl(q: float, p: float) -> float:
    """Return kl(q || p) of two coins, in nats.

    As q g(p/q) + (1 - q) g((1 - p)/(1 - q)) with g(1 + x) = x - ln(1 + x) >= 0: the linear parts
    of the two logarithms cancel in theory but not in floating point.

    >>> round(kl(0.5, 0.25), 4)
    0.1438
    """
    if q <= 0:
        return math.inf if p >= 1 else -math.log1p(-p)
    if q >= 1:
        return math.inf if p <= 0 else -math.log(p)
    if p <= 0 or p >= 1:
        return math.inf
    rest, difference = 1 - q, p - q
    return q * _log_remainder(difference / q, p / q) + rest * _log_remainder(
        -difference / rest, (1 - p) / rest
    )


def _log_remainder(x: float, ratio: float) -> float:
    """Return x - ln(1 + x), where ``ratio`` is 1 + x; by its series if x is small.

    The next term of the series is below a last bit. It is written out, because a loop takes three
    times as long, and every answer needs a hundred of these values.
    """
    if not -_SMALL <= x <= _SMALL:
        return x - math.log(ratio)
    total = 1 / 13 - x * (1 / 14 - x * (1 / 15 - x * (1 / 16 - x * (1 / 17 - x * (1 / 18)))))
    total = 1 / 8 - x * (1 / 9 - x * (1 / 10 - x * (1 / 11 - x * (1 / 12 - x * total))))
    total = 1 / 3 - x * (1 / 4 - x * (1 / 5 - x * (1 / 6 - x * (1 / 7 - x * total))))
    return x * x * (1 / 2 - x * total)


@lru_cache(maxsize=1024)  # a board needs the same values again and again
def kl_upper(q: float, nats: float) -> float:
    """Return the largest p with kl(q || p) <= nats, rounded up.

    >>> round(kl_upper(0.05, 0.005), 4)
    0.0748
    """
    nats *= 1 + _SLACK
    if q < _SMALLEST:  # as for q = 0: p / q could overflow, and q ln(p / q) is negligible
        return min(max(math.nextafter(-math.expm1(-nats), 1.0), _NEGLIGIBLE if q else 0.0), 1.0)
    return _bisect_kl(q, nats, q, 1.0)


@lru_cache(maxsize=1024)
def kl_lower(q: float, nats: float) -> float:
    """Return the least p with kl(q || p) <= nats, rounded down.

    >>> round(kl_lower(0.05, 0.005), 4)
    0.0311
    """
    nats *= 1 + _SLACK
    if q >= 1:
        return max(math.nextafter(math.exp(-nats), 0.0), 0.0)
    return _bisect_kl(q, nats, q, 0.0)


def variance_upper(q: float, variance: float, nats: float) -> float:
    """Return a limit for the mean of losses in [0, 1], from their mean and variance on a sample.

    As if losses lay between ``bottom`` and 1: equation (2). Without a variance it is ``kl_upper``.

    >>> round(variance_upper(0.1, 0.001, 0.005), 4), round(variance_upper(0.1, 1.0, 0.005), 4)
    (0.1066, 0.1326)
    """
    bottom = 0.0 if q >= 1 else max(q - variance / (1 - q), 0.0) * (1 - _SLACK)
    scaled = min((q - bottom) / (1 - bottom) * (1 + _SLACK), 1.0) if bottom else q
    return min(bottom + (1 - bottom) * kl_upper(scaled, nats) * (1 + _SLACK), 1.0)


@lru_cache(maxsize=1024)
def binomial_upper(n: int, q: float, nats: float) -> float:
    """Return p such that at most n q successes in n trials of mean p have probability e^-nats.

    Rounded up, for trials of unequal probabilities too; between ``q`` and ``kl_upper``.

    >>> round(binomial_upper(10_000, 0.1, 50), 4), round(kl_upper(0.1, 0.005), 4)
    (0.1316, 0.1326)
    """
    loose = kl_upper(q, nats / n)
    successes = n * q
    if not 1 <= successes <= n - 1:
        return loose
    saved = _saved_nats(n, successes)

    def solve(p: float) -> float:
        return kl_upper(q, max(nats - saved(p), 0.0) / n)

    # ``solve`` falls, so its value at a point that is too low is high enough.
    return min(loose, max(solve(solve(loose)), (successes + 1) / n))


def _saved_nats(n: int, successes: float) -> Callable[[float], float]:
    """Return s of equation (1): the tail is exp(-n kl(q || p) - s(p)) at most; s rises with p."""
    root = 0.5 * math.log(2 * math.pi * successes * (1 - successes / n))
    root += _stirling_tail(successes) + _stirling_tail(n - successes) - 1 / (12 * n)

    def saved(p: float) -> float:
        ratio = ((n + 1) * p - successes) / ((n - successes + 1) * p)
        return (root + math.log(ratio)) * (1 - _SLACK)

    return saved


@lru_cache(maxsize=1024)
def noisy_binomial_upper(n: int, q: float, noise: float, cut: float, nats: float) -> float:
    """Return p such that n trials of mean p plus noise are at most q with probability e^-nats.

    The noise on the share of successes is Gaussian, cut at ``cut`` of its standard deviations
    ``noise``; it may be rounded by 1e-12. Equation (3).

    >>> round(noisy_binomial_upper(10_000, 0.1, 0.001, 3.0, 50), 4)
    0.1332
    """
    worst = binomial_upper(n, min(q + cut * noise, 1.0), nats)
    inside = math.erf(cut / math.sqrt(2))
    edges = [cut * (2 * j / _NOISE_PARTS - 1) for j in range(_NOISE_PARTS + 1)]
    parts = []
    for low, high in pairwise(edges):
        share = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2 / inside
        successes = n * (q - low * noise)
        if not 1 <= successes <= n - 1:
            return worst
        parts.append((share + _LATTICE, successes, _saved_nats(n, successes)))

    def tail(p: float) -> float:
        return math.fsum(
            share * math.exp(-n * kl(successes / n, p) - max(saved(p), 0.0))
            if successes + 1 <= n * p
            else share
            for share, successes, saved in parts
        )

    low, high, allowed = q, worst, math.exp(-nats) * (1 - _SLACK * n)
    if not allowed or tail(high) > allowed:
        return worst
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > allowed else (low, middle)
    return high


def binomial_lower(n: int, q: float, nats: float) -> float:
    """Return p such that at least n q successes in n trials of mean p have probability e^-nats.

    >>> round(binomial_lower(10_000, 0.1, 50), 4), round(kl_lower(0.1, 0.005), 4)
    (0.0734, 0.0727)
    """
    exact = math.nextafter(1 - binomial_upper(n, 1 - q, nats), 0.0)
    # The kl form for 1 - q is cached by now; it differs from that for q in the last bits only.
    if exact > 1 - kl_upper(1 - q, nats / n) + _CLEARLY:
        return exact
    return max(exact, kl_lower(q, nats / n))


def _stirling_tail(number: float) -> float:
    """Return a lower bound on the remainder of Stirling's formula for ln(number!)."""
    return 1 / (12 * number) - 1 / (360 * number**3)


def _newton_bracket(q: float, nats: float, inside: float, outside: float) -> tuple[float, float]:
    """Return a tight bracket of the solution by Newton's method, to shorten the bisection.

    It starts at the solution of the first two terms of kl's series in p - q, or at Pinsker's bound
    where that is no use. The last step and the ends are exact, so nothing depends on the others.
    """
    sign, rest = (1.0 if outside > inside else -1.0), 1 - q
    p = q + sign * math.sqrt(2 * q * rest * nats) + (rest - q) * nats * (2 / 3)
    if not 0 < p < 1 or (p - q) * sign <= 0:
        p = q + sign * math.sqrt(nats / 2)
    exact = q <= 0 or q >= 1 or nats < _CANCELLED
    for _ in range(_NEWTON_STEPS):
        if not 0 < p < 1 or (p - q) * sign <= 0:
            return inside, outside
        value = kl(q, p) if exact else q * math.log(q / p) + rest * math.log(rest / (1 - p))
        step = (value - nats) * p * (1 - p) / (p - q)
        p -= step
        if abs(step) <= _LAST_STEP * min(p, 1 - p):
            if exact:
                break
            exact = True
    for tolerance in (2 * math.ulp(p), _NEWTON_TOLERANCE * min(p, 1 - p)):
        before, after = p - sign * tolerance, p + sign * tolerance
        if 0 < before < 1 and (before - inside) * sign > 0 and kl(q, before) <= nats:
            inside = before
        between = (after - q) * sign > 0 and (outside - after) * sign > 0
        if 0 < after < 1 and between and kl(q, after) > nats:
            outside = after
        if (inside, outside) == (before, after):
            break
    return inside, outside


def _bisect_kl(q: float, nats: float, inside: float, outside: float) -> float:
    """Return the first double p, from ``inside`` to ``outside``, whose kl is above nats."""
    inside, outside = _newton_bracket(q, nats, inside, outside)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if middle in {inside, outside}:
            break
        if kl(q, middle) <= nats:
            inside = middle
        else:
            outside = middle
    return 0.0 if outside < _SMALLEST else outside


def fresh_sample_interval(
    n: int, risk: float, *, models: int = 1, beta: float = 0.05, weighted: bool = False
) -> tuple[float, float]:
    """Return an interval for the true risk of a model that was chosen without this sample.

    Parameters
    ----------
    n
        Number of examples or groups in the sample, or the effective number of weighted ones.
    risk
        The model's mean loss on it.
    models
        For how many models the intervals hold simultaneously.
    beta
        The probability with which any of them may be false.
    weighted
        Whether examples have weights; then Hoeffding's form is used.

    Examples
    --------
    >>> low, high = fresh_sample_interval(10_000, 0.1, models=50)
    >>> print(f"[{low:.3f}, {high:.3f}]")
    [0.089, 0.112]
    """
    n = _settings.integer("n", n, at_least=1)
    models = _settings.integer("models", models, at_least=1)
    risk = _settings.number("risk", risk, at_least=0, at_most=1)
    beta = _settings.number("beta", beta, above=0, below=1)
    nats = math.log(2 * models / beta) * (1 + 1e-12)
    if weighted:
        half = math.sqrt(nats / (2 * n))
        return max(risk - half, 0.0), min(risk + half, 1.0)
    return kl_lower(risk, nats / n), kl_upper(risk, nats / n)
