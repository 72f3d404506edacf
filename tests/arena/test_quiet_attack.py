"""The attack by quiet guesses: its odds are right, and growth is what limits it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import ComparisonRule
from ladderboard.arena._kernels import _quiet_attack, quiet_attack_biases

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
