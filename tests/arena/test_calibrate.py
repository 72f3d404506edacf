"""Calibration: the search, the rule by which settings are chosen, and the table."""

import json
import math

import pytest

import ladderboard as lb
from ladderboard.arena import (
    CalibrationSize,
    CandidateResult,
    CandidateSettings,
    calibrate,
    calibration_table,
)
from ladderboard.arena._shaky_calibration._calibrate import (
    SearchEffort,
    _allowed_grids,
    _neighbours,
    choose_effort,
    rank_finalists,
    search_settings,
)
from ladderboard.arena._shaky_calibration._compiled_games import measure_candidate
from ladderboard.errors import InvalidSetting

QUICK = {"n": 500, "questions": 100, "quick": True}


def make_result(step, error, bias):
    errors = {"plateau": error / 2, "shifted_majority": error}
    return CandidateResult(
        CandidateSettings(step, 1, 0, 0.01), 9, errors, dict.fromkeys(errors, 0.01), bias, 0.01
    )


def test_least_bias_among_those_near_the_least_error():
    trials = [
        make_result(1, 1.0, 3.0),
        make_result(2, 1.19, 2.0),
        make_result(3, 1.21, 1.0),
        make_result(4, 1.1, 2.5),
    ]
    assert [result.candidate.step for result in rank_finalists(trials)] == [
        2,
        4,
        1,
        3,
    ]
    assert [result.candidate.step for result in rank_finalists(trials, max_error=1.1)] == [
        4,
        1,
        2,
        3,
    ]
    assert (
        rank_finalists(trials, max_error=0.5)[0].candidate.step == 1
    )  # none is so good: the best there is


def test_a_trial_knows_its_worst_analyst():
    trial = make_result(1, 1.5, 3.0)
    assert (trial.worst, trial.error, trial.error_se) == ("shifted_majority", 1.5, 0.01)


def test_grids_are_round_and_near_a_standard_error():
    assert _allowed_grids(10_000) == (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)
    for n in (10, 100, 1_000, 10**7):
        assert len(_allowed_grids(n)) >= 4
        assert all(0.03 < grid * math.sqrt(n) < 3.1 for grid in _allowed_grids(n))


def test_neighbours_differ_in_one_setting():
    axes = ((0.0, 1.0, 2.0), (0.1, 0.2), (0.0, 0.5), (0.01, 0.02))
    neighbours = _neighbours(axes, CandidateSettings(0.0, 0.2, 0.0, 0.01))
    assert neighbours == [
        (1, 0.2, 0, 0.01),
        (0, 0.1, 0, 0.01),
        (0, 0.2, 0.5, 0.01),
        (0, 0.2, 0, 0.02),
    ]


@pytest.mark.slow
def test_the_search_finds_what_an_exhaustive_one_would():
    # One candidate of the net, looked at with as many games, must not beat what was found by more
    # than luck: 3 standard errors, for 30 candidates a false alarm of 4%; the seed is fixed.
    size = CalibrationSize(400, 60)
    trials = search_settings(size, SearchEffort(8, 30, 120, 120, 9), seed=5, threads=1)
    smallest_error = min(trial.error for trial in trials)
    for step in (0.5, 1.0, 2.0, 3.0, 4.5):
        for compare in (0.3, 0.6, 1.0, 1.7, 2.8, 0.1):
            exhaustive = measure_candidate(
                CandidateSettings(step, compare, 0.2, 0.02), size, 120, seed=6
            )
            assert exhaustive.error > smallest_error - 3 * exhaustive.error_se


@pytest.mark.slow
def test_calibration_is_what_the_rule_says():
    calibration = calibrate(**QUICK, seed=2)
    near = [
        finalist
        for finalist in calibration.finalists
        if finalist.error <= 1.2 * calibration.lowest_error_result.error
    ]
    assert calibration.chosen == min(near, key=lambda trial: trial.bias)
    assert calibrate(**QUICK, seed=2, threads=1) == calibration
    assert calibrate(**QUICK, seed=3) != calibration
    mechanism = calibration.mechanism
    assert mechanism.step == pytest.approx(calibration.chosen.candidate.step / math.sqrt(500))
    assert mechanism.threshold_noise == 0
    described = json.loads(json.dumps(calibration.describe(), allow_nan=False))
    assert described["finalists"][0]["bias"] == calibration.chosen.bias
    assert described["mechanism"]["grid"] == calibration.chosen.candidate.grid


@pytest.mark.slow
def test_with_teams_release_noise_is_what_protects():
    one_team = calibrate(n=1_000, questions=400, quick=True)
    many_teams = calibrate(n=1_000, questions=400, teams=200, quick=True)
    assert many_teams.chosen.candidate.release > one_team.chosen.candidate.release + 0.3
    assert "sybil" in many_teams.chosen.errors


@pytest.mark.parametrize(
    "settings",
    [{"n": 5}, {"questions": 0}, {"teams": 0}, {"seed": -1}, {"max_error": 0}, {"threads": 0}],
    ids=str,
)
def test_bad_sizes_are_refused(settings):
    with pytest.raises(InvalidSetting, match=next(iter(settings))):
        calibrate(**(QUICK | settings))


def test_effort_falls_with_the_length_of_games():
    efforts = [choose_effort(CalibrationSize(1_000, 10**power)) for power in range(1, 7)]
    assert efforts == sorted(efforts, reverse=True)


@pytest.mark.slow
def test_a_table_is_resumed_and_read(tmp_path, monkeypatch):
    sizes = {"n": (100, 400), "questions": (20,)}
    files = calibration_table(tmp_path, **sizes, quick=True, workers=1)
    assert {path.name for path in files} == {"calibrated.json", "table.md", "trade-off.csv"}
    table = json.loads((tmp_path / "calibrated.json").read_text())
    assert [(cell["n"], cell["questions"]) for cell in table["cells"]] == [
        (100, 20),
        (400, 20),
    ]
    table_before = (tmp_path / "calibrated.json").read_bytes()
    # Nothing is left to do.
    monkeypatch.setattr("ladderboard.arena._shaky_calibration._calibrate._search_settings", None)
    calibration_table(tmp_path, **sizes, quick=True, workers=1)
    assert (tmp_path / "calibrated.json").read_bytes() == table_before


@pytest.mark.slow
def test_the_calibrated_ladder_holds_attackers_and_tracks_honest_analysts():
    """At n = k = 1,000, 24 games: differences of means in standard errors, all above 5."""
    size = {"n": 1_000, "k": 1_000, "repetitions": 24, "seed": 11}
    ladder = lb.Ladder(step=2.5 / math.sqrt(1_000))  # its best step there
    rows = lb.arena.run(
        {"ours": "shaky_ladder", "ladder": ladder, "exact": "exact"},
        ["shifted_majority", "steady_improvement", "plateau"],
        **size,
    )

    def mean(mechanism, analyst, score_name):
        mine = [
            getattr(r, score_name) for r in rows if (r.mechanism, r.analyst) == (mechanism, analyst)
        ]
        return sum(mine) / len(mine) * math.sqrt(1_000)

    bias = {name: mean(name, "shifted_majority", "bias") for name in ("ours", "ladder", "exact")}
    assert bias["ours"] < 0.8 * bias["ladder"]
    assert bias["ours"] < bias["exact"] / 3
    for analyst in ("shifted_majority", "steady_improvement", "plateau"):
        assert mean("ours", analyst, "leaderboard_error") < 1.5
