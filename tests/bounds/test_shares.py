"""How the failure probability is shared out and what is paid: each part by a formula of its own."""

import math

import numpy as np
import pytest
from scipy import stats

import ladderboard as lb
from ladderboard.bounds import certificate
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms._transcript import (
    UNIT,
    ReleaseDeviation,
    difference_quantile,
    noise_quantile,
)

SHAKY = lb.ShakyLadder(0.01, 0.004, 0.002, grid=0.005)
STANDING = lb.ShakyLadder(0.01, 0, 0, grid=0.005, standing_noise=0.004)
TENTHS = lb.Ladder(step=0, grid=0.1)  # ten values, any of which may follow a higher one
GAUSSIAN = "gaussian"


def test_noise_takes_half_of_beta_from_the_counting():
    price = math.log(100) + math.log(2)  # 100 questions, no change
    result = certificate(1_000, 100, 0, SHAKY, 0.1)
    assert result.nats == pytest.approx(price + math.log(2 / 0.05), abs=1e-9)
    result = certificate(1_000, 100, 0, lb.Ladder(0.01, 0.005), 0.1)
    assert result.nats == pytest.approx(price + math.log(2 / 0.1), abs=1e-9)


def test_noise_is_paid_for_all_questions_allowed_from_the_first():
    """Quantiles that grew with the questions asked would need weights of their own."""
    first = certificate(1_000, 100, 0, SHAKY, asked=1)
    assert first.sample == certificate(1_000, 100, 0, SHAKY).sample
    ends = ReleaseDeviation(0.01, 0.005, 0.004, 0.004, 0.002).interval(100, 0.025)
    assert first.sample == pytest.approx(ends, abs=1e-15)


def test_noise_that_stands_is_noise():
    result = certificate(1_000, 100, 0, STANDING)
    reach = 0.01 + noise_quantile(GAUSSIAN, 0.004, 0.025 / 100)
    assert result.sample == pytest.approx((-0.0025, reach), abs=1e-11)
    assert result.sample[1] == pytest.approx(0.0239, abs=5e-5)
    assert any("never redrawn" in assumption for assumption in result.assumptions)


def test_every_ladder_opens_with_noise_of_its_own():
    many = certificate(1_000, 100, 0, STANDING, ladders=50).sample[1]
    assert many == pytest.approx(0.01 + noise_quantile(GAUSSIAN, 0.004, 0.025 / 149), abs=1e-11)
    assert many > certificate(1_000, 100, 0, STANDING).sample[1]
    # No more are opened than questions are asked.
    assert certificate(1_000, 100, 0, STANDING, ladders=1_000).sample[1] == pytest.approx(
        0.01 + noise_quantile(GAUSSIAN, 0.004, 0.025 / 199), abs=1e-11
    )


def test_private_teams_open_one_ladder_each():
    mine = certificate(1_000, 100, 0, STANDING, ladders=50, private=True).sample[1]
    assert mine == pytest.approx(0.01 + noise_quantile(GAUSSIAN, 0.004, 0.0005 / 100), abs=1e-11)


@pytest.mark.parametrize("ladders", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 10])
def test_draws_are_counted_by_ladders(k, ladders):
    """k fresh draws; k - 1 that may stand and one for each ladder opened; pairs of the two."""
    opened = min(ladders, k)
    alone = ReleaseDeviation(0, 0.005, standing=0.05).interval(k, 0.05, ladders=ladders)[1]
    assert alone == pytest.approx(
        noise_quantile(GAUSSIAN, 0.05, 0.05 / (k - 1 + opened)), abs=1e-11
    )
    apart = ReleaseDeviation(0, 0.005, compare=0.001, standing=0.05).interval(
        k, 0.05, ladders=ladders
    )[1]
    fresh = noise_quantile(GAUSSIAN, 0.001, 0.025 / k)
    stood = noise_quantile(GAUSSIAN, 0.05, 0.025 / (k - 1 + opened))
    assert apart == pytest.approx(fresh + stood, abs=1e-11)
    pairs = k * (k - 1) // 2 + k * opened
    both = ReleaseDeviation(0, 0.005, compare=0.05, standing=0.05).interval(
        k, 0.05, ladders=ladders
    )[1]
    together = difference_quantile(GAUSSIAN, 0.05, 0.05 / pairs)
    assert both == pytest.approx(together, abs=1e-11)


