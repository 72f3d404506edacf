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
from ladderboard.analysts import (
    AbstainingAttack,
    GuessModel,
    LadderRungs,
    RareClassWorld,
    pack_bits,
    unpack_bits,
)
from ladderboard.analysts._shifted._placement import PlacementPlan, plan_placements
from ladderboard.errors import InvalidPredictions

LADDER = lb.ShakyLadder(
    step=0.07, compare_noise=0.022, release_noise=0.003, grid=0.02, standing_noise=0
)
RUNGS = LadderRungs.from_mechanism(LADDER, 1_000)


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
        for n in (1, 65):
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


def test_known_labels_are_counted_exactly_and_never_of_the_rare_class():
    world = RareClassWorld(1_000, np.random.default_rng(0), rare=0.3, easy=0.4)
    known = unpack_bits(world.known.labels, 1_000).astype(int)
    assert world.known.size == 400
    model = np.where(np.arange(1_000) < 400, known, 2)
    assert world.true_risk(model) == pytest.approx(0.6 * 0.7)
    model[:100] = 2  # surely wrong
    model[100:200] ^= 1
    assert world.true_risk(model) == pytest.approx(0.2 + 0.6 * 0.7)
    assert world.losses(model)[:400].sum() == 200


@pytest.mark.parametrize("known", [0, 300])
@pytest.mark.parametrize("rare", [0.0, 0.05, 0.3])
def test_a_guess_is_as_large_as_the_wanted_errors_ask(rare, known):
    guess = GuessModel(1_000, known, rare)
    for size in (1, 500, guess.unknown):
        wrong = guess.expected(size, known)
        assert guess.size(wrong) == size
        assert guess.mistakes(wrong) == known
    assert guess.expected(guess.unknown, 0) == pytest.approx(guess.fewest_wrong)
    assert guess.expected(1, known) == pytest.approx(guess.most_wrong)
    # Known labels are used up before examples are abstained on.
    assert guess.size(0) == guess.size(guess.fewest_wrong + known) == guess.unknown
    assert guess.mistakes(guess.fewest_wrong + known / 3) == known // 3
    assert guess.size(2_000) == 1


def test_without_abstention_all_unknown_labels_are_guessed():
    guess = GuessModel(1_000, 400, None)
    assert guess.size(300) == guess.size(900) == 600
    assert (guess.fewest_wrong, guess.most_wrong) == (300, 700)


def test_expected_luck_agrees_with_simulation():
    # Means over 400,000 guesses at five standard errors: false alarms below 1e-5.
    rule = RUNGS.rule_at(600.0, 0)
    value, wrong = 600.0, 550.0
    deviation = float(GuessModel(1_000).deviation(np.array(wrong)))
    rng = np.random.default_rng(0)
    luck = rng.standard_normal(400_000)
    errors = wrong - deviation * luck
    crossed = errors + rng.normal(0, 22, 400_000) < value - 70
    released = np.round((errors + rng.normal(0, 3, 400_000)) / 20) * 20
    moved = crossed & (released < value)
    for fall in (40.0, 60.0, 80.0):
        mine = luck[moved & (released == value - fall)]
        expected = rule.luck_if_released(wrong - value, deviation, fall)
        # A cell is wider than a deviation: allow for treating its blur as normal.
        assert mine.mean() == pytest.approx(expected, abs=5 / len(mine) ** 0.5 + 0.1)
    silent = rule.luck_if_silent(wrong - value, deviation)
    assert luck[~crossed].mean() == pytest.approx(silent, abs=0.01)
    assert luck[crossed].mean() == pytest.approx(
        rule.luck_if_crossed(wrong - value, deviation), abs=5 / crossed.sum() ** 0.5
    )


def test_with_more_questions_left_it_waits_for_more_luck():
    plan = plan_placements(RUNGS, GuessModel(1_000), 1_000)
    with_5, with_100, with_many = (
        plan.expected_wrong([(700.0, 0)], 0, left) for left in (5, 100, 1_000)
    )
    assert with_5 < with_100 < with_many
    assert plan.information(1_000) > plan.information(100) > plan.information(10) > 0
    # Two ladders share the questions: it waits as long as with half of them.
    assert plan.expected_wrong([(700.0, 0)] * 2, 0, 200) == with_100


def test_rungs_of_a_growing_ladder_are_those_of_the_mechanism():
    mechanism = lb.GrowingLadder(step=1.2, growth=0.5, compare_noise=0.3)
    rungs = LadderRungs.from_mechanism(mechanism, 10_000)
    # Standard errors of 50, 40 and 30 examples at values of 0.5 and above, 0.2 and 0.1.
    for value, error in ((8_000, 50), (5_000, 50), (2_000, 40), (1_000, 30)):
        for changes in (0, 3, 8):
            rule = rungs.rule_at(value, changes)
            assert rule.step == pytest.approx(1.2 * error * (1 + changes) ** 0.5, rel=1e-3)
            assert rule.compare == pytest.approx(0.3 * rule.step, rel=1e-3)


def test_a_ladder_that_grows_teaches_less_after_more_changes():
    rungs = LadderRungs.from_mechanism(lb.GrowingLadder(step=1.2, compare_noise=0.3), 1_000)
    plan = PlacementPlan(rungs, GuessModel(1_000))
    worths = [plan.worth[changes, -1, 0] for changes in (0, 4, 8, 12)]
    assert sorted(worths, reverse=True) == worths
    for rare in (None, 0.0):
        assert PlacementPlan(rungs, GuessModel(1_000, 500, rare)).information(1_000) > 5


def test_others_changes_are_seen_as_own_ones():
    """A step that others raise is as large as after some more changes of one's own."""
    mechanism = lb.GrowingLadder(step=1.2, accounts=3, sharing=0.5)
    rungs = LadderRungs.from_mechanism(mechanism, 1_000)
    assert rungs.changes_at(mechanism.rung_growth(4, 0)[-1]) == pytest.approx(3)
    # Rungs between two numbers of changes are interpolated.
    assert rungs.changes_at(mechanism.rung_growth(4, 5)[-1]) == pytest.approx(3 + 2.5, abs=0.05)


def test_two_accounts_gain_more_than_one():
    """24 games with a standard error of 0.1."""

    def bias_left(accounts, sharing):
        ladder = lb.GrowingLadder(1.2, compare_noise=0.31, accounts=2, sharing=sharing)
        attack = AbstainingAttack(accounts=accounts)
        played = [
            attack.play_against(ladder, n=225, questions=100, seed=seed).bias for seed in range(24)
        ]
        return np.mean(played) * math.sqrt(225)

    assert bias_left(2, 0.0) > bias_left(1, 0.0) + 0.1


def test_the_growing_ladder_leaves_no_more_than_constant_steps():
    """At n = 1,000, 1,000 questions: 2.0 against 2.3; three standard errors of ten games: 0.4."""
    ladder = lb.GrowingLadder(step=1.2, compare_noise=0.31)
    played = [
        AbstainingAttack().play_against(ladder, n=1_000, questions=1_000, seed=seed).bias
        for seed in range(10)
    ]
    assert 1.4 < np.mean(played) * math.sqrt(1_000) < 2.6
