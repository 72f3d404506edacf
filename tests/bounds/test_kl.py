"""The inverses of kl, against forty digits: rounded outwards, and by next to nothing."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import ladderboard as lb
from ladderboard.bounds import certificate
from ladderboard.bounds._kl import (
    binomial_lower,
    binomial_upper,
    kl,
    kl_lower,
    kl_upper,
    noisy_binomial_upper,
)


def exact(q, p):
    """Return kl(q || p) of two doubles, to forty digits."""
    q, p = Decimal(q), Decimal(p)
    pairs = [(a, b) for a, b in ((q, p), (1 - q, 1 - p)) if a]
    if any(b == 0 for _, b in pairs):
        return Decimal("inf")
    return sum(a * (a / b).ln() for a, b in pairs)


risks = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5]),
    st.floats(0, 1),
    st.floats(-18, 0).map(lambda power: 10**power),
    st.floats(-15, 0).map(lambda power: 1 - 10**power),
)
rates = st.floats(-16, 2).map(lambda power: 10**power)


@given(risks, rates)
@example(2.225073858507203e-309, 1.0)
@example(0.08081464718300102, 2.835535448183794e-18)  # the plain formula is rounding errors
def test_the_ends_are_outside(q, nats):
    low, high = kl_lower(q, nats), kl_upper(q, nats)
    assert 0 <= low <= q <= high <= 1
    with localcontext(prec=60):
        for end in (low, high):
            assert end in {0.0, 1.0} or exact(q, end) >= Decimal(nats)


@given(risks, rates)
def test_and_not_by_much(q, nats):
    """Three doubles further in, the right side is kept to."""
    with localcontext(prec=60):
        for end in (kl_lower(q, nats), kl_upper(q, nats)):
            inside = end
            for _ in range(3):
                inside = math.nextafter(inside, q)
            if end > 1e-290:
                assert exact(q, inside) <= Decimal(nats) * (1 + Decimal("1e-12"))


@pytest.mark.parametrize("q", [0.0, 1e-9, 0.05, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("nats", [1e-6, 0.01, 1.0, 50.0])
def test_they_are_within_pinskers_bound(q, nats):
    low, high = kl_lower(q, nats), kl_upper(q, nats)
    for end in (low, high):
        assert kl(q, end) >= nats - 1e-9 or end in {0.0, 1.0}
    assert high <= q + math.sqrt(nats / 2) + 1e-12
    assert low >= q - math.sqrt(nats / 2) - 1e-12


def test_certain_coins():
    assert kl(0.0, 1.0) == kl(1.0, 0.0) == kl(0.5, 0.0) == kl(0.5, 1.0) == math.inf
    assert kl(0.0, 0.0) == kl(1.0, 1.0) == kl(0.3, 0.3) == 0


def test_a_holdout_as_large_as_there_is():
    """1 - exp(-c) with c = ln(40)/10^15: a difference of logarithms would be all rounding."""
    result = certificate(10**15, 1, None, lb.Rounded(1), risk=0.0)
    assert math.log(40) * 1e-15 <= result.high <= math.log(40) * 1.000001e-15
    result = certificate(10**15, 1, None, lb.Rounded(1), risk=0.5, zero_one=False)
    reach = math.sqrt(math.log(40) * 1e-15 / 2)
    assert result.high - 0.5 == pytest.approx(reach, rel=1e-6)
    assert 0.5 - result.low == pytest.approx(reach, rel=1e-6)


@pytest.mark.parametrize("n", [7, 30, 400])
@pytest.mark.parametrize("nats", [0.1, 3.0, 30.0])
def test_binomial_limits_have_the_tails_they_say(n, nats):
    """Against the exact law; where tails are small, they are used up."""
    for successes in range(n + 1):
        q = successes / n
        high, low = binomial_upper(n, q, nats), binomial_lower(n, q, nats)
        assert low <= q <= high
        if high < 1:
            tail = binom.logcdf(successes, n, high)
            assert tail <= -nats + 1e-9
            assert n < 400 or nats < 30 or tail > -nats - 0.05 or successes > n - 2
        if low > 0:
            assert binom.logsf(successes - 1, n, low) <= -nats + 1e-9


@pytest.mark.parametrize("noise", [0.001, 0.02, 0.05])
def test_limits_with_noise_have_the_tails_they_say(noise):
    """Against the exact law of the sum, on a fine lattice of the noise; nearly used up."""
    n, q, cut, nats = 300, 0.2, 2.5, 12.0
    high = noisy_binomial_upper(n, q, noise, cut, nats)
    draws = np.linspace(-cut, cut, 20_001)
    law = np.exp(-(draws**2) / 2)
    tail = float(binom.cdf(n * (q - noise * draws) + 1e-9, n, high) @ (law / law.sum()))
    assert math.exp(-nats) / 4 < tail <= math.exp(-nats)
    assert binomial_upper(n, q, nats) - 1e-6 < high < binomial_upper(n, q + cut * noise, nats)


@settings(max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(0.05, 8))
def test_binomial_limits_hold_for_unequal_probabilities(means, nats):
    """Hoeffding (1956): the law of a sum of unequal trials, counted out, has smaller tails."""
    law = np.ones(1)
    for mean in means:
        law = np.convolve(law, [1 - mean, mean])
    n, true = len(means), math.fsum(means) / len(means)
    counts = range(n + 1)
    too_low = sum(law[k] for k in counts if binomial_upper(n, k / n, nats) < true - 1e-12)
    too_high = sum(law[k] for k in counts if binomial_lower(n, k / n, nats) > true + 1e-12)
    assert max(too_low, too_high) <= math.exp(-nats) + 1e-12


def test_a_range_is_scaled_outwards():
    """1000 + 1e-13 is no double: the end is rounded to one that is further out."""
    result = certificate(10**15, 1, None, lb.Rounded(1), risk=-1000.0, risk_range=(-1000, 1000))
    with localcontext(prec=60):
        true = 2000 * (1 - (-Decimal(40).ln() / 10**15).exp()) - 1000
        assert Decimal(result.high) >= true
    assert result.high == pytest.approx(-1000, abs=1e-10)
