"""Which noise a mechanism draws, and that it reaches what is said."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.tape import DiscreteGaussian, DiscreteLaplace, Laplace, Seed

UNIT = 10**12


@pytest.mark.parametrize(
    ("mechanism", "laws"),
    [
        (
            lb.ShakyLadder(step=0.1, compare_noise=0.02, release_noise=0.03, grid=0.01),
            (
                DiscreteGaussian(2 * UNIT // 100),
                DiscreteGaussian(3 * UNIT // 100),
                DiscreteGaussian(2 * UNIT // 100),
            ),
        ),
        (
            lb.ShakyLadder(0.1, 0.02, 0.03, grid=0.01, law="laplace"),
            (
                DiscreteLaplace(2 * UNIT // 100),
                DiscreteLaplace(3 * UNIT // 100),
                DiscreteLaplace(2 * UNIT // 100),
            ),
        ),
        (
            lb.ShakyLadder(0.1, 0.02, 0.03, law="laplace"),
            (Laplace(0.02), Laplace(0.03), Laplace(0.02)),
        ),
        (lb.ShakyLadder(0.1, 0.02, 0.03), (DiscreteGaussian(2 * UNIT // 100),
                                           DiscreteGaussian(3 * UNIT // 100),
                                           DiscreteGaussian(2 * UNIT // 100))),
        (lb.Noisy(sd=0.5), (DiscreteGaussian(UNIT // 2),)),
        (lb.Thresholdout(noise=0.01), (Laplace(0.04), Laplace(0.01), Laplace(0.02))),
        (lb.BootstrapLadder(), (Seed(), Seed())),
        (lb.Ladder(step=0.1), ()),
        (lb.OneBit(step=0.1), ()),
        (lb.Exact(), ()),
        (lb.Rounded(digits=2), ()),
        (lb.ParameterFreeLadder(), ()),
    ],
)  # fmt: skip
def test_laws(mechanism, laws):
    assert mechanism.laws == laws


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("cell", [None, 0.001])
def test_releases_carry_release_noise(law, cell):
    """First releases of 4,000 ladders have the law's standard deviation; false alarm below 1e-6.

    The sample sd of 4,000 draws is off by 1.1% (Gaussian) or 1.8% (Laplace) of itself in sd.
    """
    mechanism = lb.ShakyLadder(step=0.1, compare_noise=0, release_noise=0.02, grid=cell, law=law)
    tape = lb.NumpyTape(seed=31)
    released = [
        mechanism.start(n=100, tape=tape, ladder=j).ask(risk=0.5).value for j in range(4_000)
    ]
    expected = 0.02 if law == "gaussian" else 0.02 * math.sqrt(2)
    assert np.mean(released) == pytest.approx(0.5, abs=5 * expected / math.sqrt(4_000))
    assert np.std(released) == pytest.approx(expected, rel=0.09)


def test_compare_noise_blurs_the_threshold():
    """At the threshold itself, xi - xi_t decides: half of the ladders cross (5 sd: p < 6e-7)."""
    mechanism = lb.ShakyLadder(step=0.1, compare_noise=0.02, release_noise=0, grid=0.01)
    tape = lb.NumpyTape(seed=32)
    for offset, share in [
        (0, 0.5),
        (0.02 * math.sqrt(2), 0.15866),
        (-0.02 * math.sqrt(2), 0.84134),
    ]:
        crossed = sum(
            mechanism.start(n=100, tape=tape, ladder=j).ask(risk=0.9 + offset).improved
            for j in range(4_000)
        )
        assert crossed / 4_000 == pytest.approx(
            share, abs=5 * math.sqrt(share * (1 - share) / 4_000)
        )


def test_one_ladder_shares_its_threshold_noise_until_it_moves():
    """xi stays while nothing crosses; redrawn after each crossing, silent ones included."""
    mechanism = lb.ShakyLadder(step=0.1, compare_noise=0.05, release_noise=0, grid=0.01)
    session = mechanism.start(n=100, tape=lb.Tape(seed=1))
    slack = session.state["state"]["slack"]
    session.ask(risk=1.0)
    assert session.state["state"]["slack"] == slack
    session.ask(risk=0.3)
    moved = session.state["state"]["slack"]
    assert moved != slack
    session.ask(risk=0.9)
    assert session.state["state"]["slack"] == moved


def test_bulk_is_clipped_like_single_steps():
    mechanism = lb.ShakyLadder(step=0.01, compare_noise=0.1, release_noise=0.5, grid=0.1)
    for seed in range(20):
        risks = np.random.default_rng(seed).random(50) * 0.2
        stepwise = mechanism.start(n=100, tape=lb.Tape(seed=seed))
        in_bulk = mechanism.start(n=100, tape=lb.Tape(seed=seed))
        values = [stepwise.ask(risk=float(risk)).value for risk in risks]
        assert min(values) >= 0
        assert in_bulk.ask_many(risks).value.tolist() == values
