"""Simulated attacks of ``board check``: the sizes that are played, and the games."""

import json
import subprocess
import sys
from itertools import pairwise

import pytest

import ladderboard as lb
from ladderboard.board import Target, play_attacks_on_target
from ladderboard.errors import InvalidSetting


def target(mechanism=None, **options):
    mechanism = lb.Ladder(step=0.01) if mechanism is None else mechanism
    usual = {"effective_n": 300, "questions": 40, "per_team": 40, "ladders": 1, "calibrated": False}
    return Target(**{**usual, **options}, mechanism=mechanism.describe())


@pytest.mark.parametrize("questions", [1, 2, 5, 17, 100, 1_999, 2_000, 10**6])
def test_a_curve_ends_at_the_budget_and_has_a_team_in_it(questions):
    for per_team in {1, max(questions // 3, 1), questions}:
        attack_target = target(questions=questions, per_team=per_team)
        assert attack_target.sizes[-1] == attack_target.max_questions == min(questions, 2_000)
        assert min(per_team, attack_target.max_questions) in attack_target.sizes
        assert 1 <= len(attack_target.sizes) <= 8
        assert all(smaller < larger for smaller, larger in pairwise(attack_target.sizes))
        assert {attack_target.games(size) for size in attack_target.sizes} <= set(range(3, 21))


def test_a_large_board_is_played_smaller_with_noise_for_that_size():
    large = lb.ShakyLadder.calibrated(n=10**6, questions=10**5, teams=7)
    attack_target = target(large, effective_n=10**6, questions=10**5, ladders=7, calibrated=True)
    assert (attack_target.n, attack_target.max_questions) == (10_000, 2_000)
    assert attack_target.played() == lb.ShakyLadder.calibrated(n=10_000, questions=2_000, teams=7)
    uncalibrated = target(large, effective_n=10**6, questions=10**5, ladders=7)
    assert uncalibrated.played() == large


def test_an_unknown_mechanism_cannot_be_played():
    described = {**target().describe(), "mechanism": {"mechanism": "deaf"}}
    with pytest.raises(InvalidSetting, match="There is no mechanism named 'deaf'"):
        Target(**described).played()


def test_games_are_reproducible_and_report_progress():
    parts = []
    attack_target = target(questions=5, per_team=2, ladders=3)
    first = play_attacks_on_target(attack_target, on_progress=parts.append)
    assert [point["questions"] for point in first] == attack_target.sizes
    assert all(list(point["attacks"])[2:] == ["sybil"] for point in first)
    assert parts[-1] == 1.0
    assert all(0 < smaller < larger for smaller, larger in pairwise(parts))
    assert play_attacks_on_target(Target(**attack_target.describe())) == first
    assert play_attacks_on_target(attack_target, seed=1) != first


def test_on_one_ladder_the_sybil_attack_is_not_played():
    points = play_attacks_on_target(target(questions=5))
    assert {name for point in points for name in point["attacks"]} == {
        "majority",
        "shifted_majority",
    }


def test_more_questions_gain_more_and_exact_scores_give_most_away():
    """The means of 20 games have standard errors of about 0.011, and lie 0.12 and more apart.

    Half of that is beyond three standard errors of a difference: false alarms below 1 in 1000.
    """
    shaky = lb.ShakyLadder.calibrated(n=100, questions=60)
    points = play_attacks_on_target(
        target(shaky, effective_n=100, questions=60, per_team=60, calibrated=True)
    )
    gains = [point["attacks"]["majority"] for point in points]
    assert gains[-1]["exact"] > gains[0]["exact"] + 0.06
    assert gains[-1]["exact"] > gains[-1]["board"] + 0.06
    assert all(0 < gain["error"] < 0.03 for gain in gains)


WITHOUT = """
import json, sys
sys.modules |= dict.fromkeys(("numba", "scipy", "matplotlib"))
from ladderboard.board import Target
from ladderboard.board._check._attacks import play_attacks_on_target
print(json.dumps(play_attacks_on_target(Target(**json.loads(sys.argv[1])))))
"""


def test_games_run_with_the_libraries_of_a_server():
    attack_target = target(questions=6)
    command = [sys.executable, "-c", WITHOUT, json.dumps(attack_target.describe())]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == play_attacks_on_target(attack_target)
