"""The play experiment: recorded frames, and that the committed data are up to date."""

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


def recorded_match(analyst, mechanism, n=400, k=60):
    return RecordedMatch(("board", analyst.name), mechanism, analyst, n, k, 0, seed=3)


BOARDS = [lb.Exact(), lb.Ladder(step=0.05), lb.ShakyLadder.calibrated(n=400, questions=60)]
BOARDS += [lb.Noisy(sd=0.05), lb.Rounded(digits=1)]
ATTACKS = [MajorityAttack(easy=0.5), ShiftedMajority()]


@pytest.mark.parametrize("mechanism", BOARDS, ids=lambda frames: frames.name)
@pytest.mark.parametrize("analyst", ATTACKS, ids=lambda frames: frames.name)
def test_recording_does_not_change_the_game_and_the_last_frame_is_its_end(
    analyst, mechanism, monkeypatch
):
    recorded = recorded_match(analyst, mechanism).run(threads=1)
    rows = lb.arena.run({"board": mechanism}, analyst, n=400, k=60, repetitions=1, seed=3)
    assert recorded["worth"][-1] - recorded["fits"][-1] == rows[0].bias
    assert [len(frames) for frames in recorded.values()] == [60] * 3
    # A frame is the same however many others are taken.
    monkeypatch.setattr("ladderboard.arena._experiments._play.FRAMES", 4)
    fewer_frames = recorded_match(analyst, mechanism).run(threads=1)
    for name, values in fewer_frames.items():
        assert values == [recorded[name][stop - 1] for stop in (15, 30, 45, 60)]


@pytest.mark.parametrize("analyst", ATTACKS, ids=lambda analyst: analyst.name)
def test_nothing_is_truly_worth_more_than_half_of_the_hard_part(analyst):
    result = recorded_match(analyst, lb.Exact()).run(threads=1)
    assert set(result["worth"]) == {0.25}
    assert result["shown"][-1] < 0.25


def test_a_ladder_keeps_its_value_when_the_vote_is_not_better():
    result = recorded_match(MajorityAttack(easy=0.5), lb.Ladder(step=0.2), k=30).run(threads=1)
    assert set(result["shown"]) == {0.2}  # the first guess, rounded; nothing beats it by a step
    assert len(set(result["fits"])) > 1


def test_incomplete_stored_frames_are_not_accepted():
    task = recorded_match(MajorityAttack(easy=0.5), lb.Exact(), n=50, k=5)
    result = task.run(threads=1)
    assert task.accepts(result)
    damaged = [None, {}, {**result, "fits": result["fits"][1:]}, {**result, "shown": None}]
    damaged += [{**result, "worth": [0.25] * 4 + [float("nan")]}]
    assert not any(map(task.accepts, damaged))


def test_the_experiment_writes_means_that_do_not_depend_on_workers(tmp_path):
    one_worker = _play.play_experiment(tmp_path / "one", quick=True, repetitions=3, workers=1)
    two = _play.play_experiment(tmp_path / "two", quick=True, repetitions=3, workers=2)
    assert [path.name for path in one_worker] == ["frames.csv", "play.json"]
    assert [path.read_bytes() for path in one_worker] == [path.read_bytes() for path in two]
    with one_worker[0].open() as file:
        rows = [row for row in csv.DictReader(file) if row["board"] == "ladder"][:50]
    summary = json.loads(one_worker[1].read_text())
    (scene,) = [
        entry
        for entry in summary["scenes"]
        if (entry["board"], entry["attack"]) == ("ladder", "majority")
    ]
    assert [int(row["asked"]) for row in rows] == frame_questions(50)
    assert scene["shown"] == [round(float(row["shown"]) * 10_000) for row in rows]
    matches = [
        RecordedMatch(("ladder", "majority"), lb.Ladder(step=200**-0.5), ATTACKS[0], 200, 50, i, 0)
        for i in range(3)
    ]
    shown_values = np.array([match.run(threads=1)["shown"] for match in matches])
    assert [float(row["shown"]) for row in rows] == (1 - shown_values).mean(axis=0).tolist()
    assert [float(row["shown_std"]) for row in rows] == (1 - shown_values).std(
        axis=0, ddof=1
    ).tolist()


@pytest.mark.parametrize(
    ("board", "noise", "attack"),
    [
        ("exact", None, "majority"),
        ("ladder", None, "shifted_majority"),
        ("growing_ladder", "calibrated", "shifted_majority"),
    ],
)
def test_committed_frames_of_the_smallest_size_are_these(board, noise, attack):
    data = json.loads(KEPT.read_text())
    boards = {entry[:2]: entry for entry in _play.make_boards(1_000, 200)}
    scene = _play.AttackScene(1_000, 200, *boards[board, noise], attack)
    results = [match.run(threads=1) for match in scene.matches(data["games"], data["seed"])]
    assert _play.SceneSummary(scene, results).to_json() in data["scenes"]


def test_the_committed_file_is_small_and_complete():
    data = json.loads(KEPT.read_text())
    assert KEPT.stat().st_size < 150_000
    assert (data["games"], data["seed"]) == (_play._GAMES, 0)
    assert (data["n"], data["questions"]) == (list(_play._N), list(_play._QUESTIONS))
    expected = len(_play._N) * len(_play._QUESTIONS) * 2 * (2 + len(_play._NOISES))
    assert len(data["scenes"]) == expected
    assert {len(scene["shown"]) for scene in data["scenes"]} == {data["frames"]}
    assert {scene["worth"] for scene in data["scenes"]} == {7_500}


@pytest.mark.slow
def test_the_committed_frames_are_these(tmp_path):
    _play.play_experiment(tmp_path)
    assert (tmp_path / "play.json").read_bytes() == KEPT.read_bytes()
