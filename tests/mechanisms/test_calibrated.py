"""The table of calibrated settings: read right, interpolated between, honest outside."""

import json
import math
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.arena import CalibrationSize, CandidateSettings
from ladderboard.arena._shaky_calibration._compiled_games import measure_candidate
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms._shaky_calibration import calibrated_settings

PACKAGE = files("ladderboard.mechanisms")
TABLES = [json.loads((PACKAGE / f"calibrated{which}.json").read_text()) for which in ("", "-teams")]
ONE, TEAMS = (table["cells"] for table in TABLES)
SIZES = [(cell["n"], cell["questions"]) for cell in ONE]


def named(cell):
    return f"{cell['n']}-{cell['questions']}-{cell['teams']}"


def test_the_table_spans_what_it_should():
    assert [(10**n, 10**k) for n in range(2, 8) for k in range(1, 7)] == SIZES
    assert {cell["teams"] for cell in ONE} == {1}
    assert {team["teams"] for team in TEAMS} == {10, 100, 1_000}
    for cell in ONE + TEAMS:
        assert cell["repetitions"] >= 20
        assert cell["error_se"] > 0
        assert cell["bias_se"] > 0
    for table in TABLES:
        assert table["made_by"] == "script/calibrate"
        assert table["seed"] == 0


@pytest.mark.parametrize("cell", ONE + TEAMS, ids=named)
def test_a_measured_cell_is_returned_as_it_is(cell):
    n, unit = cell["n"], 1 / math.sqrt(cell["n"])
    mechanism = lb.ShakyLadder.calibrated(n, cell["questions"], cell["teams"])
    origin = mechanism.origin
    assert mechanism.step == pytest.approx(cell["step"] * unit, rel=1e-3)
    assert mechanism.compare_noise == pytest.approx(cell["compare"] * unit, rel=1e-3)
    assert mechanism.release_noise == pytest.approx(cell["release"] * unit, rel=1e-3)
    assert mechanism.grid == cell["grid"]
    assert mechanism.threshold_noise == 0
    assert origin.note.startswith("measured at")
    assert origin.repetitions == cell["repetitions"]
    assert origin.error == pytest.approx(cell["error"] * unit, rel=1e-3)
    assert origin.bias_se == pytest.approx(cell["bias_se"] * unit, rel=1e-3)


@pytest.mark.parametrize(
    "cell",
    [cell for cell in ONE + TEAMS if cell["questions"] <= 100],
    ids=named,
)
def test_the_table_is_what_this_code_measures(cell):
    """The same games again; a last bit that differs between machines may change one of 500."""
    candidate = CandidateSettings(cell["step"], cell["compare"], cell["release"], cell["grid"])
    size = CalibrationSize(cell["n"], cell["questions"], cell["teams"])
    again = measure_candidate(candidate, size, cell["repetitions"], seed=1)
    assert again.worst == cell["worst"]
    assert again.error == pytest.approx(cell["error"], rel=2e-3)
    assert again.bias == pytest.approx(cell["bias"], rel=2e-3, abs=2e-3)


sizes = st.floats(math.log(2), math.log(1e9)).map(lambda x: round(math.exp(x)))


@given(n=sizes, questions=sizes, teams=st.integers(1, 5_000))
def test_between_cells_settings_lie_between_theirs(n, questions, teams):
    chosen = calibrated_settings(n, questions, teams)
    several = min(teams, questions) > 1
    cells = ONE + TEAMS if several else ONE
    unit = 1 / math.sqrt(n)
    for name, value in (
        ("step", chosen.step),
        ("compare", chosen.compare_noise),
        ("release", chosen.release_noise),
        ("error", chosen.error),
    ):
        values = [cell[name] for cell in cells]
        assert min(values) * unit * 0.999 <= value <= max(values) * unit * 1.001
    assert 0 < chosen.grid <= 0.5
    exact = (n, questions) in SIZES and (teams == 1)
    assert chosen.note.startswith("measured") == bool(chosen.repetitions)
    assert not exact or chosen.repetitions
    outside = not (100 <= n <= 10**7 and 10 <= questions <= 10**6)
    assert not outside or chosen.note.startswith("outside the table")


def test_halfway_is_halfway_in_the_logarithm():
    low, high, middle = (calibrated_settings(n, 1_000) for n in (10_000, 1_000_000, 100_000))
    assert middle.note.startswith("measured")
    between = calibrated_settings(31_623, 1_000)
    ends = [cell.step * math.sqrt(cell.n) for cell in (low, middle)]
    assert between.step * math.sqrt(31_623) == pytest.approx(sum(ends) / 2, rel=1e-3)
    assert "n=10000..100000" in between.note
    assert high.error > 0


def test_notes_say_what_was_done():
    assert "teams=10..100" in calibrated_settings(10_000, 1_000, 30).note
    assert "teams=10" in calibrated_settings(10_000, 1_000, 10).note
    assert "outside" in calibrated_settings(10_000, 10_000, 5_000).note
    assert calibrated_settings(10_000, 10_000, 5_000).beyond
    # Where teams outnumber questions, no more of them can ask.
    crowd, hundred = (calibrated_settings(10_000, 100, teams) for teams in (5_000, 100))
    assert crowd.step == hundred.step
    assert not crowd.beyond


def test_more_teams_more_release_noise():
    noises = [
        calibrated_settings(10_000, 10_000, teams).release_noise for teams in (1, 10, 100, 1_000)
    ]
    assert noises == sorted(noises)
    assert noises[-1] > noises[0]


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 10**400}, {"questions": 0}, {"teams": 0.5}])
def test_bad_sizes_are_refused(wrong):
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        lb.ShakyLadder.calibrated(**({"n": 100, "questions": 10} | wrong))
