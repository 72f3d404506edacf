"""Certificates of growing ladders: the counted values, the sample part, and coverage in games."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.analysts import AbstainingAttack
from ladderboard.bounds import certificate
from ladderboard.bounds._counting import TranscriptWeights
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import Observation, Setup
from ladderboard.mechanisms._growing._ladder import GrowingLadderState
from ladderboard.mechanisms._growing._transcript import GrowingValues

UNIT, BETA = 10**12, 0.05
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


def test_shared_prices_are_sums_and_dearest_where_changes_are_spread():
    ladder = lb.GrowingLadder.calibrated(n=1_000, questions=100, teams=2)
    values = ladder.transcript(Setup(1_000, 0.0, 1.0)).values
    assert values.log_count(0) == values.log_shared(0, 3) == 0
    assert values.log_count(3) == pytest.approx(sum(values.log_points[:3]))
    assert values.log_shared(5, 2) == pytest.approx(values.log_count(3) + values.log_count(2))
    assert values.log_shared(5, 2) >= values.log_split([4, 1]) >= values.log_split([5, 0])
    assert list(values.log_points) == sorted(values.log_points, reverse=True)


def next_states(ladder, setup, state):
    """Return every state that a change can lead to, over all risks and the ends of the noise."""
    cut = round(ladder.cut * 10**6)
    questions = [Observation(i / 200, None, None) for i in range(201)]
    steps = [
        ladder.advance(setup, state, question, (-cut, noise))
        for question in questions
        for noise in ((-cut, 0, cut) if ladder.release_noise else (0,))
    ]
    return sorted({step.state for step in steps if step.improved})


def transcripts(ladder, setup, k):
    """Yield (question, (round, value) of the changes before it) for every transcript."""
    moves = {}

    def grow(t, changes, state):
        yield t, changes
        if t == k:
            return
        yield from grow(t + 1, changes, state)
        if state not in moves:
            moves[state] = next_states(ladder, setup, state)
        for after in moves[state]:
            yield from grow(t + 1, (*changes, (t, after.best)), after)

    return grow(1, (), ladder.begin(setup, (0, 0)))


TINY = [
    (lb.GrowingLadder(step=2, growth=1, compare_noise=0.4, release_noise=0.2, grid=0.8), 12),
    (lb.GrowingLadder(step=1, growth=0.5, compare_noise=0.5, release_noise=0, grid=1.2), 9),
]


@pytest.mark.parametrize(("ladder", "n"), TINY)
def test_sequences_are_counted_exactly(ladder, n):
    """As many as the mechanism makes, walked through one by one; all of them can happen."""
    setup, k = Setup(n, 0.0, 1.0), 5
    values = ladder.transcript(setup).values
    sequences = {
        tuple(value for _, value in changes) for _, changes in transcripts(ladder, setup, k)
    }
    assert values.max_changes == max(map(len, sequences)) < k
    for b in range(values.max_changes + 1):
        count = sum(len(sequence) == b for sequence in sequences)
        assert count == pytest.approx(math.exp(values.log_count(b)))


def total_weight(ladder, n, k, form, *, price):
    """Return the sum of the weights of all transcripts, as the prices of certificates say."""
    total, setup = 0.0, Setup(n, 0.0, 1.0)
    for t, changes in transcripts(ladder, setup, k):
        rounds = [round_ for round_, _ in changes]
        if price == "changer":
            if len(rounds) == ladder.transcript(setup).values.max_changes:
                continue
            rounds.append(t)  # question t makes a change itself
        given = rounds if form == "rounds" else len(rounds)
        result = certificate(n, k, given, ladder, BETA, asked=t)
        nats = result.changer_nats if price == "changer" else result.nats
        total += 2 / BETA * math.exp(-nats)
    return total


@pytest.mark.parametrize("price", ["every", "changer"])
@pytest.mark.parametrize("form", ["count", "rounds"])
@pytest.mark.parametrize(("ladder", "n"), TINY)
def test_the_weights_of_all_transcripts_sum_to_at_most_one(ladder, n, form, price):
    """Kraft's inequality on a changing grid; more than a half, so that no factor 2 is lost."""
    assert 0.5 < total_weight(ladder, n, 4, form, price=price) <= 1


def test_weights_counted_twice_and_changers_that_pay_too_little_are_caught(monkeypatch):
    ladder, n = TINY[0]
    with monkeypatch.context() as broken:
        count = GrowingValues.log_count
        broken.setattr(GrowingValues, "log_count", lambda *given: count(*given) - math.log(2))
        assert total_weight(ladder, n, 4, "count", price="every") > 1
    with monkeypatch.context() as broken:
        price = TranscriptWeights._price_by_count
        broken.setattr(
            TranscriptWeights, "_price_by_count", lambda *given: price(*given[:-1], given[-1] - 1)
        )
        assert total_weight(ladder, n, 4, "count", price="changer") > 1


@pytest.mark.parametrize("mechanism", [LADDERS[0], lb.Ladder(step=0.01, grid=0.005)])
def test_the_last_changer_had_seen_one_change_less(mechanism):
    """It pays as every model did before its change; with b in place of b - 1 it would pay more."""
    prices = [certificate(1_000, 100, b, mechanism) for b in range(6)]
    for before, after in pairwise(prices):
        assert after.changer_nats == before.nats < after.nats
    rounds = [2, 5, 20, 60]
    before = certificate(1_000, 100, rounds[:-1], mechanism, asked=60)
    assert certificate(1_000, 100, rounds, mechanism).changer_nats == before.nats
    assert certificate(1_000, 100, 0, mechanism).high == 0  # nothing is below the worst risk


@pytest.mark.parametrize("ladder", LADDERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_released_value_is_as_near_to_the_least_risk_as_is_said(ladder, seed):
    """No failure probability: noise is cut, so this holds in every game."""
    n = 1_000
    rng = np.random.default_rng(seed)
    transcript = ladder.transcript(Setup(n, 0.0, 1.0))
    session = ladder.start(n=n, tape=lb.NumpyTape(seed=seed))
    min_risk, changes = 1.0, 0
    for centre in np.linspace(0.7, 0.02, 600):
        risk = float(np.clip(round(n * (centre + 0.02 * rng.standard_normal())), 0, n) / n)
        release = session.ask(risk=risk)
        min_risk, changes = min(min_risk, risk), changes + release.improved
        low, high = transcript.deviation_after(release.value, changes, 0).interval(1, 0.5)
        assert low <= release.value - min_risk <= high
    assert changes > 2


@pytest.mark.parametrize("games", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_coverage_under_attack(games):
    """The strongest attack; a failure is not expected in any game, and allowed in one of 20."""
    n, questions = 400, 200
    ladder = lb.GrowingLadder.calibrated(n=n, questions=questions)
    for seed in range(games):
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
    assert lb.bounds.certificate(10_000, 100, 3, by_model).half_width > after.half_width
