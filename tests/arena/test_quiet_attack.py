"""The attack by quiet guesses: its odds are right, and growth is what limits it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import ComparisonRule
from ladderboard.arena._kernels import PlayedQuietAttack, _quiet_attack, quiet_attack_biases

LADDER = lb.GrowingLadder.calibrated(10_000, 300, scale="model")


def test_the_odds_of_a_place_agree_with_simulation():
    """A million guesses; five standard errors are below 0.01."""
    rule = ComparisonRule(step=1_200, fresh=400, release=300, grid=500)
    chances, information = _quiet_attack._odds(rule)
    place = 30
    z = _quiet_attack._PLACES[place]
    rng = np.random.default_rng(0)
    luck, noise, blur = rng.standard_normal((3, 1_000_000))
    crossed = luck - 0.4 * noise > z * math.hypot(1, 0.4)
    assert chances[place] == pytest.approx(crossed.mean(), abs=0.003)
    shown = (luck + math.sqrt(rule.blur) / 1_000 * blur)[crossed]
    # What a regression on the released value explains, and silence.
    slope, offset = np.polyfit(shown, luck[crossed], 1)
    explained = crossed.mean() * np.mean((slope * shown + offset) ** 2)
    explained += (~crossed).mean() * luck[~crossed].mean() ** 2
    assert information[place] == pytest.approx(explained, abs=0.01)


def test_growth_limits_it_and_a_cap_does_not():
    """20 games with standard errors of 0.07: 2.3 without a cap, 3.6 with one."""
    settings = {"n": 10_000, "questions": 300, "games": 20}
    usual = quiet_attack_biases(LADDER, **settings).mean()
    assert 1.9 < usual < 2.8
    assert quiet_attack_biases(replace(LADDER, cap=8), **settings).mean() > usual + 0.4
    assert quiet_attack_biases(replace(LADDER, step=2.4), **settings).mean() < usual - 0.3


def test_calibrated_steps_that_follow_models_have_no_cap():
    assert LADDER.cap is None
    caps = [lb.GrowingLadder.calibrated(10_000, questions).cap for questions in (100, 1_000, 9_000)]
    assert caps == [pytest.approx(5.05, abs=0.01), 8, 8]
    assert lb.GrowingLadder.calibrated(1_600_000, 2_000).cap == 16


def test_played_the_least_deviation_limits_it_and_alternating_gains_nothing():
    """30 games with standard errors of 0.07: 1.6 here, 1.0 alternating, 1.9 without a limit."""
    ladder = lb.GrowingLadder.calibrated(1_000, 100, scale="model")
    settings = {"n": 1_000, "questions": 100, "games": 30, "seed": 3}
    attack = PlayedQuietAttack(start=0.9, deviation=0.45, patience=1.0)
    steady = attack.biases(ladder, **settings).mean()
    assert 1.2 < steady < 1.58 + 0.14  # the limit, and two standard errors
    alternating = PlayedQuietAttack(0.9, 0.1575, patience=1.0, alternates=True)
    assert alternating.biases(ladder, **settings).mean() < steady
    unlimited = replace(ladder, least_deviation=0.0)
    quiet = PlayedQuietAttack(start=0.9, deviation=0.002)
    assert quiet.biases(unlimited, **settings).mean() > steady + 0.1
    assert quiet.biases(ladder, **settings).mean() < steady


def test_two_accounts_are_played_on_two_ladders():
    """20 games with standard errors of 0.1: 2.0, where one ladder leaves 1.5."""
    ladder = lb.GrowingLadder.calibrated(
        1_000, 100, teams=20, accounts=2, scale="model"
    ).for_board()
    attack = PlayedQuietAttack(0.6, 0.18, accounts=2)
    biases = attack.biases(ladder, n=1_000, questions=100, games=20, seed=4)
    assert 1.5 < biases.mean() < 2.4
