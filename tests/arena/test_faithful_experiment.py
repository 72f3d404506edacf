"""The experiment about faithful mechanisms: its files, and agreement with the proofs."""

import csv
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.arena._experiments import _faithful
from ladderboard.arena._experiments._faithful import FaithfulnessTask
from ladderboard.arena._experiments._vote_attack import (
    VoteGame,
    VoteRow,
    expected_bias,
    summarize_votes,
)

FILES = ["games.csv", "attack.csv", "faithful.csv", "table.md", "faithful.png", "faithful.svg"]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(_faithful, "_QUICK_SIZES", {100: (3, 10)})
    monkeypatch.setattr(_faithful, "_QUICK_PROBE_GAMES", 2)


def table(path):
    with Path(path).open() as file:
        return list(csv.DictReader(file))


def votes_of(label, n, k, games):
    return [VoteRow(**VoteGame(label, n, k, index, 0).run(1)) for index in range(games)]


def test_one_worker_and_two_write_the_same_bytes(small, tmp_path):
    settings = {"quick": True, "repetitions": 2, "seed": 3}
    one_worker = lb.arena.faithful_experiment(tmp_path / "one", workers=1, **settings)
    two = lb.arena.faithful_experiment(tmp_path / "two", workers=2, **settings)
    assert [path.name for path in one_worker] == FILES
    for mine, theirs in zip(one_worker, two, strict=True):
        assert mine.read_bytes() == theirs.read_bytes(), mine.name
    rows, cells = table(one_worker[0]), table(one_worker[1])
    assert len(rows) == 2 * len(cells) == 24
    assert float(cells[0]["bias_mean"]) == np.mean([float(row["bias"]) for row in rows[:2]])
    lb.arena.faithful_experiment(tmp_path / "other", workers=1, **{**settings, "seed": 4})
    assert table(tmp_path / "other/games.csv") != rows


def test_all_mechanisms_meet_the_same_labels_and_guesses():
    exact, tiny = votes_of("exact", 1_001, 5, 3), votes_of("ladder_tiny", 1_001, 5, 3)
    # An odd n, so that no guess is as good as chance: both hear on which side each one is.
    assert [vote.bias for vote in exact] == [vote.bias for vote in tiny]
    assert len({vote.bias for vote in exact}) == len({vote.seed for vote in exact}) == 3


@pytest.mark.parametrize(("n", "k"), [(300, 9), (301, 10)])
def test_the_bias_under_exact_answers_agrees_with_the_moments(n, k):
    # Four standard errors: one false alarm in 15,000.
    biases = [vote.bias for vote in votes_of("exact", n, k, 200)]
    mean, std = lb.majority_attack_moments(n, k)
    assert abs(np.mean(biases) - (0.5 - mean)) < 4 * std / math.sqrt(200)


def test_the_line_is_the_limit_of_the_exact_mean():
    n = 10**9
    assert expected_bias(n, 10_000) == pytest.approx(
        0.5 - lb.majority_attack_moments(n, 10_000).mean, 1e-3
    )


def test_the_shaky_ladder_gives_away_less_than_faithful_ones():
    # Means in units of 1/sqrt(n) are 1.2 or more and 0.3, with standard errors of about 0.15: the
    # false-alarm rate is below 1e-3, were the seed not fixed.
    biases = {
        label: np.mean([vote.bias for vote in votes_of(label, 1_000, 30, 12)])
        for label in ("exact", "ladder_tiny", "ladder", "parameter_free_ladder", "shaky_ladder")
    }
    shaky = biases.pop("shaky_ladder")
    assert shaky < min(biases.values())


def test_a_spent_threshold_is_recorded():
    # The Ladder's threshold falls by a step of 1/sqrt(n) each time, from 1/2 to almost nothing.
    ladder_rows = votes_of("ladder", 1_000, 30, 2)
    assert [(vote.answered, vote.last_error) for vote in ladder_rows] == [(16, None)] * 2
    exact_rows = votes_of("exact", 1_000, 30, 2)
    assert [vote.answered for vote in exact_rows] == [30, 30]
    assert [vote.last_error for vote in exact_rows] == pytest.approx(
        [abs(vote.bias) for vote in exact_rows]
    )
    assert all(vote.farthest < 1e-9 for vote in exact_rows)
    ladder, exact = summarize_votes([*ladder_rows, *exact_rows])
    assert (ladder.spent, ladder.voted, ladder.last_error_mean) == (2, 0, None)
    assert (exact.spent, exact.voted) == (0, 2)


@pytest.mark.parametrize(
    ("label", "verdict"),
    [
        ("ladder", "faithful"),
        ("ladder_tiny", "faithful"),
        ("ladder_half", "faithful"),
        ("parameter_free_ladder", "faithful"),
        ("ladder_coarse", "not faithful"),
        ("noisy", "not faithful"),
        ("shaky_ladder", "not faithful"),
        ("one_bit", "tells no value"),
    ],
)
def test_faithfulness_of_each_mechanism(label, verdict):
    # The limits of those that draw noise are wrong with probability 1%.
    probing = FaithfulnessTask(label, 10_000, 100, 30, 0)
    result = probing.run(1)
    assert result["verdict"] == verdict
    assert probing.accepts(result)
    assert not FaithfulnessTask(label, 1_000, 100, 30, 0).accepts(result)


def test_a_damaged_result_is_not_accepted():
    game = VoteGame("exact", 50, 3, 0, 0)
    vote = game.run(1)
    assert game.accepts(vote)
    assert game.accepts({**vote, "last_error": None})
    damaged = [None, {}, {**vote, "bias": None}, {**vote, "bias": math.nan}, {**vote, "k": 4}]
    assert not any(game.accepts(result) for result in damaged)


def test_an_interrupted_experiment_resumes(small, tmp_path, monkeypatch):
    settings = {"quick": True, "repetitions": 2, "workers": 1}
    run, played = VoteGame.run, []

    def counted(game, threads):
        if len(played) == 7:
            raise KeyboardInterrupt
        played.append(game)
        return run(game, threads)

    monkeypatch.setattr(VoteGame, "run", counted)
    with pytest.raises(KeyboardInterrupt):
        lb.arena.faithful_experiment(tmp_path / "out", **settings)
    partial_results = (tmp_path / "out/results.jsonl").read_bytes()
    assert partial_results.count(b'"kind": "vote"') == 7
    played[:] = [None] * 8  # past the interruption
    lb.arena.faithful_experiment(tmp_path / "out", **settings)
    assert len(played) - 8 == 24 - 7
    assert (tmp_path / "out/results.jsonl").read_bytes().startswith(partial_results)
    lb.arena.faithful_experiment(tmp_path / "whole", **settings)
    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_the_command_writes_its_files(tmp_path):
    arguments = ["experiment", "faithful", "--quick", "--repetitions", "1", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "ladderboard", *arguments, "--workers", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [str(tmp_path / name) for name in FILES]
    text = (tmp_path / "table.md").read_text()
    assert "## The attack, n = 1,000" in text
    assert "| one_bit | 1 |  | tells no value |" in text
