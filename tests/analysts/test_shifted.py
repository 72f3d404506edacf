"""The shifted majority attack and the sybil attack: the bias they leave.

Every bound below lies at least ten standard errors from what the attack does on average, so a
false alarm is out of the question; a bound that fails means that the attack has grown weaker.
"""

from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import MajorityAttack, ShiftedMajority, SybilAttack
from ladderboard.analysts._shifted._comparison_rule import (
    ComparisonRule,
    normal_cdf,
    truncated_mean,
    upper_quantile,
    upper_tail_mean,
)
from ladderboard.analysts._shifted._local_search import LabelBeliefs, binomial_probabilities
from ladderboard.analysts._shifted._random_guesses import GuessOdds

N = 10_000
TINY, UNIT = lb.Ladder(step=0.01 / N**0.5), lb.Ladder(step=1 / N**0.5)


def bias(analyst, mechanism, questions, *, games=4, n=N):
    return np.mean(
        [
            analyst.play_against(mechanism, n=n, questions=questions, seed=seed).bias
            for seed in range(games)
        ]
    )


@pytest.mark.parametrize(("mechanism", "minimum"), [(TINY, 0.053), (UNIT, 0.037)])
def test_the_bias_it_leaves_after_a_thousand_questions(mechanism, minimum):
    assert bias(ShiftedMajority(easy=0.5), mechanism, 1_000) >= minimum


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "minimum"), [(TINY, 0.095), (UNIT, 0.054)])
def test_the_bias_it_leaves_after_ten_thousand_questions(mechanism, minimum):
    assert bias(ShiftedMajority(easy=0.5), mechanism, 10_000) >= minimum


def test_a_tiny_step_lets_every_label_be_read():
    # With more questions than hard labels each can be asked by itself: half of n, half of it luck.
    ladder = lb.Ladder(step=0.01 / 1_000**0.5, grid=0.001)
    score = ShiftedMajority().play_against(ladder, n=1_000, questions=1_500, seed=1)
    assert score.bias > 0.2


def test_the_attack_learns_standing_noise_from_unchanged_answers():
    # An attack that treats all comparison noise as fresh leaves about 0.025 here.
    standing = lb.ShakyLadder(step=0.01, compare_noise=0.004, release_noise=0, grid=0.005)
    assert bias(ShiftedMajority(), standing, 1_000) > 0.028


@pytest.mark.parametrize(
    ("mechanism", "minimum"),
    [
        (lb.Exact(), 0.08),
        (lb.Rounded(digits=2), 0.066),
        (lb.Noisy(sd=0.5 / N**0.5), 0.045),
        (lb.ParameterFreeLadder(), 0.075),
        (lb.OneBit(step=1 / N**0.5), 0.035),
        (lb.BootstrapLadder(), 0.04),
    ],
    ids=lambda parameter: getattr(parameter, "name", ""),
)
def test_it_plays_well_against_all_others(mechanism, minimum):
    assert bias(ShiftedMajority(), mechanism, 1_000, games=3) > minimum


def test_it_gains_more_than_random_guesses_alone():
    # The plain majority attack's exact bias with half of the labels easy is 0.070 against Exact.
    majority = bias(MajorityAttack(easy=0.5), lb.Exact(), 1_000)
    assert 0.065 < majority < 0.075
    assert bias(ShiftedMajority(), lb.Exact(), 1_000) > majority + 0.005


def test_many_accounts_defeat_per_team_ladders():
    calibrated = lb.ShakyLadder.calibrated(n=N, questions=1_000)
    assert bias(SybilAttack(accounts=300), calibrated, 1_000, games=3) > 0.06
    for_teams = lb.ShakyLadder.calibrated(n=N, questions=1_000, teams=300)
    assert bias(SybilAttack(accounts=300), for_teams, 1_000, games=3) < 0.04


@pytest.mark.parametrize("analyst", [ShiftedMajority(), SybilAttack(accounts=3)], ids=repr)
@pytest.mark.parametrize("questions", [1, 2, 3, 4, 5, 9])
def test_few_questions_and_few_examples(analyst, questions):
    for mechanism in (TINY, lb.Exact(), lb.ShakyLadder(0.1, 0.05, 0.05, grid=0.01), lb.OneBit(0.1)):
        for n in (1, 2, 5, 65):
            score = analyst.play_against(mechanism, n=n, questions=questions, seed=3)
            assert 1 <= score.asked <= questions


