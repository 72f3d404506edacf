"""Certificates from changes with their values: prices, variances, and coverage in all games."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.bounds import VisibleChange, certificate, certificate_of_record
from ladderboard.bounds._kl import kl_upper, variance_upper
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import Observation, Setup
from ladderboard.mechanisms._growing import _transcript
from ladderboard.mechanisms._growing._transcript import GrowingTranscript, _class_price

BETA = 0.05
QUIET = {"compare_noise": 0, "release_noise": 0}
VALUE = lb.GrowingLadder(step=1.5, growth=1, grid=1, **QUIET)
MODEL = lb.GrowingLadder(step=1.5, growth=1, grid=1, scale="model", **QUIET)


def next_changes(ladder, setup, state, others):
    """Return every release that a question can make, with the state after it."""
    errors = [2 ** (c / 2) * 1e-12 for c in range(70, 78)] if ladder.follows_model else [None]
    steps = {}
    for i, error in product(range(41), errors):
        question = Observation(i / 40, None, None, error, others)
        step = ladder.advance(setup, state, question, (0, 0))
        if step.improved:
            steps[step.state] = step
    return steps.values()


def transcripts(ladder, setup, k, ladders):
    """Yield (question, changes before it) for all transcripts; whose turn it is depends on them."""
    moves = {}

    def grow(t, changes, states):
        yield t, changes
        if t == k:
            return
        yield from grow(t + 1, changes, states)
        number = (t * 7 + sum(change.question for change in changes)) % ladders
        others = sum(state.changes for state in states) - states[number].changes
        key = states[number], others
        if key not in moves:
            moves[key] = next_changes(ladder, setup, *key)
        for step in moves[key]:
            change = VisibleChange(t, step.value, number, step.error_class)
            after = tuple(step.state if j == number else old for j, old in enumerate(states))
            yield from grow(t + 1, (*changes, change), after)

    return grow(1, (), (ladder.begin(setup, ()),) * ladders)


def total_weight(ladder, ladders, k=4, n=16):
    return sum(
        2
        / BETA
        * math.exp(-certificate(n, k, changes, ladder, BETA, asked=t, ladders=ladders).nats)
        for t, changes in transcripts(ladder, Setup(n, 0.0, 1.0), k, ladders)
        if changes  # no change is the same in every form
    )


SHARED = lb.GrowingLadder(step=1.5, growth=1, grid=1, accounts=2, sharing=0.5, **QUIET)
CASES = [(VALUE, 1), (VALUE, 2), (SHARED, 2), (MODEL, 1), (MODEL, 2)]


@pytest.mark.parametrize(("ladder", "ladders"), CASES)
def test_the_weights_of_all_transcripts_sum_to_at_most_one(ladder, ladders):
    """Kraft's inequality, with every class and every grid that a ladder can get to."""
    k = 3 if ladder is MODEL else 4
    assert 0.01 < total_weight(ladder, ladders, k) <= 1


def test_prices_that_count_too_little_are_caught(monkeypatch):
    """Values for nothing, and four values of five for nothing."""
    price = GrowingTranscript._value_price
    monkeypatch.setattr(_transcript, "_REPLAYS", {})
    monkeypatch.setattr(GrowingTranscript, "_value_price", lambda *_: 0.0)
    assert total_weight(VALUE, 1) > 1
    _transcript._REPLAYS.clear()
    monkeypatch.setattr(GrowingTranscript, "_value_price", lambda *given: price(*given) / 5)
    assert total_weight(VALUE, 1) > 1


def test_the_weights_of_classes_sum_to_one():
    total = sum(math.exp(-_class_price(c)) for c in range(-(10**5), 10**5 + 1))
    assert total == pytest.approx(1, abs=2e-5)
    assert total <= 1


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_release_noise_makes_no_value_likelier_than_is_said(share):
    """The law of cut noise, summed up exactly over every cell that a risk may lie in."""
    ladder = lb.GrowingLadder(step=1, grid=0.4, release_noise=share, cut=2.5)
    n, before, value = 10_000, 0.5, 0.4
    setup = Setup(n, 0.0, 1.0)
    state = ladder.begin(setup, ())._replace(best=round(before * 1e12), changes=1)
    rung = ladder.rung_for(setup, state, 0, 0)
    after = state._replace(best=round(value * 1e12))
    counted = math.exp(ladder.transcript(setup)._value_price(state, after, rung)) / (
        round(before * 1e12) // rung.grid
    )
    draws = np.arange(-2_500_000, 2_500_001)
    law = np.exp(-(draws**2) / 2e12)
    sums = np.concatenate([[0.0], np.cumsum(law / law.sum())])
    width = min(int(rung.grid * 10**6 / rung.release_noise) + 1, len(draws))
    assert (sums[width:] - sums[:-width]).max() <= counted <= 1 + 1e-12


