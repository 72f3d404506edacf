"""Summaries of cells against hand computation, and the exact curve against played games."""

import math
from statistics import fmean

import pytest

import ladderboard as lb
from ladderboard.analysts import MajorityAttack
from ladderboard.arena._experiments._paper import exact_bias
from ladderboard.arena._experiments._summary import summarize_pairs
from ladderboard.arena._runner._task import GameRow


def row_of(*, error, bias, changes=0, asked=4, seconds=0.0, mechanism="exact", n=25):
    return GameRow(
        mechanism, "majority", n, 4, 0, 0, "1", error, bias, changes, asked=asked, seconds=seconds
    )


def test_a_cell_sums_its_rows_up():
    rows = [
        row_of(error=0.1, bias=0.4, changes=1, seconds=2.0),
        row_of(error=0.6, bias=-0.2, changes=2, asked=2, seconds=3.0),
        row_of(error=0.2, bias=0.1, changes=6, asked=3, seconds=7.0),
    ]
    (cell,) = summarize_pairs(rows, wanted=3)
    assert (cell.n, cell.k, cell.analyst, cell.mechanism) == (25, 4, "majority", "exact")
    assert (cell.repetitions, cell.note) == (3, "")
    assert cell.error_mean == pytest.approx(0.3)
    assert cell.error_std == pytest.approx(math.sqrt((0.2**2 + 0.3**2 + 0.1**2) / 2))
    assert cell.error_worst == 0.6
    assert cell.bias_mean == pytest.approx(0.1)
    assert cell.bias_std == pytest.approx(0.3)
    assert (cell.changes_mean, cell.asked_mean, cell.seconds_mean) == (3, 3, 4)
    assert cell.error_units == pytest.approx(0.3 * 5)
    assert cell.bias_units == pytest.approx(0.1 * 5)


def test_a_single_game_has_no_spread_and_missing_ones_are_noted():
    rows = [row_of(error=0.1, bias=0.2), row_of(error=0.3, bias=0.2, mechanism="ladder")]
    first, second = summarize_pairs(rows, wanted=2)
    assert (first.mechanism, second.mechanism) == ("exact", "ladder")
    assert first.error_std == first.bias_std == 0
    assert first.note == "slow: 1 of 2 repetitions"


@pytest.mark.parametrize(
    ("n", "k", "hard"), [(11, 8, 6), (12, 7, 6), (13, 21, 7), (1_000, 99, 500)]
)
def test_the_exact_curve_counts_the_guesses_and_not_the_vote(n, k, hard):
    expected = (0.5 - lb.majority_attack_moments(hard, k - 1).mean) * hard / n
    assert exact_bias(n, k) == pytest.approx(expected, rel=1e-14)


# A normal mean is five standard errors off once in 1.7 million runs; the seeds are fixed.
@pytest.mark.parametrize(
    ("easy", "n", "questions"),
    [
        (0.0, 6, 7),  # six guesses: votes are tied, and so are scores with chance
        (0.0, 5, 8),
        (0.5, 12, 7),
        (0.5, 11, 6),
    ],
)
def test_the_majority_attack_on_exact_scores_has_the_exact_mean(easy, n, questions):
    games = 1_500
    attack = MajorityAttack(easy=easy)
    hard = n - int(easy * n)
    mean, std = lb.majority_attack_moments(hard, questions - 1)
    played = [
        attack.play_against(lb.Exact(), n=n, questions=questions, seed=seed).bias
        for seed in range(games)
    ]
    error = 0.5 - fmean(played) * n / hard
    assert abs(error - mean) < 5 * std / math.sqrt(games)
