"""Mechanisms against plain transcriptions of their published forms, on random questions."""

import statistics

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.mechanisms import _by_example
from ladderboard.mechanisms._fixed_point import round_to_multiple, to_units

KEY = bytes(range(32))


def questions(seed, n, count):
    """Losses that drift down, mostly zero-one, some in between."""
    rng = np.random.default_rng(seed)
    rows = []
    for quality in np.linspace(0.8, 0.1, count):
        losses = (rng.random(n) < quality).astype(float)
        if rng.random() < 0.3:
            losses *= rng.random(n)
        rows.append(losses)
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_parameter_free_ladder(seed):
    n, best, leader = 30, 1.0, [0.0] * 30
    session = lb.ParameterFreeLadder().start(n=n)
    moves = 0
    for losses in questions(seed, n, 25):
        risk = statistics.fmean(losses)
        s = statistics.stdev([a - b for a, b in zip(losses.tolist(), leader, strict=True)])
        if risk < best - s / n**0.5 - 1e-12:
            best, leader = round(risk * n) / n, losses.tolist()
            moves += 1
        assert session.ask(losses=losses).value == best
    assert moves > 2


def test_one_more_right_is_a_tie_whatever_n_is():
    """A gain of 1/n has a standard error of exactly 1/n, so it is not below R - s/sqrt(n)."""
    for n in range(6, 400):
        first = np.zeros(n)
        first[: n // 2 + 1] = 1
        second = first.copy()
        second[0] = 0
        for mechanism in (lb.ParameterFreeLadder(), lb.BootstrapLadder(resample=False)):
            session = mechanism.start(n=n, tape=lb.Tape(seed=1))
            assert session.ask(losses=first).improved
            assert session.ask(losses=second).score is None, n


@pytest.mark.parametrize("seed", range(4))
def test_thresholdout(seed):
    rng = np.random.default_rng(seed)
    mechanism = lb.Thresholdout(threshold=0.1, noise=0.05)
    tape = lb.Tape(seed=seed)
    threshold = 0.1 + tape.draw(mechanism.laws, ladder=0, question=0)[2]
    session = mechanism.start(n=100, tape=tape)
    spoke = 0
    for number in range(1, 80):
        holdout, training = rng.random(2)
        eta, xi, gamma = tape.draw(mechanism.laws, ladder=0, question=number)
        if abs(holdout - training) > threshold + eta:
            answer, threshold = holdout + xi, 0.1 + gamma
            spoke += 1
        else:
            answer = training
        assert session.ask(risk=holdout, training=training).score == pytest.approx(
            answer, abs=1e-15
        )
    assert 20 < spoke < 79


def test_thresholdout_needs_a_training_risk_in_range():
    session = lb.Thresholdout().start(n=10)
    for bad in (-0.1, 1.1, float("nan"), True, "0.1", 10**400, 10**5000):
        with pytest.raises(lb.errors.InvalidRisk, match="training"):
            session.ask(risk=0.5, training=bad)
    with pytest.raises(lb.errors.InvalidRisk, match="training"):
        session.ask_many([0.5], training=[1.1])


def test_a_batch_that_could_spend_the_budget_is_refused_before_looking():
    """Whether it is refused must not depend on the risks."""
    for risk in (0.1, 0.9):
        session = lb.Thresholdout(noise=0, budget=2).start(n=10)
        with pytest.raises(lb.errors.BudgetSpent, match="ask one by one"):
            session.ask_many([risk] * 3, training=[0.1] * 3)
        assert session.questions == 0
        session.ask_many([risk] * 2, training=[0.1] * 2)


def uniform(seed, count):
    raw = np.random.PCG64(int.from_bytes(seed, "big"))
    return [(int(raw.random_raw()) >> 11) / 2**53 for _ in range(count)]


@pytest.mark.parametrize("test", ["paired", "bayes"])
@pytest.mark.parametrize("seed", range(3))
def test_bootstrap_ladder(test, seed, monkeypatch):
    monkeypatch.setattr(_by_example, "_MAX_WEIGHTS_IN_MEMORY", 100)  # several chunks of weights
    n, replicates, alpha = 20, 16, 0.25
    mechanism = lb.BootstrapLadder(test=test, replicates=replicates, alpha=alpha)
    tape = lb.Tape(seed=seed)
    session = mechanism.start(n=n, tape=tape)
    value, leader, moves = 1.0, [1.0] * n, 0
    for number, losses in enumerate(questions(seed, n, 30), start=1):
        for_resample, for_weights = tape.draw(mechanism.laws, ladder=0, question=number)
        gaps = [a - b for a, b in zip(losses.tolist(), leader, strict=True)]
        if test == "paired":
            better = -statistics.fmean(gaps) > statistics.stdev(gaps) / n**0.5 + 1e-12
        else:
            words = uniform(for_weights, replicates * n)
            rows = [words[i * n : i * n + n] for i in range(replicates)]
            sums = [-sum(np.log1p(-u) * gap for u, gap in zip(row, gaps, strict=True))
                    for row in rows]  # fmt: skip
            better = sum(release < 0 for release in sums) / replicates > 1 - alpha
        if better:
            picks = [int(u * n) for u in uniform(for_resample, n)]
            value, leader = statistics.fmean(losses[i] for i in picks), losses.tolist()
            moves += 1
        assert session.ask(losses=losses).value == pytest.approx(value, abs=1e-11)
    assert 2 < moves < 30


def test_fixed_point_rounds_to_nearest():
    assert all(to_units(k / 1000) == k * 10**9 for k in range(1001))
    assert [round_to_multiple(x, 4) for x in range(-6, 7)] == [
        -8,
        -4,
        -4,
        -4,
        0,
        0,
        0,
        0,
        0,
        4,
        4,
        4,
        8,
    ]


def test_the_described_grid_is_the_grid_used():
    mechanism = lb.Ladder(step=0.1, grid=1e-6 / 3)
    assert mechanism.grid == 3.33333e-7
    assert mechanism.describe()["grid"] == 3.33333e-7
