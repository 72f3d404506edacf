"""The abstaining attack: the gain from predictions that are certainly wrong.

Measured bias times sqrt(n) against the calibrated Shaky Ladder, standard deviation of one game
about 0.45: 2.3 at n = k = 1,000, 2.8 at (1e4, 1e3), 3.2 at (1e4, 1e4). The bounds below lie at
least four standard errors from these, so each false alarm has a probability below 1e-4; one that
fails means that the attack has grown weaker.
"""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import AbstainingAttack, RareClassWorld, pack_bits
from ladderboard.analysts._shifted._abstaining import PartialGuess, PlacementPlan, plan_placements
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule
from ladderboard.errors import InvalidPredictions

RULE = ComparisonRule(step=70, fresh=22, release=3, grid=20)


def bias(analyst, n, questions, games):
    ladder = lb.ShakyLadder.calibrated(n=n, questions=questions)
    played = [
        analyst.play_against(ladder, n=n, questions=questions, seed=index).bias
        for index in range(games)
    ]
    return np.mean(played) * math.sqrt(n)


def test_abstaining_gains_only_where_classes_are_undeclared():
    # With half of the labels known, the shifted majority attack keeps 1.5.
    assert bias(AbstainingAttack(), 1_000, 1_000, 10) > 1.75
    # With two declared classes: 0.9, and no label known. Three standard errors of ten games: 0.4.
    assert bias(AbstainingAttack(rare=None), 1_000, 1_000, 10) < 1.5


def test_a_rare_class_serves_nearly_as_well():
    assert bias(AbstainingAttack(rare=0.02), 1_000, 1_000, 6) > 1.4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "questions", "games", "minimum"),
    [(1_000, 1_000, 60, 2.1), (10_000, 1_000, 24, 2.45), (10_000, 10_000, 12, 2.65)],
)
def test_the_bias_left_at_three_sizes(n, questions, games, minimum):
    assert bias(AbstainingAttack(), n, questions, games) > minimum


@pytest.mark.parametrize("questions", [1, 3, 4, 9])
def test_few_questions_and_few_examples(questions):
    for ladder in (lb.Ladder(step=0.001), lb.ShakyLadder(0.1, 0.05, 0.05, grid=0.01)):
        for n in (1, 2, 65):
            score = AbstainingAttack().play_against(ladder, n=n, questions=questions, seed=3)
            assert 1 <= score.asked <= questions


def test_the_undeclared_class_is_never_a_label():
    world = RareClassWorld(1_000, np.random.default_rng(0))
    assert world.risk(np.full(1_000, 2)) == world.true_risk(np.full(1_000, 2)) == 1
    ones = np.ones(1_000, dtype=int)
    assert world.true_risk(ones) == 0.5
    assert world.risk(ones) == world.risk(pack_bits(ones)) == world.losses(ones).mean()
    assert world.risk(ones) + world.risk(1 - ones) == 1
    half = np.where(np.arange(1_000) < 500, 2, 1)
    assert world.true_risk(half) == 0.75
    with pytest.raises(InvalidPredictions, match="0, 1 or 2"):
        world.risk(np.full(1_000, 3))
    with pytest.raises(InvalidPredictions, match="shape"):
        world.risk(np.ones(7))
    with pytest.raises(InvalidPredictions, match="past the 1000th"):
        world.risk(np.full(16, 2**64 - 1, dtype=np.uint64))


def test_the_world_has_a_rare_class():
    # 10,000 labels: each share within 5 standard errors of at most 0.005.
    world = RareClassWorld(10_000, np.random.default_rng(0), rare=0.1)
    for prediction, risk in ((0, 0.55), (1, 0.55), (2, 0.9)):
        model = np.full(10_000, prediction)
        assert world.true_risk(model) == pytest.approx(risk)
        assert world.risk(model) == pytest.approx(risk, abs=0.025)


@pytest.mark.parametrize("rare", [0.0, 0.05, 0.3])
def test_a_guess_is_as_large_as_the_wanted_errors_ask(rare):
    guess = PartialGuess(1_000, rare)
    for size in (0, 1, 500, 1_000):
        assert guess.size(guess.expected(size)) == size
    assert guess.expected(1_000) == pytest.approx(guess.fewest_wrong)
    assert guess.size(0) == 1_000
    assert guess.size(2_000) == 0


def test_expected_errors_agree_with_simulation():
    # Frequencies over 200,000 guesses at five standard errors: false alarms below 1e-5.
    plan = PlacementPlan(RULE, PartialGuess(1_000))
    value, wrong = 600.0, 600.0 + float(plan.shift[30])
    size = PartialGuess(1_000).size(wrong)
    rng = np.random.default_rng(0)
    luck = rng.standard_normal(200_000)
    errors = wrong - math.sqrt(size) / 2 * luck
    crossed = errors + rng.normal(0, 22, 200_000) < value - 70
    answers = np.round((errors + rng.normal(0, 3, 200_000)) / 20) * 20
    moved = crossed & (answers < value)
    for fall in (20.0, 40.0, 60.0):
        mine = luck[moved & (answers == value - fall)]
        expected = plan.mean_luck(wrong, value, fall)
        # Sizes and shifts are discrete: allow for their rounding as well.
        assert mine.mean() == pytest.approx(expected, abs=5 / len(mine) ** 0.5 + 0.05)
    assert luck[~moved].mean() == pytest.approx(plan.mean_luck(wrong, value, None), abs=0.02)
    assert luck[moved].mean() == pytest.approx(plan.mean_luck(wrong, value, math.inf), abs=0.05)


def test_with_more_questions_left_it_waits_for_more_luck():
    plan = plan_placements(RULE, PartialGuess(1_000), 1_000)
    with_5, with_100, with_many = (plan.expected_wrong(700.0, left) for left in (5, 100, 1_000))
    assert with_5 < with_100 < with_many
    assert plan.information(1_000) > plan.information(100) > plan.information(10) > 0