def analyst(labels, ladder, n, k):
    """Ask guesses, keep those that improved, and end with their vote; every label is a fair coin.

    Returns the changes, with the true risk of the model of each.
    """
    session = ladder.start(n=n, tape=lb.NumpyTape(seed=1))
    rng = np.random.default_rng(5)
    guesses = rng.integers(0, 2, (k - 1, n))
    base = np.zeros(n, dtype=int)
    changes = []
    for t in range(1, k + 1):
        model = base.copy() if t == k else base ^ (guesses[t - 1] & (rng.random(n) < 0.5))
        release = session.ask(risk=float((model != labels).mean()))
        if release.improved:
            base = model
            changes.append(VisibleChange(t, release.value))
    return changes


@pytest.mark.parametrize("n", [8, pytest.param(12, marks=pytest.mark.slow)])
def test_certificates_hold_exactly_over_all_samples(n):
    """All label vectors; every true risk is 1/2. An interval that pays for nothing fails."""
    k, beta = 30, 0.5
    ladder = lb.GrowingLadder(step=0.2, growth=0.25, grid=1, **QUIET)
    false = naive = 0
    outcomes = {}
    for labels in product((0, 1), repeat=n):
        changes = analyst(np.array(labels), ladder, n, k)
        key = tuple(changes)
        if key not in outcomes:
            outcomes[key] = certificate(n, k, changes, ladder, beta, released=changes[-1].value)
        result = outcomes[key]
        false += not result.low <= 0.5 <= result.high
        naive += kl_upper(changes[-1].value + result.sample[0] * -1, math.log(2 / beta) / n) < 0.5
    assert false <= beta * 2**n
    assert naive > beta * 2**n


def test_all_values_are_better_than_their_number():
    n, k = 10_000, 1_000
    ladder = lb.GrowingLadder.calibrated(n=n, questions=k)
    values, rounds = (0.3, 0.22, 0.17, 0.13, 0.1), (1, 3, 10, 30, 100)
    changes = list(map(VisibleChange, rounds, values))
    full = certificate(n, k, changes, ladder, released=0.1)
    by_round = certificate(n, k, list(rounds), ladder, released=0.1)
    by_count = certificate(n, k, 5, ladder, released=0.1)
    assert full.overfitting < by_round.overfitting < by_count.overfitting < 0.047
    assert full.overfitting < 0.034
    spread = [change._replace(question=200 * j) for j, change in enumerate(changes, 1)]
    assert certificate(n, k, spread, ladder, released=0.1).overfitting < 0.04
    assert full.hidden <= by_round.hidden <= by_count.hidden < 0.053
    assert full.half_width < 0.043
    without = certificate(n, k, changes, ladder)
    assert without.differences
    assert without.overfitting > full.overfitting
    twenty = [change._replace(ladder=j % 20) for j, change in enumerate(changes)]
    assert certificate(n, k, twenty, ladder, released=0.1, ladders=20).nats > full.nats


def test_before_the_first_change_nothing_is_above_the_worst_risk():
    ladder = lb.GrowingLadder.calibrated(n=10_000, questions=100)
    arguments = {"asked": 3, "ladders": None, "opened": 1, "zero_one": True}
    result = certificate_of_record(10_000, 100, (), ladder, 0.05, released=None, **arguments)
    assert result.high == 0
    assert -1 < result.low < 0


def test_impossible_changes_are_refused():
    ladder = lb.GrowingLadder.calibrated(n=10_000, questions=100)
    with pytest.raises(InvalidSetting, match="not a lower one on the grid"):
        certificate(10_000, 100, [VisibleChange(1, 0.30001)], ladder)
    with pytest.raises(InvalidSetting, match="the value of one of the changes"):
        certificate(10_000, 100, [VisibleChange(1, 0.3)], ladder, released=0.2)
    waiting = certificate(10_000, 100, [VisibleChange(1, 0.3)], ladder, released=1.0, ladders=2)
    assert waiting.high == 1  # of the ladder that has not changed


