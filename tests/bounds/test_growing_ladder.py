"""Certificates of growing ladders: the counted values, the sample part, and coverage in games."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.analysts import AbstainingAttack
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import Observation, Setup
from ladderboard.mechanisms._growing_ladder import GrowingLadderState

UNIT = 10**12
LADDERS = [
    lb.GrowingLadder.calibrated(n=1_000, questions=100),
    lb.GrowingLadder(step=0.5, growth=1, compare_noise=0, release_noise=0.8, grid=1.5, cut=2),
    lb.GrowingLadder(step=2, growth=0.25, compare_noise=0.3, release_noise=0, grid=0.05, cap=2),
]


@given(
    ladder=st.sampled_from(LADDERS),
    n=st.sampled_from([20, 1_000, 123_456]),
    best=st.integers(1, UNIT),
    changes=st.integers(0, 60),
)
def test_no_change_has_more_values_than_are_counted(ladder, n, best, changes):
    """The values below R on the grid at R, counted out, are at most what the price allows."""
    setup = Setup(n, 0.0, 1.0)
    values = ladder.transcript(setup).values
    if changes >= values.max_changes:
        return
    question = Observation(0.0, None, None)
    grid = ladder.rung(setup, GrowingLadderState(best, changes, 0), question).grid
    below = -(-best // grid)  # 0, grid, 2 grid ... below R
    assert math.log(below) <= values.log_points[changes] + 1e-9


def test_prices_are_sums_and_dearest_where_changes_are_spread():
    values = LADDERS[0].transcript(Setup(1_000, 0.0, 1.0)).values
    assert values.log_count(0) == values.log_shared(0, 3) == 0
    assert values.log_count(3) == pytest.approx(sum(values.log_points[:3]))
    assert values.log_shared(5, 2) == pytest.approx(values.log_count(3) + values.log_count(2))
    assert values.log_shared(5, 2) >= values.log_split([4, 1]) >= values.log_split([5, 0])
    assert list(values.log_points) == sorted(values.log_points, reverse=True)


@pytest.mark.parametrize("ladder", LADDERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_released_value_is_as_near_to_the_least_risk_as_is_said(ladder, seed):
    """No failure probability: noise is cut, so this holds in every game."""
    n = 1_000
    rng = np.random.default_rng(seed)
    transcript = ladder.transcript(Setup(n, 0.0, 1.0))
    session = ladder.start(n=n, tape=lb.NumpyTape(seed=seed))
    least, changes = 1.0, 0
    for centre in np.linspace(0.7, 0.02, 600):
        risk = float(np.clip(round(n * (centre + 0.02 * rng.standard_normal())), 0, n) / n)
        release = session.ask(risk=risk)
        least, changes = min(least, risk), changes + release.improved
        low, high = transcript.deviation_after(release.value, changes, 0).interval(1, 0.5)
        assert low <= release.value - least <= high
    assert changes > 2


def test_coverage_under_attack():
    """Forty games of the strongest attack; one failure would have a probability of a few 1e-3."""
    n, questions = 400, 200
    ladder = lb.GrowingLadder.calibrated(n=n, questions=questions)
    for seed in range(40):
        result = AbstainingAttack().play_against(ladder, n=n, questions=questions, seed=seed)
        promise = lb.bounds.certificate(n, questions, result.changes, ladder)
        assert result.leaderboard_error <= promise.error


def test_the_interval_is_shorter_than_that_of_constant_steps():
    growing = lb.GrowingLadder.calibrated(n=10_000, questions=1_000)
    constant = lb.ShakyLadder.calibrated(n=10_000, questions=1_000)
    new, old = (
        lb.bounds.certificate(10_000, 1_000, 5, ladder, released=0.1)
        for ladder in (growing, constant)
    )
    assert new.half_width < 0.06 < old.half_width
    teams = lb.GrowingLadder.calibrated(n=10_000, questions=1_000, teams=20)
    shared = lb.bounds.certificate(10_000, 1_000, 12, teams, released=0.1, ladders=20)
    assert shared.half_width < 0.12


def test_worst_cases_and_refusals():
    ladder = lb.GrowingLadder.calibrated(n=10_000, questions=100)
    before = lb.bounds.certificate(10_000, 100, None, ladder)
    after = lb.bounds.certificate(10_000, 100, 3, ladder)
    assert before.half_width > after.half_width
    closed = lb.bounds.certificate(10_000, 100, 3, ladder, released=0.2, risk=0.201)
    assert closed.half_width < after.half_width
    with pytest.raises(InvalidSetting, match="multiple"):
        lb.bounds.certificate(10_000, 100, 3, ladder, released=0.123456789)
    with pytest.raises(InvalidSetting, match="does not fit"):
        lb.bounds.certificate(10_000, 100, 3, ladder, released=0.2, risk=0.5)
    by_model = lb.GrowingLadder(step=1, scale="model")
    assert "not counted" in str(lb.bounds.certificate(10_000, 100, 3, by_model))
