"""Boards as organisers make them, played by teams: gains show, and finals are the best files."""

import math
import secrets
from dataclasses import dataclass

import numpy as np
import pytest

from ladderboard.board import IncomingSubmission
from ladderboard.holdout import AlignedPredictions

ROWS, PUBLIC = 3_000, 1_828
SUBMISSIONS = 10  # of each team


@dataclass
class Tally:
    """Large gains after a team's first submission, and how far the best shown is off."""

    large_gains: int = 0
    shown_gains: int = 0
    errors: float = 0.0
    teams: int = 0


@pytest.fixture
def board_of(boards, make_folder, monkeypatch):
    """Return a function that creates a board of 1,828 public rows, with a fixed noise key."""
    split = np.where(np.arange(ROWS) < PUBLIC, "public", "private")

    def create(seed, **settings):
        key = np.random.default_rng(seed).bytes(32)
        monkeypatch.setattr(secrets, "token_bytes", lambda _=32: key)
        board = boards.create(make_folder(split=split, mechanism=None, **settings))
        monkeypatch.undo()
        assert board.book.mechanism.name == "growing_ladder"
        return board

    return create


def submit(board, caller, predictions):
    submission = AlignedPredictions.from_values(predictions)
    return board.submit(caller, IncomingSubmission(submission, board.book.environment.clock()))


def standard_error(risk):
    return math.sqrt(risk * (1 - risk) / PUBLIC)


def make_models(rng, labels):
    """Yield predictions of a team: about half of its models improve on its best, by some points."""
    best = rng.uniform(0.25, 0.4)
    for _ in range(SUBMISSIONS):
        change = -rng.exponential(0.05) if rng.random() < 0.5 else rng.exponential(0.02)
        error = min(max(best + change, 0.02), 0.5)
        best = min(best, error)
        yield labels ^ (rng.random(ROWS) < error)


def play(board, join, boards, labels, rng, teams):
    """Let teams submit; return the tally, and each team's best public file."""
    tally, best_files = Tally(), {}
    for number in range(teams):
        caller, _ = join(boards, board, f"Team {number}")
        best, shown = 1.0, 1.0
        for predictions in make_models(rng, labels):
            risk = float((predictions != labels)[:PUBLIC].mean())
            answer = submit(board, caller, predictions)
            shown = answer.release.value
            assert shown < 1  # a number after the first submission
            if best < 1 and best - risk > 6 * standard_error(best):
                tally.large_gains += 1
                tally.shown_gains += answer.release.improved
            if risk < best:
                best, best_files[answer.team] = risk, answer.id
        tally.teams += 1
        tally.errors += abs(shown - best) / standard_error(best)
    return tally, best_files


@pytest.mark.parametrize(
    ("teams", "seeds"), [(4, 1), pytest.param(20, 5, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_gains_show_and_finals_are_the_best_public_files(
    boards, board_of, join, organiser, teams, seeds
):
    """1,000 submissions for 20 invited teams; everything is drawn with fixed seeds."""
    tallies = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, ROWS)
        board = board_of(
            seed, slug=f"board-{seed}", labels=labels, questions="1000", teams="20",
            finals="{selections: 1}",
        )  # fmt: skip
        tally, best_files = play(board, join, boards, labels, rng, teams)
        tallies.append(tally)
        rows = board.closer.close(organiser)["rows"]
        assert {row["team"]["id"]: row["submission"] for row in rows} == best_files
    large_gains, shown_gains, errors, played = (
        sum(getattr(tally, name) for tally in tallies)
        for name in ("large_gains", "shown_gains", "errors", "teams")
    )
    assert large_gains >= played / 2
    assert shown_gains >= 0.9 * large_gains
    assert errors <= 2 * played


def test_errors_of_any_size_show_near_the_truth(boards, board_of, join):
    """RMSE in a range of 600, labels with a standard deviation of 80; five teams."""
    rng = np.random.default_rng(5)
    labels = np.clip(rng.normal(300, 80, ROWS), 0, 600).round(2)
    board = board_of(
        5, labels=labels, loss="{name: rmse, range: [0, 600]}", questions="200", teams="5"
    )
    for number in range(5):
        caller, _ = join(boards, board, f"Team {number}")
        for size in (78, 60, 30, 5):
            predictions = np.clip(labels + rng.normal(0, size, ROWS), 0, 600)
            truth = math.sqrt(np.mean((predictions - labels)[:PUBLIC] ** 2))
            answer = submit(board, caller, predictions).describe()
            assert answer["improved"]
            assert answer["released"] == pytest.approx(truth, rel=0.1)
            gain = answer["visible_gain"]
            assert 0 < gain < size