def test_the_rule_is_read_in_examples():
    assert ComparisonRule.from_mechanism(lb.Ladder(step=0.01), 1_000) == ComparisonRule(
        step=10, grid=10
    )
    shaky = lb.ShakyLadder(step=0.1, compare_noise=0.03, release_noise=0.02, grid=0.05)
    assert ComparisonRule.from_mechanism(shaky, 100) == pytest.approx((10, 3, 3, 2, 5, 0))
    fresh = replace(shaky, standing_noise=0)
    assert ComparisonRule.from_mechanism(fresh, 100) == pytest.approx((10, 3, 0, 2, 5, 0))
    laplace = lb.ShakyLadder(step=0.1, compare_noise=0.03, release_noise=0.02, law="laplace")
    root = 2**0.5
    assert ComparisonRule.from_mechanism(laplace, 100) == pytest.approx(
        (10, 3 * root, 3 * root, 2 * root, 0, 0)
    )
    assert ComparisonRule.from_mechanism(laplace, 100).compare == pytest.approx(6)
    assert ComparisonRule.from_mechanism(lb.Noisy(sd=0.1), 50).blur == pytest.approx(25)
    assert ComparisonRule.from_mechanism(lb.ParameterFreeLadder(), 50).margin(9) == 3


def test_the_odds_agree_with_playing():
    # Frequencies over 200,000 guesses; each is compared at 5 standard errors (false alarms 1e-6).
    rule = ComparisonRule(step=100, fresh=40, standing=40, release=20, grid=50)
    odds = GuessOdds(rule, 35.0)
    index = odds.nearest_shift(-20.0)
    rng = np.random.default_rng(0)
    count = 200_000
    luck = np.clip(rng.standard_normal(count), -5, 5)
    wrong = odds.shift[index] - 35 * luck
    fresh, standing = rng.normal(0, 40, (2, count))
    crossed = wrong + fresh < -100 + np.clip(standing, -120, 120)
    cells = np.round(-(wrong + rng.normal(0, 20, count)) / 50)
    answered = crossed & (cells >= 1)
    chance = (odds.belief @ odds.released[:, index]).sum()
    # The standing noise is a grid of 13 values: allow its rounding as well.
    assert answered.mean() == pytest.approx(chance, abs=5 * (chance / count) ** 0.5 + 0.003)
    for cell in (1, 2, 3):
        mine = answered & (cells == cell)
        updated = odds.update(index, 50.0 * cell)
        assert luck[mine].mean() == pytest.approx(updated, abs=5 / mine.sum() ** 0.5 + 0.03)
    assert luck[~answered].mean() == pytest.approx(
        odds.update(index, None), abs=5 / count**0.5 + 0.005
    )


def test_unchanged_answers_lower_the_expected_standing_noise():
    odds = GuessOdds(ComparisonRule(step=100, fresh=40, standing=40, release=0, grid=50), 35.0)
    mean_before = odds.belief @ np.linspace(-3, 3, 13)
    index = odds.nearest_shift(-100.0)
    for _ in range(10):
        odds.update(index, None)
    assert odds.belief @ np.linspace(-3, 3, 13) < mean_before - 0.5
    odds.reset_belief()
    assert odds.belief @ np.linspace(-3, 3, 13) == pytest.approx(mean_before)


def test_normal_law():
    assert normal_cdf(-upper_quantile(0.03)) == pytest.approx(0.03)
    assert upper_tail_mean(0.0) == pytest.approx((2 / np.pi) ** 0.5)
    draws = np.random.default_rng(1).standard_normal(400_000)
    inside = draws[(draws > 0.3) & (draws < 1.2)]
    assert truncated_mean(0.3, 1.2) == pytest.approx(inside.mean(), abs=0.003)
    assert truncated_mean(40.0, 50.0) == 40.0


def test_beliefs_are_binomial_and_keep_their_sum():
    assert binomial_probabilities(0.3, 5) == pytest.approx(
        [0.16807, 0.36015, 0.3087, 0.1323, 0.02835, 0.00243]
    )
    beliefs = LabelBeliefs(np.random.default_rng(0), 100)
    beliefs.update_total(40, 0.0)
    beliefs.match_total()
    assert beliefs.exact
    assert beliefs.doubt.sum() == pytest.approx(40)
    half = beliefs.describe_flip(np.arange(50))
    # Of 100 examples 40 are wrong; of any 50, 20 with the variance of drawing without replacement.
    assert half.wrong == pytest.approx(20)
    assert half.expected == pytest.approx(50)
    assert half.variance == pytest.approx(4 * 50 * 0.4 * 0.6 * 0.5)
