"""Rank ranges: right for all teams at once, and shorter than those of separate intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from ladderboard.bounds import fresh_sample_interval, rank_ranges
from ladderboard.errors import InvalidSetting


class Board(NamedTuple):
    """A simulated board: the true errors of the teams, and the errors of their models."""

    risks: np.ndarray
    losses: np.ndarray


def simulate_board(rng: np.random.Generator, *, n: int, spread: float, ties: bool) -> Board:
    """Draw teams whose errors on an example have a correlation of 0.8 (for equal risks)."""
    risks = rng.uniform(0.1, 0.1 + spread, int(rng.integers(3, 41)))
    if ties:
        risks = np.round(risks / 0.02) * 0.02
    shape = (len(risks), n)
    shared = rng.random(shape) < np.sqrt(0.8)
    luck = np.where(shared, rng.random(n), rng.random(shape))
    return Board(risks, (luck < risks[:, None]).astype(float))


def all_right(board: Board) -> bool:
    risks = board.risks
    best = 1 + (risks[:, None] < risks).sum(axis=0)
    worst = (risks[:, None] <= risks).sum(axis=0)
    return all(
        team.best <= low and high <= team.worst
        for team, low, high in zip(rank_ranges(board.losses), best, worst, strict=True)
    )


def mean_width(board: Board) -> float:
    return float(np.mean([team.worst - team.best for team in rank_ranges(board.losses)]))


def separate_width(board: Board) -> float:
    """Return the mean width of the ranges from intervals that hold for each team by itself."""
    teams, n = board.losses.shape
    intervals = np.array(
        [fresh_sample_interval(n, risk, models=teams, beta=0.05) for risk in board.losses.mean(1)]
    )
    apart = intervals[:, 1][:, None] < intervals[:, 0]
    return float((teams - apart.sum(axis=1) - 1 - apart.sum(axis=0)).mean())


def draw_boards(count: int, *, seed: int, n: int, spread: float) -> list[Board]:
    rng = np.random.default_rng(seed)
    return [simulate_board(rng, n=n, spread=spread, ties=i % 2 == 0) for i in range(count)]


def test_ranges_are_right_and_half_as_wide() -> None:
    boards = draw_boards(20, seed=11, n=2_000, spread=0.1)
    # If one board in twenty were wrong, 5 or more of 20 would be with probability 0.3%.
    assert sum(map(all_right, boards)) >= 20 - 4
    assert sum(map(mean_width, boards)) <= 0.5 * sum(map(separate_width, boards))


def test_equal_teams_are_rarely_told_apart() -> None:
    """Here every claim would be false. At a rate of 5%, this fails with probability 0.4%."""
    rng = np.random.default_rng(3)
    boards = [simulate_board(rng, n=400, spread=0.0, ties=False) for _ in range(50)]
    assert sum(map(all_right, boards)) >= 50 - 7


@pytest.mark.slow
def test_ranges_are_right_on_many_boards() -> None:
    """At least 95% of 500 boards each, and half as wide over all 2,000."""
    widths, separate_widths = [], []
    for n, spread in ((500, 0.2), (2_000, 0.1), (2_000, 0.2), (5_000, 0.1)):
        boards = draw_boards(500, seed=2_026, n=n, spread=spread)
        coverage = np.mean([all_right(board) for board in boards])
        assert coverage >= 0.95, (n, spread, coverage)
        widths.append(sum(map(mean_width, boards)))
        separate_widths.append(sum(map(separate_width, boards)))
        assert widths[-1] <= 0.52 * separate_widths[-1], (n, spread)
    assert sum(widths) <= 0.5 * sum(separate_widths)


@pytest.mark.slow
def test_equal_teams_are_told_apart_at_most_once_in_twenty() -> None:
    """At a true rate of 5%, 2,000 boards exceed 6.3% with probability 0.5%."""
    rng = np.random.default_rng(4)
    boards = [simulate_board(rng, n=400, spread=0.0, ties=False) for _ in range(2_000)]
    assert np.mean([all_right(board) for board in boards]) >= 1 - 0.063


def test_a_team_counts_by_its_best_model() -> None:
    rng = np.random.default_rng(0)
    losses = rng.random((4, 3_000)) < np.array([[0.4], [0.2], [0.3], [0.1]])
    separate = rank_ranges(losses)
    assert [team.best for team in separate] == [4, 2, 3, 1]
    pairs = rank_ranges(losses, teams=[0, 1, 1, 0])
    assert [tuple(team) for team in pairs] == [(1, 1, 1), (2, 2, 2)]


def test_equal_models_share_a_band_and_constant_differences_count() -> None:
    same = np.tile(np.arange(40) % 2, (3, 1))
    assert {tuple(team) for team in rank_ranges(same)} == {(1, 3, 1)}
    apart = np.array([np.zeros(40), np.ones(40)])
    assert [tuple(team) for team in rank_ranges(apart)] == [(1, 1, 1), (2, 2, 2)]
    # Four examples are too few to tell anything.
    assert [tuple(team) for team in rank_ranges(apart[:, :4])] == [(1, 2, 1), (1, 2, 1)]


def test_one_model_and_the_same_seed() -> None:
    assert [tuple(team) for team in rank_ranges([[0.5, 0.5]])] == [(1, 1, 1)]
    board = simulate_board(np.random.default_rng(5), n=300, spread=0.1, ties=False)
    assert rank_ranges(board.losses, seed=3) == rank_ranges(board.losses, seed=3)


def test_tiny_losses_are_compared_as_large_ones_are() -> None:
    board = simulate_board(np.random.default_rng(6), n=500, spread=0.2, ties=False)
    assert rank_ranges(board.losses * 1e-7) == rank_ranges(board.losses)


@pytest.mark.parametrize(
    ("losses", "teams"),
    [([0.5, 0.5], None), ([[]], None), ([[float("nan")]], None), ([[0.1], [0.2]], [0, 2])],
)
def test_bad_input_is_refused(losses: object, teams: list[int] | None) -> None:
    with pytest.raises(InvalidSetting):
        rank_ranges(losses, teams=teams)  # type: ignore[arg-type]