@pytest.mark.parametrize("ladders", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 10])
def test_draws_are_counted_for_ever(k, ladders):
    """Question t has weight 1/(t(t+1)); several ladders' openings take half of it."""
    weight = k * (k + 1)

    def high(**noise):
        return ReleaseDeviation(0, 0.005, **noise).interval(k, 0.05, ladders=ladders, anytime=True)[
            1
        ]

    slacks = weight if ladders == 1 else 2 * weight
    fresh = noise_quantile(GAUSSIAN, 0.05, 0.05 / weight)
    assert high(compare=0.05) == pytest.approx(fresh, abs=1e-11)
    stood = noise_quantile(GAUSSIAN, 0.05, 0.05 / slacks)
    assert high(standing=0.05) == pytest.approx(stood, abs=1e-11)
    apart = noise_quantile(GAUSSIAN, 0.04, 0.025 / weight) + noise_quantile(
        GAUSSIAN, 0.05, 0.025 / slacks
    )
    assert high(compare=0.04, standing=0.05) == pytest.approx(apart, abs=1e-11)
    pairs = weight * (k - 1 + min(ladders, k))
    together = difference_quantile(GAUSSIAN, 0.05, 0.05 / pairs)
    assert high(compare=0.05, standing=0.05) == pytest.approx(together, abs=1e-11)


def test_noises_of_two_sizes_are_bounded_one_by_one():
    high = ReleaseDeviation(0, 0.005, compare=0.001, standing=0.05).interval(10, 0.05)[1]
    assert high == pytest.approx(0.1432, abs=5e-5)


def test_release_noise_reaches_both_ways():
    low, high = ReleaseDeviation(0, 0.005, release=0.01).interval(10, 0.05)
    assert (
        high == -low == pytest.approx(0.0025 + noise_quantile(GAUSSIAN, 0.01, 0.05 / 20), abs=1e-11)
    )


def test_risks_are_rounded_twice_and_that_is_paid_for():
    assert ReleaseDeviation(0.01, 0.005).interval(10, 0.05) == pytest.approx(
        (-0.0025 - 2e-12, 0.01 + 2e-12)
    )
    low, high = ReleaseDeviation(0.01, 0.005).interval(10, 0.05)
    assert -0.0025 - low == pytest.approx(2e-12, rel=1e-3)
    assert high - 0.01 == pytest.approx(2e-12, rel=1e-3)


def test_differences_of_discrete_noise_are_a_little_likelier_than_their_density():
    """At a deviation of one unit, by a ten-thousandth: what the factor 1.0003 is for."""
    x = np.arange(-40, 41)
    p = np.exp(-0.5 * x**2)
    both = np.convolve(p, p) / p.sum() ** 2
    at = np.arange(-80, 81)
    near = np.abs(at) <= 10
    excess = both[near] / stats.norm.pdf(at[near], scale=math.sqrt(2))
    assert 1 + 5e-5 < excess.max() <= 1.0003
    for chance in (0.4, 0.05, 1e-6):
        q = (difference_quantile(GAUSSIAN, 1.0, chance) - UNIT) / math.sqrt(2)
        assert 1.0003 * stats.norm.sf(q) == pytest.approx(chance, rel=1e-9)


def uniform(k, b):
    return math.log(math.comb(k, b + 1) * (b + 1) * (b + 2))


def mixed(one, other):
    return -math.log((math.exp(-one) + math.exp(-other)) / 2)


@pytest.mark.parametrize("counts", [(9, 1), (5, 5), (2, 0)])
def test_counts_by_ladder_against_sums_of_binomials(counts):
    """Every part of the price at its largest on the way: 9 changes of 10 points passed 5."""
    k, together = 50, sum(counts)
    sets = max(
        uniform(k, b) + min(b * math.log(10), math.log(math.comb(20, b)))
        for b in range(together + 1)
    )
    by_ladder = sum(max(math.log(math.comb(10, b)) for b in range(count + 1)) for count in counts)
    when = max(uniform(k, b) for b in range(together + 1))
    split = when + by_ladder + math.log(together + 1)  # how two ladders share the changes
    result = certificate(100, k, dict(enumerate(counts)), TENTHS, ladders=2)
    assert result.nats == pytest.approx(mixed(sets, split) + math.log(2 / 0.05), abs=1e-8)


def test_given_rounds_the_largest_price_so_far_is_charged():
    """Nine changes in ten questions cost less than four of them did on the way."""
    rounds = range(1, 10)

    def price(b):
        t = b + 1  # the only question with b changes before it
        record = math.log(10 * t) + math.log(math.factorial(b))
        return mixed(uniform(10, b), record) + math.log(math.comb(10, b))

    largest = max(map(price, range(10)))
    assert largest > price(9) + 5
    result = certificate(100, 10, list(rounds), TENTHS, asked=10)
    assert result.nats == pytest.approx(largest + math.log(2 / 0.05), abs=1e-8)
    assert result.nats == pytest.approx(18.417, abs=5e-4)


def test_two_ladders_of_ten_change_at_most_twenty_times():
    certificate(100, 50, 20, TENTHS, ladders=2)
    with pytest.raises(InvalidSetting, match="at most 10 times on a ladder"):
        certificate(100, 50, 21, TENTHS, ladders=2)
