"""Simulated attacks of ``board check``: the size that is played, and the games."""

import json
import subprocess
import sys
from types import SimpleNamespace

import ladderboard as lb
from ladderboard.board._check._report import play_attacks


def promise(mechanism, *, effective_n=300, questions=5, ladders=1):
    return SimpleNamespace(
        mechanism=mechanism,
        effective_n=effective_n,
        questions=questions,
        resolution=SimpleNamespace(accounts=ladders),
    )


def names(results):
    return [result.name for result in results]


def test_games_are_reproducible_and_the_strongest_attack_fits_the_ladders():
    ladder = lb.Ladder(step=0.01)
    first = play_attacks(promise(ladder))
    assert names(first) == ["majority", "shifted_majority"]
    assert play_attacks(promise(ladder)) == first
    assert play_attacks(promise(ladder), seed=1) != first
    assert names(play_attacks(promise(ladder, ladders=3))) == [
        "majority",
        "sybil",
    ]
    assert {(result.n, result.questions) for result in first} == {(300, 5)}


def test_abstaining_is_played_where_a_prediction_is_almost_surely_wrong():
    ladder = promise(lb.Ladder(step=0.01))
    assert "abstaining" in names(play_attacks(ladder, abstention=0.1))
    assert "abstaining" not in names(play_attacks(ladder, abstention=0.3))


def test_a_large_board_is_played_smaller(monkeypatch):
    played = []

    def run(mechanisms, analysts, *, n, k, repetitions, seed):
        played.append((mechanisms["board"], n, k))
        rows = [(analyst, name) for analyst in analysts for name in mechanisms]
        return [SimpleNamespace(analyst=a, mechanism=name, bias=0.0) for a, name in rows]

    monkeypatch.setattr("ladderboard.arena.run", run)
    large = lb.ShakyLadder.calibrated(n=10**6, questions=10**5, teams=7)
    board = promise(large, effective_n=10**6, questions=10**5, ladders=7)
    play_attacks(board)
    assert played == [(large, 10_000, 2_000)]


def test_exact_scores_give_more_away_than_the_board():
    """The means of 3 games have standard errors of about 0.03, and lie 0.2 apart.

    Half of that is beyond two standard errors of a difference; the seed is fixed.
    """
    shaky = lb.ShakyLadder.calibrated(n=100, questions=60)
    board = promise(shaky, effective_n=100, questions=60)
    majority = play_attacks(board)[0]
    assert majority.exact > majority.gain + 0.06


WITHOUT = """
import json, sys
sys.modules |= dict.fromkeys(("numba", "scipy", "matplotlib"))
from types import SimpleNamespace
import ladderboard as lb
from ladderboard.board._check._report import play_attacks
promise = SimpleNamespace(mechanism=lb.Ladder(step=0.01), effective_n=300, questions=6)
promise.resolution = SimpleNamespace(accounts=1)
print(json.dumps([result.describe() for result in play_attacks(promise)]))
"""


def test_games_run_with_the_libraries_of_a_server():
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    board = promise(lb.Ladder(step=0.01), questions=6)
    assert json.loads(result.stdout) == [attack.describe() for attack in play_attacks(board)]