# Variance


@settings(max_examples=60)
@given(st.floats(0, 1), st.floats(0, 0.3), st.floats(1e-4, 1))
def test_a_variance_limit_is_between_the_mean_and_kl(q, variance, nats):
    result = variance_upper(q, variance, nats)
    assert q <= result * (1 + 1e-9)
    assert result <= kl_upper(q, nats) * (1 + 1e-9)
    assert variance_upper(q, variance / 2, nats) <= result * (1 + 1e-9)


@pytest.mark.parametrize("values", [(0.0, 0.1, 1.0), (0.0, 0.02, 0.5), (0.1, 0.11, 1.0)])
@pytest.mark.parametrize("nats", [1.0, 3.0])
def test_variance_limits_hold_exactly(values, nats):
    """Twelve losses of three values, all outcomes of a fixed class: false at most with e^-nats."""
    n = 12
    for rare in (0.02, 0.1, 0.3):
        chances = ((1 - rare) / 2, (1 - rare) / 2, rare)
        true = math.fsum(map(math.prod, zip(values, chances, strict=True)))
        for limit in (1e-4, 1e-3, 1e-2, 1e-1):
            failed = 0.0
            for a in range(n + 1):
                for b in range(n + 1 - a):
                    counts = a, b, n - a - b
                    losses = np.repeat(values, counts)
                    if losses.var() > limit:
                        continue
                    if variance_upper(losses.mean(), limit, nats / n) < true - 1e-12:
                        ways = math.comb(n, a) * math.comb(n - a, b)
                        failed += ways * math.prod(map(pow, chances, counts))
            assert failed <= math.exp(-nats)


def test_losses_of_small_variance_have_certificates_of_use():
    """Squared errors over a range of 600, as on a board with RMSE: 78, then 60, then 30."""
    n, k = 20_000, 200
    ladder = lb.GrowingLadder.calibrated(n=n, questions=k, scale="model")
    session = ladder.start(n=n, tape=lb.Tape(seed=3))
    rng = np.random.default_rng(2)
    changes = []
    for t, rmse in enumerate((78, 60, 30), 1):
        losses = np.minimum((rng.normal(0, rmse, n) / 600) ** 2, 1)
        release = session.ask(losses=losses)
        changes.append(VisibleChange(t, release.value, 0, release.error_class))
    settings = {"released": release.value, "zero_one": False}
    result = certificate(n, k, changes, ladder, **settings)
    assert "variance" in result.theorem
    assert not result.vacuous
    assert result.low <= (30 / 600) ** 2 <= result.high
    assert math.sqrt(result.high) * 600 < 55
    plain = kl_upper(release.value - result.sample[0], result.changer_nats / n)
    assert result.high < plain
    counted = certificate(n, k, 3, ladder, **settings)
    assert counted.high > result.high


def test_games_with_other_losses_are_covered():
    """Forty games of an analyst that follows luck; none fails, and two might (beta = 0.05)."""
    n, k = 300, 40
    ladder = lb.GrowingLadder(
        step=0.5, growth=0.5, compare_noise=0.3, release_noise=0.2, scale="model"
    )
    for seed in range(40):
        rng = np.random.default_rng(seed)
        labels = rng.exponential(0.1, n).clip(0, 1)
        session = ladder.start(n=n, tape=lb.NumpyTape(seed=seed))
        model, changes, best = np.full(n, 0.5), [], 1.0
        for t in range(1, k + 1):
            trial = (model + rng.normal(0, 0.1, n)).clip(0, 1) if t > 1 else model
            release = session.ask(losses=np.abs(labels - trial))
            best = min(best, true_risk(trial))
            if release.improved:
                model = trial
                changes.append(VisibleChange(t, release.value, 0, release.error_class))
            result = certificate(
                n, k, changes, ladder, released=release.value, asked=t, zero_one=False
            )
            assert result.low <= best <= result.high


def true_risk(model):
    """The mean of |Y - model| for exponential labels of mean 0.1, clipped to [0, 1]."""
    # E|Y - m| = m - E Y + 2 E (Y - m)^+, and E (Y - m)^+ = 0.1 (e^{-m/0.1} - e^{-1/0.1}).
    mean = 0.1 * (1 - math.exp(-10))
    above = 0.1 * (np.exp(-model / 0.1) - math.exp(-10))
    return float(np.mean(model - mean + 2 * above))
