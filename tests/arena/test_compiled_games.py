"""Compiled games, played by counting, have the same distribution as games with vectors.

Means over independent games are compared at 5 standard errors of their difference; with 14
comparisons a false alarm has a probability below 2e-4 (Student's t with 39 degrees of freedom).
"""

import math

import numpy as np
import pytest

from ladderboard.analysts import (
    MajorityAttack,
    Plateau,
    RandomSearch,
    ShiftedMajority,
    SteadyImprovement,
    SybilAttack,
)
from ladderboard.arena import CalibrationSize, CandidateSettings
from ladderboard.arena._shaky_calibration._calibrate import make_mechanism
from ladderboard.arena._shaky_calibration._compiled_games import measure_candidate

GAMES = 40
# Settings with which an attack learns much, little from silence, and mostly from the grid.
CANDIDATES = [
    CandidateSettings(1.0, 0.4, 0.0, 0.005),
    CandidateSettings(2.5, 1.0, 0.3, 0.01),
    CandidateSettings(2.0, 0.7, 0.1, 0.05),
]


def played(analyst, candidate, size):
    mechanism = make_mechanism(candidate, size.n)
    scores = [
        analyst.play_against(mechanism, n=size.n, questions=size.questions, seed=seed)
        for seed in range(GAMES)
    ]
    scores_by_game = np.array([(score.leaderboard_error, score.bias) for score in scores])
    return scores_by_game * math.sqrt(size.n)


def assert_agree(values, mean, se):
    standard_error = values.std(ddof=1) / math.sqrt(len(values))
    assert values.mean() == pytest.approx(mean, abs=5 * math.hypot(standard_error, se))


@pytest.mark.parametrize(
    "candidate",
    [
        CANDIDATES[0],
        *(pytest.param(candidate, marks=pytest.mark.slow) for candidate in CANDIDATES[1:]),
    ],
    ids=str,
)
def test_the_shifted_attack_does_as_well_by_counting(candidate):
    size = CalibrationSize(1_000, 300)
    counted = measure_candidate(candidate, size, 400, seed=1)
    errors, biases = played(ShiftedMajority(), candidate, size).T
    assert_agree(biases, counted.bias, counted.bias_se)
    # The played attack plans its guesses, the counted one takes them by their odds: on a coarse
    # grid the planned one moves the ladder further.
    error, spread = counted.errors["shifted_majority"], counted.errors_se["shifted_majority"]
    if candidate.grid < 0.05:
        assert_agree(errors, error, spread)
    else:
        assert errors.mean() > error


@pytest.mark.slow
def test_the_sybil_attack_does_as_well_by_counting():
    candidate, size = CandidateSettings(1.0, 0.5, 0.7, 0.005), CalibrationSize(1_000, 300, 40)
    counted = measure_candidate(candidate, size, 400, seed=1)
    errors, biases = played(SybilAttack(accounts=40), candidate, size).T
    assert_agree(errors, counted.errors["sybil"], counted.errors_se["sybil"])
    assert_agree(biases, counted.bias, counted.bias_se)


@pytest.mark.parametrize(
    ("analyst", "name"),
    [
        (SteadyImprovement(), "steady_improvement"),
        (RandomSearch(), "random_search"),
        (Plateau(), "plateau"),
        (MajorityAttack(), "guesses"),
    ],
    ids=lambda parameter: getattr(parameter, "name", ""),
)
def test_honest_analysts_agree_in_compiled_and_plain_games(analyst, name):
    # A fine grid, so that it does not matter where on it the true risks lie.
    candidate, size = CandidateSettings(1.5, 0.7, 0.2, 0.001), CalibrationSize(1_000, 300)
    counted = measure_candidate(candidate, size, 400, seed=1)
    errors, _ = played(analyst, candidate, size).T
    assert_agree(errors, counted.errors[name], counted.errors_se[name])


def test_games_do_not_depend_on_threads_and_share_their_luck():
    size = CalibrationSize(500, 50)
    single, double = (
        measure_candidate(CANDIDATES[1], size, 20, seed=3, threads=threads) for threads in (1, 3)
    )
    assert single == double
    assert measure_candidate(CANDIDATES[1], size, 20, seed=4) != single


def test_candidates_are_compared_on_the_same_games():
    # A difference too small to change any comparison changes nothing at all.
    size, near = CalibrationSize(500, 50), CandidateSettings(1.0, 0.7, 0.2, 0.01)
    first, second = (
        measure_candidate(near._replace(step=step), size, 30, seed=1) for step in (1.0, 1.0 + 1e-12)
    )
    assert (first.errors, first.bias) == (second.errors, pytest.approx(second.bias, abs=1e-9))
    near_trial = measure_candidate(near, size, 30, seed=2)
    assert all(first.errors[name] != near_trial.errors[name] for name in first.errors)


@pytest.mark.parametrize(
    "size",
    [
        CalibrationSize(10, 1),
        CalibrationSize(10, 2),
        CalibrationSize(11, 5, 5),
        CalibrationSize(100, 7, 100),
    ],
)
def test_tiny_games(size):
    trial = measure_candidate(CandidateSettings(0.0, 0.1, 0.0, 0.05), size, 3, seed=0)
    assert all(0 <= error < 10 for error in trial.errors.values())
    assert math.isfinite(trial.bias)
