"""The majority attack, simulated, and the exact moments of its error.

The attack asks about k random sign vectors, flips those whose answer is not positive, and submits
the majority vote. An answer is the correlation 1 - 2 risk, plus Gaussian noise of standard
deviation σ on that correlation (σ/2 on the risk). The equation numbers below are used in the code.

*Agreement is all that matters.*

Write 1 where a query agrees with the hidden label and 0 where it does not. Queries are fair
coins, so these agreement bits are independent fair coins too, whatever the labels are. A row with
c agreements is answered by (2c - n)/n; it keeps its sign with probability

    keep(c) = Φ((2c - n)/(nσ)),      for σ = 0: 1 if 2c > n, else 0,

and has r = c agreements if kept, r = n - c if flipped. The vote is right in a column if more than
half of its k bits agree. With exactly half, the paper's program says +1, which is right for half
of the labels, and the labels are fair and independent of the agreement bits: a tie is a fair
coin.

So the labels and the matrix of signs can be forgotten. What remains is k independent rows of n
exchangeable bits.

*One column.*

Let p be the probability that a bit agrees after flipping, p = 1/2 + δ. With y = r - n/2 = ±(c -
n/2),

    δ = E[y]/n = (2/n) Σ_{c > n/2} C(n, c) 2^-n (c - n/2) erf((2c - n)/(nσ√2)),   (1)

because c and n - c contribute the same, and 2Φ(x) - 1 = erf(x/√2). Without noise this is the mean
absolute deviation of a fair binomial divided by n, which has a closed form,

    δ = C(2m, m) 4^-m / 2,      m = ⌊n/2⌋.   (2)

Rows are independent, so a column's count X is exactly Bin(k, p), and

    q = E[error] = P(X < k/2) + P(X = k/2)/2.

*Two columns.*

Flipping changes the sign of y and not its square. So E[y²] = n/4 for every σ, and with E[r] = n/2
+ nδ

    E[r(r - 1)] = n²/4 + n²δ + n/4 - n/2 - nδ = n(n - 1)(1/4 + δ).

Given r, all columns are alike, so two bits of a row both agree with probability 1/4 + δ. Their
covariance is 1/4 + δ - (1/2 + δ)² = -δ², and their correlation

    ρ = -δ²/(1/4 - δ²).   (3)

It is never positive: a row that agrees here has one agreement less to spend elsewhere. For n ≥ 2,
(2) gives δ ≤ 1/4, and noise makes δ smaller, so |ρ| ≤ 1/3.

*The joint law of two counts.*

Let φ(b) = (b - p)/√(p(1-p)). Two bits with correlation ρ have the joint probability w(b)w(b')(1 +
ρ φ(b)φ(b')): both sides have the same margins and the same covariance, and nothing else is free.
Over k independent rows the product is

    Π w(b_i) w(b'_i) · Σ_S ρ^|S| φ_S(b) φ_S(b'),      φ_S(b) = Π_{i in S} φ(b_i),

over all sets S of rows. Let h(x) = 1{x < k/2} + 1{x = k/2}/2 be the expected error of a column
with count x. Then E[h(X)h(X')] = Σ_S ρ^|S| E[h φ_S]². By symmetry E[h φ_S] depends on m = |S|
only. The sum of φ_S over the C(k, m) sets of that size, divided by √C(k, m), has variance 1, is
uncorrelated with those of other sizes, and is a polynomial of degree m in the count: it is the
orthonormal Krawtchouk polynomial K_m of Bin(k, p). So

    Cov(e, e') = Σ_{m ≥ 1} ρ^m a_m²,      a_m = E[h(X) K_m(X)].   (4)

(The coins of two tied columns are independent, and do not show in the covariance.)

The coefficients need no sum. Let w_k be the probabilities of Bin(k, p), s = 1 - p, and G(x) =
w_{k-1}(x) K'_{m-1}(x), where K' belongs to k - 1 rows. Since w_{k-1}(x)/w_k(x) = (k - x)/(ks) and
w_{k-1}(x - 1)/w_k(x) = x/(kp), the quotient (G(x) - G(x - 1))/w_k(x) is a polynomial of degree m,
whose leading coefficient is that of K'_{m-1} times -1/(kps). Summation by parts gives Σ f(x)(G(x)
- G(x - 1)) = -Σ G(x)(f(x + 1) - f(x)), which vanishes for every polynomial f of degree below m.
So the quotient is c K_m for some c. Comparing leading coefficients, ℓ' of K'_{m-1} and ℓ of K_m,
gives cℓ = -ℓ'/(kps); taking f = K_m gives c = -mℓ/ℓ'. Together c² = m/(kps), c < 0, and summing
over x ≤ t

    Σ_{x ≤ t} w_k(x) K_m(x) = -√(kps/m) w_{k-1}(t) K'_{m-1}(t).

For odd k, h is the step at t = (k - 1)/2. For even k it is the mean of the steps at k/2 - 1 and
k/2. Writing the mean over those one or two points as ⟨·⟩,

    Cov(e, e') = kps Σ_{m = 1}^{k} (ρ^m/m) ⟨w_{k-1}(t) K'_{m-1}(t)⟩².   (5)

All a_m² together are at most 1/4 and |ρ| ≤ 1/3, so 48 terms leave less than 10^-22. Finally

    Var(error) = q(1 - q)/n + (1 - 1/n) Cov(e, e').   (6)

A single example (n = 1) has no pairs: the error is 1 with probability q.

`majority_attack_moments` takes about a millisecond at n = k = 10^6. Tests compare it with the
enumeration of all matrices for tiny n and k, and with a direct sum for moderate ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard._settings import integer, number
from ladderboard.arena._runner import available_cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_SIZE = 2**32  # the largest n and k for which floats and streams were checked
_SERIES_FROM = 512  # beyond it the asymptotic series of a central term is exact to the last bit
_TERMS = 48  # |rho| <= 1/3 for n >= 2, and 3^-48 is below 10^-22


class Moments(NamedTuple):
    """The mean and the standard deviation of a random error."""

    mean: float
    std: float


def majority_attack_moments(n: int, k: int, sigma: float = 0.0) -> Moments:
    """Return the exact mean and standard deviation of the majority attack's error.

    Parameters
    ----------
    n
        How many examples the holdout has.
    k
        How many random vectors the attack asks about.
    sigma
        The standard deviation of the noise on every answer, in the paper's units: on the
        correlation 1 - 2 risk. On the risk it is half as much.

    Examples
    --------
    >>> mean, std = majority_attack_moments(10_000, 1_000)
    >>> round(mean, 5), round(std, 5)
    (0.40042, 0.00381)

    Noise of three standard deviations of a random answer weakens the attack:

    >>> round(majority_attack_moments(10_000, 1_000, sigma=0.03).mean, 5)
    0.46821

    Notes
    -----
    Exact up to the rounding of floats: there is no normal approximation, and the time does not
    grow faster than the roots of n and k.
    """
    n = integer("n", n, at_least=1, at_most=MAX_SIZE)
    k = integer("k", k, at_least=1, at_most=MAX_SIZE)
    sigma = number("sigma", sigma, at_least=0)
    delta = _advantage(n, sigma)
    if n == 1:  # 1 - p by itself: 1/2 - delta would lose its digits
        wrong = 0.5 * math.erfc(math.sqrt(0.5) / sigma) if sigma else 0.0
        mean = _mean_error(k, 1.0 - wrong, wrong)
        return Moments(mean, math.sqrt(mean * (1.0 - mean)))
    p, s = 0.5 + delta, 0.5 - delta
    mean = _mean_error(k, p, s)
    rho = -delta * delta / (p * s)  # Eq. (3)
    variance = mean * (1.0 - mean) / n + (1.0 - 1.0 / n) * _covariance(k, p, s, rho)  # Eq. (6)
    return Moments(mean, math.sqrt(max(variance, 0.0)))


def _advantage(n: int, sigma: float) -> float:
    """Return delta = p - 1/2, Eq. (1): how much better than a coin one answered row is."""
    middle = _central_binomial(n // 2)
    if sigma == 0.0:
        return middle / 2.0  # Eq. (2)
    # Terms beyond twelve standard deviations are below the precision of a float.
    above = np.arange(n // 2 + 1, min(n, n // 2 + int(6.0 * math.sqrt(n)) + 8) + 1, dtype=float)
    weights = middle * np.cumprod((n - above + 1.0) / above)
    if n % 2:  # the middle of an odd n is not on the lattice: C(2m+1, m) = C(2m, m) (2m+1)/(m+1)
        weights *= n / (n + 1.0)
    excess = 2.0 * above - n
    with np.errstate(over="ignore"):
        tilt = [math.erf(scaled) for scaled in excess / (n * math.sqrt(2.0)) / sigma]
    return float(np.sum(weights * excess * tilt)) / n


def _mean_error(k: int, p: float, s: float) -> float:
    """Return P(X < k/2) + P(X = k/2)/2 for X ~ Bin(k, p), with s = 1 - p."""
    if s == 0.0:
        return 0.0
    m = k // 2
    tie = _tie_probability(m, p, s)
    top = tie * s * k / (m + 1.0) if k % 2 else tie  # P(X = m)
    # Terms fall from m downwards, at least as fast as those of a fair coin.
    down = np.arange(m, max(0, m - int(6.5 * math.sqrt(k)) - 8), -1, dtype=float)
    below = float(np.sum(np.cumprod(down * s / ((k - down + 1.0) * p))))
    return top * ((1.0 if k % 2 else 0.5) + below)


def _covariance(k: int, p: float, s: float, rho: float) -> float:
    """Return the covariance of two columns' errors, Eq. (5)."""
    m = k // 2
    tie = _tie_probability(m, p, s)
    # For even k: Bin(k - 1) at the two sides of the tie, from Bin(k) at it.
    steps = [(m, tie)] if k % 2 else [(m - 1, tie / (2.0 * p)), (m, tie / (2.0 * s))]
    points = np.array([x for x, _ in steps], dtype=float)
    weights = np.array([weight for _, weight in steps]) / len(steps)
    spread = math.sqrt(k * p * s)
    total, power = 0.0, 1.0
    for degree, values in enumerate(_krawtchouk(k - 1, p, s, points), start=1):
        power *= rho
        total += power * (spread * float(weights @ values)) ** 2 / degree
    return total


