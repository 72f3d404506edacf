"""The play experiment: what a frame is, and that the committed data is up to date."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import MajorityAttack, ShiftedMajority
from ladderboard.arena._experiments import _play
from ladderboard.arena._experiments._play import RecordedMatch, frame_questions

KEPT = Path(lb.__file__).parent / "server/_pages/play.json"


def recorded_match(analyst, mechanism, n=400, k=60, repetition=0):
    return RecordedMatch(("board", analyst.name), mechanism, analyst, n, k, repetition, seed=3)


BOARDS = [lb.Exact(), lb.Ladder(step=0.05), lb.ShakyLadder.calibrated(n=400, questions=60)]
BOARDS += [lb.Noisy(sd=0.05), lb.Rounded(digits=1)]
ATTACKS = [MajorityAttack(easy=0.5), ShiftedMajority()]


@pytest.mark.parametrize("mechanism", BOARDS, ids=lambda each: each.name)
@pytest.mark.parametrize("analyst", ATTACKS, ids=lambda each: each.name)
def test_nobody_notices_the_watching_and_the_last_frame_is_the_end(analyst, mechanism, monkeypatch):
    recorded = recorded_match(analyst, mechanism).run(threads=1)
    rows = lb.arena.run({"board": mechanism}, analyst, n=400, k=60, repetitions=1, seed=3)
    assert recorded["worth"][-1] - recorded["fits"][-1] == rows[0].bias
    assert [len(each) for each in recorded.values()] == [60] * 3
    # A frame is the same however many others are taken.
    monkeypatch.setattr("ladderboard.arena._experiments._play.FRAMES", 4)
    few = recorded_match(analyst, mechanism).run(threads=1)
    for name, values in few.items():
        assert values == [recorded[name][stop - 1] for stop in (15, 30, 45, 60)]


@pytest.mark.parametrize("analyst", ATTACKS, ids=lambda each: each.name)
def test_nothing_is_truly_worth_more_than_half_of_the_hard_part(analyst):
    found = recorded_match(analyst, lb.Exact()).run(threads=1)
    assert set(found["worth"]) == {0.25}
    assert found["shown"][-1] < 0.25


def test_a_ladder_shows_what_stood_where_the_vote_does_not_beat_it():
    found = recorded_match(MajorityAttack(easy=0.5), lb.Ladder(step=0.2), k=30).run(threads=1)
    assert set(found["shown"]) == {0.2}  # the first guess, rounded; nothing beats it by a step
    assert len(set(found["fits"])) > 1


def test_kept_frames_must_be_whole():
    task = recorded_match(MajorityAttack(easy=0.5), lb.Exact(), n=50, k=5)
    found = task.run(threads=1)
    assert task.accepts(found)
    wrong = [None, {}, {**found, "fits": found["fits"][1:]}, {**found, "shown": None}]
    wrong += [{**found, "worth": [0.25] * 4 + [float("nan")]}]
    assert not any(map(task.accepts, wrong))


def test_the_experiment_writes_means_that_do_not_depend_on_workers(tmp_path):
    one = _play.play_experiment(tmp_path / "one", quick=True, repetitions=3, workers=1)
    two = _play.play_experiment(tmp_path / "two", quick=True, repetitions=3, workers=2)
    assert [path.name for path in one] == ["frames.csv", "play.json"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    with one[0].open() as file:
        rows = [row for row in csv.DictReader(file) if row["board"] == "ladder"][:50]
    written = json.loads(one[1].read_text())
    (scene,) = [
        entry
        for entry in written["scenes"]
        if (entry["board"], entry["attack"]) == ("ladder", "majority")
    ]
    assert [int(row["asked"]) for row in rows] == frame_questions(50)
    assert scene["shown"] == [round(float(row["shown"]) * 10_000) for row in rows]
    matches = [
        RecordedMatch(("ladder", "majority"), lb.Ladder(step=200**-0.5), ATTACKS[0], 200, 50, i, 0)
        for i in range(3)
    ]
    shown = np.array([match.run(threads=1)["shown"] for match in matches])
    assert [float(row["shown"]) for row in rows] == (1 - shown).mean(axis=0).tolist()
    assert [float(row["shown_std"]) for row in rows] == (1 - shown).std(axis=0, ddof=1).tolist()


@pytest.mark.parametrize(
    ("board", "noise", "attack"),
    [
        ("exact", None, "majority"),
        ("ladder", None, "shifted_majority"),
        ("shaky_ladder", "calibrated", "shifted_majority"),
    ],
)
def test_committed_frames_of_the_smallest_size_are_these(board, noise, attack):
    kept = json.loads(KEPT.read_text())
    boards = {made[:2]: made for made in _play.make_boards(1_000, 200)}
    scene = _play.AttackScene(1_000, 200, *boards[board, noise], attack)
    results = [match.run(threads=1) for match in scene.matches(kept["games"], kept["seed"])]
    assert _play.SceneSummary(scene, results).to_json() in kept["scenes"]


def test_the_committed_file_is_small_and_whole():
    kept = json.loads(KEPT.read_text())
    assert KEPT.stat().st_size < 150_000
    assert (kept["games"], kept["seed"]) == (_play._GAMES, 0)
    assert (kept["n"], kept["questions"]) == (list(_play._N), list(_play._QUESTIONS))
    wanted = len(_play._N) * len(_play._QUESTIONS) * 2 * (2 + len(_play._NOISES))
    assert len(kept["scenes"]) == wanted
    assert {len(each["shown"]) for each in kept["scenes"]} == {kept["frames"]}
    assert {each["worth"] for each in kept["scenes"]} == {7_500}


@pytest.mark.slow
def test_the_committed_frames_are_these(tmp_path):
    _play.play_experiment(tmp_path)
    assert (tmp_path / "play.json").read_bytes() == KEPT.read_bytes()
