"""Exact moments against enumeration, against direct sums, and against a printed table."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

import ladderboard as lb
from ladderboard.errors import InvalidSetting

# Mean and standard deviation at n = 10000, found once by direct sums and agreeing with simulation.
TABLE = {
    (100, 0): (0.46828, 0.00386),
    (100, 1): (0.47756, 0.00446),
    (100, 3): (0.48996, 0.00490),
    (1_000, 0): (0.40042, 0.00381),
    (1_000, 1): (0.42922, 0.00443),
    (1_000, 3): (0.46821, 0.00489),
    (10_000, 0): (0.21248, 0.00337),
    (10_000, 1): (0.28631, 0.00409),
    (10_000, 3): (0.40040, 0.00480),
}


def enumerated(n, k):
    """Go through all 2^(nk) matrices of agreement bits, without noise, in whole numbers."""
    first = second = Fraction(0)
    rows = list(itertools.product((0, 1), repeat=n))
    oriented_rows = [row if 2 * sum(row) > n else tuple(1 - bit for bit in row) for row in rows]
    for matrix in itertools.product(oriented_rows, repeat=k):
        votes = [sum(column) for column in zip(*matrix, strict=True)]
        errors = sum(2 * vote < k for vote in votes)
        ties = sum(2 * vote == k for vote in votes)
        # A tie is a fair coin: mean 1/2, variance 1/4.
        first += errors + Fraction(ties, 2)
        second += (errors + Fraction(ties, 2)) ** 2 + Fraction(ties, 4)
    first /= n * 2 ** (n * k)
    second /= n * n * 2 ** (n * k)
    return float(first), math.sqrt(second - first**2)


def summed(n, k, sigma):
    """Sum over the joint law of two columns: given one count, the other is two binomials."""
    c = np.arange(n + 1)
    weight = stats.binom.pmf(c, n, 0.5)
    accept = stats.norm.cdf((2 * c - n) / (n * sigma)) if sigma else (2 * c > n).astype(float)
    p = np.sum(weight * (accept * c + (1 - accept) * (n - c))) / n
    both_right = accept * c * (c - 1) + (1 - accept) * (n - c) * (n - c - 1)
    p11 = np.sum(weight * both_right) / (n * (n - 1))
    x = np.arange(k + 1)
    error_weight = (2 * x < k) + 0.5 * (2 * x == k)
    mean = np.sum(stats.binom.pmf(x, k, p) * error_weight)
    pair = 0.0
    for x_value in x[error_weight > 0]:
        agreeing = stats.binom.pmf(np.arange(x_value + 1), x_value, p11 / p)
        p_other = min((p - p11) / (1 - p), 1.0)  # not above 1 by a rounding
        disagreeing = stats.binom.pmf(np.arange(k - x_value + 1), k - x_value, p_other)
        pair += (
            stats.binom.pmf(x_value, k, p)
            * error_weight[x_value]
            * np.sum(np.convolve(agreeing, disagreeing) * error_weight)
        )
    return mean, mean * (1 - mean) / n + (1 - 1 / n) * (pair - mean**2)


@pytest.mark.parametrize(("k", "noise"), TABLE)
def test_the_printed_table(k, noise):
    n = 10_000
    mean, std = lb.majority_attack_moments(n, k, noise / math.sqrt(n))
    assert (round(mean, 5), round(std, 5)) == TABLE[k, noise]


@pytest.mark.parametrize(
    ("n", "k"), [(2, 1), (2, 2), (2, 5), (3, 1), (3, 2), (3, 4), (4, 3), (5, 2), (1, 6), (7, 2)]
)
def test_small_cases_by_enumeration(n, k):
    assert lb.majority_attack_moments(n, k) == pytest.approx(enumerated(n, k), abs=1e-14)


@pytest.mark.parametrize("n", [2, 3, 10, 101, 1_000])
@pytest.mark.parametrize("k", [1, 2, 3, 20, 61, 200])
@pytest.mark.parametrize("noise", [0.0, 0.3, 3.0, 300.0])
def test_moderate_cases_by_direct_sums(n, k, noise):
    sigma = noise / math.sqrt(n)
    mean, std = lb.majority_attack_moments(n, k, sigma)
    assert (mean, std**2) == pytest.approx(summed(n, k, sigma), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(("n", "k"), [(10**6, 10**6), (10**6, 999_999), (10**4, 10**6)])
@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_large_means_agree_with_another_method(n, k, noise):
    """The binomial tail by an incomplete beta function, p by a sum over the whole window."""
    sigma = noise / math.sqrt(n)
    c = np.arange(n + 1)
    accept = stats.norm.cdf((2 * c - n) / (n * sigma)) if sigma else (2 * c > n).astype(float)
    p = np.sum(stats.binom.pmf(c, n, 0.5) * (accept * c + (1 - accept) * (n - c))) / n
    law = stats.binom(k, p)
    want = law.cdf((k - 1) // 2) + (law.pmf(k // 2) / 2 if k % 2 == 0 else 0)
    # The reference's own pmf is good to about 1e-10 here.
    assert lb.majority_attack_moments(n, k, sigma).mean == pytest.approx(want, rel=1e-8)


def test_a_single_example_and_hopeless_noise():
    assert lb.majority_attack_moments(1, 1) == (0.0, 0.0)
    assert lb.majority_attack_moments(1, 1, 0.5).mean == pytest.approx(stats.norm.sf(2), rel=1e-14)
    assert lb.majority_attack_moments(1, 1, 0.05).mean == pytest.approx(
        stats.norm.sf(20), rel=1e-12
    )
    assert lb.majority_attack_moments(9, 4, 1e300) == pytest.approx((0.5, 1 / 6))
    # With hardly any noise only exact ties of a row are a coin, and their rows do not count.
    assert lb.majority_attack_moments(10, 7, 5e-324) == lb.majority_attack_moments(10, 7)


def test_the_mean_falls_with_questions_and_rises_with_noise():
    means = [lb.majority_attack_moments(1_000, k).mean for k in (1, 3, 11, 101, 1_001, 10_001)]
    assert means == sorted(means, reverse=True)
    means = [lb.majority_attack_moments(1_000, 100, s).mean for s in (0, 0.01, 0.03, 0.1, 1)]
    assert means == sorted(means)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"n": 0, "k": 1}, "n must be"),
        ({"n": 1, "k": 0}, "k must be"),
        ({"n": 2.5, "k": 1}, "n must be"),
        ({"n": 2**33, "k": 1}, "n must be"),
        ({"n": 2, "k": 1, "sigma": -1}, "sigma must be"),
        ({"n": 2, "k": 1, "sigma": math.nan}, "sigma must be"),
        ({"n": 2, "k": 1, "sigma": math.inf}, "sigma must be"),
    ],
)
def test_refusals(settings, name):
    with pytest.raises(InvalidSetting, match=name):
        lb.majority_attack_moments(**settings)


@pytest.mark.parametrize(("n", "k", "noise"), [(100_000, 10_000, 1), (100_001, 10_001, 5)])
def test_the_mean_is_exact_where_many_terms_count(n, k, noise):
    sigma = noise / math.sqrt(n)
    c = np.arange(n + 1)
    tilt = special.erf((2 * c - n) / (n * sigma * math.sqrt(2)))
    delta = math.fsum(stats.binom.pmf(c, n, 0.5) * (2 * c - n) * tilt) / (2 * n)
    below = stats.binom.cdf((k - 1) // 2, k, 0.5 + delta)
    tie = 0.0 if k % 2 else stats.binom.pmf(k // 2, k, 0.5 + delta)
    mean = lb.majority_attack_moments(n, k, sigma).mean
    assert mean == pytest.approx(below + tie / 2, rel=1e-12)
