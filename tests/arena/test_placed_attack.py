"""The compiled attack by placed guesses: the same attack as the analyst's, and as strong."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import AbstainingAttack, ShiftedMajority
from ladderboard.arena._kernels import _placed_attack as kernel
from ladderboard.arena._kernels import placed_attack_biases
from ladderboard.mechanisms import GrowingLadder, Observation, Setup

_readable = kernel._readable.py_func

CONSTANT = lb.ShakyLadder.calibrated(n=225, questions=100)
GROWING = lb.GrowingLadder(step=1.2, compare_noise=0.31, accounts=2, sharing=0.2)


@pytest.mark.parametrize("changes", [0, 3, 11])
@pytest.mark.parametrize("others", [0, 2, 90])
@pytest.mark.parametrize("best", [0.9, 0.5, 0.31, 0.04])
def test_rungs_are_those_of_the_mechanism(best, changes, others, monkeypatch):
    mechanism = GrowingLadder(step=1.3, growth=0.5, accounts=3, sharing=0.3, cap=2.5)
    setup = Setup(1_234, 0.0, 1.0)
    state = mechanism.begin(setup, ())._replace(best=round(best * 10**12), changes=changes)
    exact = mechanism.rung(setup, state, Observation(0.0, None, None, others=others))
    rules = kernel.LadderRules.from_mechanism(mechanism, 1_234)
    monkeypatch.setattr(kernel, "_readable", _readable)  # compiled functions have no Python entry
    multiple = kernel._multiple.py_func(rules, changes, others)
    rung = kernel._rung.py_func(rules, best * 1_234, multiple)
    assert np.array(rung) / 1_234 == pytest.approx(np.array(exact) / 10**12, rel=1e-5)


def test_grids_are_readable():
    grids = (0.0014, 0.0015, 0.0031, 0.0032, 0.0070, 0.0072)
    assert [_readable(grid) for grid in grids] == pytest.approx(
        [0.001, 0.002, 0.002, 0.005, 0.005, 0.01]
    )


@pytest.mark.parametrize(
    ("mechanism", "settings", "analyst"),
    [
        (CONSTANT, {}, AbstainingAttack()),
        (GROWING, {"accounts": 2}, AbstainingAttack(accounts=2)),
        (GROWING, {"known": 0.5, "abstains": False}, ShiftedMajority(easy=0.5)),
    ],
    ids=["constant", "two accounts", "known labels"],
)
def test_it_gains_as_much_as_the_analyst(mechanism, settings, analyst):
    """20 and 400 games: standard error below 0.12, so that 0.5 is four of them (1e-4)."""
    compiled = placed_attack_biases(mechanism, n=225, questions=100, games=400, **settings)
    played = [
        analyst.play_against(mechanism, n=225, questions=100, seed=seed).bias for seed in range(20)
    ]
    assert compiled.mean() == pytest.approx(np.mean(played) * math.sqrt(225), abs=0.5)


@pytest.mark.parametrize(
    ("n", "questions", "games", "minimum"),
    [(1_000, 100, 200, 1.3), (1_000, 1_000, 100, 2.1), (10_000, 1_000, 20, 2.7)],
)
def test_it_is_strong_against_constant_steps(n, questions, games, minimum):
    """Measured: 1.32 ± 0.02, 2.33 ± 0.03 and 2.85 ± 0.06; four standard errors of these games."""
    ladder = lb.ShakyLadder.calibrated(n=n, questions=questions)
    biases = placed_attack_biases(ladder, n=n, questions=questions, games=games)
    assert biases.mean() > minimum - 4 * biases.std() / math.sqrt(games)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "questions", "games", "minimum"),
    [
        (1_000, 100, 1_000, 1.3),
        (1_000, 1_000, 400, 2.1),
        (10_000, 1_000, 100, 2.7),
        (10_000, 10_000, 60, 3.0),
    ],
)
def test_it_reaches_what_is_wanted_against_constant_steps(n, questions, games, minimum):
    ladder = lb.ShakyLadder.calibrated(n=n, questions=questions)
    biases = placed_attack_biases(ladder, n=n, questions=questions, games=games)
    assert biases.mean() > minimum - 2 * biases.std() / math.sqrt(games)


def test_games_are_those_of_the_seed():
    settings = {"n": 200, "questions": 50, "games": 3}
    first = placed_attack_biases(GROWING, **settings)
    assert (first == placed_attack_biases(GROWING, **settings)).all()
    assert (first != placed_attack_biases(GROWING, **settings, seed=1)).any()