def _krawtchouk(k: int, p: float, s: float, points: Any) -> list[Any]:
    """Return the first orthonormal polynomials of Bin(k, p) at the points."""
    polynomials = [np.ones_like(points)]
    before, now = np.zeros_like(points), polynomials[0]
    for degree in range(min(k, _TERMS - 1)):
        shifted = (points - k * p - degree * (s - p)) * now
        shifted = shifted - math.sqrt(degree * (k - degree + 1.0) * p * s) * before
        before, now = now, shifted / math.sqrt((degree + 1.0) * (k - degree) * p * s)
        polynomials.append(now)
    return polynomials


def _tie_probability(m: int, p: float, s: float) -> float:
    """Return P(Bin(2m, p) = m)."""
    bend = math.log1p(-((p - s) ** 2)) if p < 0.9 else math.log(4.0 * p * s)
    return _central_binomial(m) * math.exp(m * bend)


def _central_binomial(m: int) -> float:
    """Return P(Bin(2m, 1/2) = m)."""
    if m <= _SERIES_FROM:
        return math.comb(2 * m, m) / 4**m
    series = -1.0 / (8.0 * m) + 1.0 / (192.0 * m**3) - 1.0 / (640.0 * m**5)
    return math.exp(series) / math.sqrt(math.pi * m)


