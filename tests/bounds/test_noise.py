"""Quantiles of noise, against the exact laws."""

import math

import numpy as np
import pytest
from scipy import stats

from ladderboard.mechanisms._transcript import (
    UNIT,
    ReleaseDeviation,
    difference_quantile,
    noise_quantile,
)

LAWS = ["gaussian", "laplace"]


def mass(law, scale, reach):
    """Return the exact probabilities of the integers up to ``reach``."""
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-0.5 * (x / scale) ** 2) if law == "gaussian" else np.exp(-np.abs(x) / scale)
    return x, weight / weight.sum()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1, 2, 7, 40])
@pytest.mark.parametrize("chance", [0.4, 0.05, 1e-3, 1e-8])
def test_exact_laws_keep_to_their_quantiles(law, scale, chance):
    x, p = mass(law, scale, 60 * scale)
    q = noise_quantile(law, scale * UNIT, chance) / UNIT
    assert p[x > q + 1e-9].sum() <= chance
    # And not by much more than a unit: two units lower would be too often.
    assert p[x > q - 2 - 1e-9].sum() > chance


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1, 2, 7, 40])
@pytest.mark.parametrize("chance", [0.4, 0.05, 1e-3, 1e-8])
def test_differences_keep_to_their_quantiles(law, scale, chance):
    x, p = mass(law, scale, 60 * scale)
    both = np.convolve(p, p)
    at = np.arange(2 * x[0], 2 * x[-1] + 1)
    q = difference_quantile(law, scale * UNIT, chance) / UNIT
    assert both[at > q + 1e-9].sum() <= chance
    assert both[at > q - 4 - 1e-9].sum() > chance


def test_a_gaussian_is_given_by_its_deviation_a_laplace_law_by_its_scale():
    assert noise_quantile("gaussian", 0.01, 0.025) == pytest.approx(0.01 * stats.norm.isf(0.025))
    assert noise_quantile("laplace", 0.01, 0.025) == pytest.approx(0.01 * stats.laplace.isf(0.025))
    assert noise_quantile("laplace", 0.0, 0.025) == 0.0


def test_the_ends_of_a_ladder_without_noise():
    assert ReleaseDeviation(0.01, 0.005).interval(1000, 0.05) == pytest.approx(
        (-0.0025, 0.01), abs=1e-11
    )
    # A step below half a cell: rounding up is then the larger part.
    assert ReleaseDeviation(0.001, 0.005).interval(1000, 0.05) == pytest.approx(
        (-0.0025, 0.0025), abs=1e-11
    )


@pytest.mark.parametrize("law", LAWS)
def test_noise_widens_the_ends_by_all_questions_quantiles(law):
    low, high = ReleaseDeviation(0.01, 0.005, 0.004, 0.004, 0.002, law).interval(1000, 0.05)
    single = noise_quantile(law, 0.002, 0.05 / 4 / 1000)
    assert low == pytest.approx(-0.0025 - single, abs=1e-11)
    pairs = difference_quantile(law, 0.004, 0.05 / 2 / (1000 * 1001 / 2))
    apart = noise_quantile(law, 0.004, 0.05 / 4 / 1000)
    assert high == pytest.approx(0.01 + min(pairs, 2 * apart), abs=1e-11)


def test_noise_that_does_not_stand_is_paid_for_once():
    fresh = ReleaseDeviation(0.01, 0.005, compare=0.004).interval(1000, 0.05)[1]
    assert fresh == pytest.approx(0.01 + noise_quantile("gaussian", 0.004, 0.05 / 1000), abs=1e-11)
    standing = ReleaseDeviation(0.01, 0.005, standing=0.004).interval(1000, 0.05)[1]
    assert standing == pytest.approx(fresh, abs=1e-11)
    both = ReleaseDeviation(0.01, 0.005, compare=0.004, standing=0.001).interval(1000, 0.05)[1]
    apart = sum(noise_quantile("gaussian", scale, 0.05 / 2 / 1000) for scale in (0.004, 0.001))
    assert both == pytest.approx(0.01 + apart, abs=1e-11)


@pytest.mark.parametrize("standing", [None, 0, 0.05])
def test_the_ends_hold_for_all_questions_at_once(standing):
    """400 runs, of which 80 may fail; 4 deviations more is a false alarm below 4e-5."""
    import ladderboard as lb

    beta, k, failed = 0.2, 200, 0
    mechanism = lb.ShakyLadder(0.05, 0.03, 0.02, grid=0.02, standing_noise=standing)
    low, high = ReleaseDeviation(0.05, 0.02, 0.03, mechanism.threshold_noise, 0.02).interval(
        k, beta
    )
    for seed in range(400):
        risks = np.random.default_rng(seed).random(k) * np.linspace(0.9, 0.1, k)
        values = mechanism.start(n=100, tape=lb.NumpyTape(seed=seed)).ask_many(risks).value
        gap = values - np.minimum.accumulate(risks)
        failed += bool(((gap < low) | (gap > high)).any())
    assert failed <= beta * 400 + 4 * math.sqrt(400 * beta * (1 - beta))
