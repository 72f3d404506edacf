"""Plans of a gate: gains that are proven, and examples that are needed."""

import math

import numpy as np
import pytest

from ladderboard.bounds import LookPrices, PairedTest, gate_plan, required_net_wins


def test_the_planned_gain_is_proven_as_often_as_planned():
    """4,000 games: the share is off by more than 0.03 once in 200,000 runs of the test."""
    n, looks, differ = 500, 50, 0.2
    plan = gate_plan(n, looks, differ)
    rng = np.random.default_rng(0)
    for row in plan.rows:
        differing = rng.binomial(n, differ, 4_000)
        wins = rng.binomial(differing, (1 + row.gain / differ) / 2)
        needed = {
            d: required_net_wins(int(d), LookPrices(looks).nats(row.look), 0.05)
            for d in np.unique(differing)
        }
        proven = [
            needed[d] is not None and 2 * w - d >= needed[d]
            for d, w in zip(differing, wins, strict=True)
        ]
        assert np.mean(proven) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("form", ["sign", "convex", "bets"])
def test_an_equal_candidate_passes_the_planned_margin_as_often_as_planned(form):
    """1,000 games: a share below 0.74 happens once in 100,000 runs. Wins come in whole numbers."""
    n, looks, differ = 300, 50, 0.2
    row = gate_plan(n, looks, differ, test=form).rows[0]
    test = PairedTest(form, n, 0.05)
    rng = np.random.default_rng(0)

    def share_passed(margin):
        passed = 0
        for differing, wins in zip(games, won, strict=True):
            counts = [wins, differing - wins, n - differing]
            before, after = np.repeat([1.0, 0.0, 0.0], counts), np.repeat([0.0, 1.0, 0.0], counts)
            evidence = test.measure(
                before, after, differing=int(differing), nats=row.nats, margin=margin
            )
            passed += test.outcome(evidence, row.nats, margin) != "cannot_tell"
        return passed / len(games)

    games = rng.binomial(n, differ, 1_000)
    won = rng.binomial(games, 0.5)
    assert share_passed(row.margin) >= 0.74
    assert share_passed(0.8 * row.margin) < 0.74


def test_a_margin_that_equal_candidates_would_not_pass_is_noted():
    plan = gate_plan(300, 50)
    assert '"not worse" means "better"' in plan.judge_margin(0)
    assert "small for this set" in plan.judge_margin(0.02)
    assert plan.judge_margin(0.07) == ""


def test_more_examples_prove_smaller_gains():
    gains = [gate_plan(n, 20).rows[-1].gain for n in (200, 2_000, 20_000, 500_000)]
    assert gains == sorted(gains, reverse=True)
    # Four standard errors of the net wins, and a little more.
    assert gains[-1] == pytest.approx(4.05 * math.sqrt(0.1 / 500_000), rel=0.05)


def test_tests_need_more_where_less_is_known():
    gains = [
        gate_plan(1_000, 50, 0.1, test=test).rows[0].gain for test in ("sign", "convex", "bets")
    ]
    assert gains == sorted(gains)
    assert gains[2] < 1.3 * gains[0]


def test_the_needed_number_of_examples_proves_the_wanted_gain():
    plan = gate_plan(100, 50, 0.1, gain=0.03)
    for row, needed in zip(plan.rows, plan.needed, strict=True):
        again = gate_plan(needed, 50, 0.1)
        gain = next(other.gain for other in again.rows if other.look == row.look)
        assert gain == pytest.approx(0.03, rel=0.03)


def test_small_sets_prove_nothing():
    plan = gate_plan(100, 200, 0.1)
    assert [row.gain for row in plan.rows] == [None, None, None]
    assert [row.least_differing for row in plan.rows] == [10, 10, 14]
    assert "no gain is proven" in str(plan)
    assert 'with about 10 examples that differ, "better" is out of reach' in str(plan)
    assert "with about 1 example that differs, " in str(gate_plan(100, 200, 0.01))
    assert "too small to ever" in str(gate_plan(9, 200, 0.5))
    assert gate_plan(50, 1, 0.2).rows[0].least_differing == 5


def test_a_margin_that_constant_predictions_would_pass_is_not_suggested():
    small = gate_plan(12, 50, 1.0, largest_margin=0.5)
    assert small.rows[0].margin >= 0.5
    assert "No margin lets an equal candidate pass" in str(small)
    assert small.judge_margin(0) == small.judge_margin(0.1) == ""
    at_first = gate_plan(300, 50, largest_margin=gate_plan(300, 50).rows[-1].margin)
    assert at_first.rows[0].margin < at_first.rows[-1].margin
    assert "at look 1; at look 50 no margin does." in str(at_first)
    assert "--margin" in at_first.judge_margin(0)
