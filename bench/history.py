"""The cost of a submission against the length of a board's history, on SQLite and PostgreSQL.

Two boards have the same teams: one had a thousand submissions, the other a million, written
directly to the database (bench/_large_board.py). Both then get new submissions in turn, in this
process: scored, answered and committed as on a server. The ratios were 0.98 on SQLite and 0.98 on
PostgreSQL.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from _large_board import create_large_board
from _timing import report_ratio
from ladderboard.board import Caller, IncomingSubmission, Role, open_boards
from ladderboard.holdout import AlignedPredictions

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from support.postgres import PostgresServer  # noqa: E402 - after its folder is added

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board import Boards

N, TEAMS, SHORT, LONG = 2_000, 100, 1_000, 1_000_000
COUNT, ROUNDS = 40, 5


def submitter(boards: Boards, slug: str) -> Callable[[np.ndarray], None]:
    """Return a function that sends predictions to a board as a new team."""
    board = boards.open(slug)
    team = board.teams.register_or_create(Caller(Role.ORGANISER), "New team")
    caller = boards.caller_by_token(team.token, slug)

    def submit(predictions: np.ndarray) -> None:
        aligned = AlignedPredictions.from_values(predictions)
        incoming = IncomingSubmission(submission=aligned, received=boards.environment.clock())
        board.submit(caller, incoming)

    return submit


def compare(name: str, database: str, folder: Path, history: int) -> None:
    """Print the ratio of the times of a submission after a long and after a short history."""
    for slug, submissions in (("short", SHORT), ("long", history)):
        create_large_board(
            folder / slug, slug, teams=TEAMS, submissions=submissions, n=N, database=database
        )
    boards = open_boards(database)
    sides = [submitter(boards, slug) for slug in ("short", "long")]
    rng = np.random.default_rng(0)
    seconds: list[list[float]] = []
    for index in range(ROUNDS + 1):
        times: list[list[float]] = [[], []]
        for _ in range(COUNT):
            for side, submit in enumerate(sides):
                predictions = rng.integers(2, size=N)
                start = perf_counter()
                submit(predictions)
                times[side].append(perf_counter() - start)
        if index:  # the first round is slower
            seconds.append([median(side) for side in times])
    boards.close()
    short, long = (median(pair[side] for pair in seconds) for side in (0, 1))
    report_ratio(
        f"a submission after {history:,} / after {SHORT:,}, {name}",
        median(pair[1] / pair[0] for pair in seconds),
        "at most 1.1",
        detail=f"{1e3 * long:.2f} ms / {1e3 * short:.2f} ms",
    )


def main(history: int) -> None:
    """Measure both databases."""
    # In the repository: a temporary directory may be in memory rather than on a disk.
    with tempfile.TemporaryDirectory(dir=ROOT) as temporary:
        folder = Path(temporary)
        for name in ("sqlite", "postgres"):
            (folder / name).mkdir()
        compare("SQLite", str(folder / "boards.db"), folder / "sqlite", history)
        postgres = PostgresServer()
        try:
            compare("PostgreSQL", postgres.socket_url(), folder / "postgres", history)
        finally:
            postgres.stop()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--history", type=int, default=LONG)
    arguments.add_argument("--quick", action="store_true", help="a tenth of the history")
    options = arguments.parse_args()
    main(options.history // (10 if options.quick else 1))