def majority_attack(
    n: int,
    k: int,
    sigma: float = 0.0,
    repetitions: int = 100,
    seed: int = 0,
    *,
    first: int = 0,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Simulate the paper's majority attack and return its errors, one for each repetition.

    The attack asks about ``k`` random sign vectors, keeps those that correlate with the hidden
    labels, flips the others, and submits the majority vote of all. Its error falls below 1/2
    although it has learned nothing.

    Parameters
    ----------
    n
        How many examples the holdout has.
    k
        How many random vectors the attack asks about.
    sigma
        The standard deviation of the noise on every answer, in the paper's units: on the
        correlation 1 - 2 risk. On the risk it is half as much.
    repetitions
        How many independent attacks to simulate.
    seed
        Same seed, same errors, whatever the number of threads.
    first
        The number of the first repetition. A repetition depends only on its number, so a long run
        can be split and its parts joined.
    threads
        How many threads to use; by default one for each core.

    Examples
    --------
    >>> errors = majority_attack(1_000, 100, repetitions=4, seed=1)
    >>> errors
    array([0.392, 0.396, 0.393, 0.413])
    >>> majority_attack(1_000, 100, repetitions=2, seed=1, first=2)
    array([0.393, 0.413])

    Notes
    -----
    The distribution is that of the paper's reference implementation, which stores k n signs of 8
    bytes three times. Here rows are packed into words that are drawn, counted and discarded, and
    memory grows with n log k. Runs that differ in ``sigma`` alone share their random rows.
    `majority_attack_moments` has the exact mean and standard deviation. The first call on a
    machine takes a few seconds to compile.

    References
    ----------
    Hardt, "Climbing a shaky ladder: Better adaptive risk estimation" (2017), the experiments and
    the reference implementation in its appendix.
    """
    n = integer("n", n, at_least=1, at_most=MAX_SIZE)
    k = integer("k", k, at_least=1, at_most=MAX_SIZE)
    sigma = number("sigma", sigma, at_least=0)
    repetitions = integer("repetitions", repetitions, at_least=1, at_most=MAX_SIZE)
    seed = integer("seed", seed, at_least=0, at_most=2**64 - 1)
    first = integer("first", first, at_least=0, at_most=2**62)
    workers = available_cores() if threads is None else integer("threads", threads, at_least=1)
    # Imported late: numba is slow to load.
    from ladderboard.arena._kernels import MajorityAttackRun  # noqa: PLC0415

    return MajorityAttackRun(n, k, sigma, seed).errors(first, repetitions, workers)
