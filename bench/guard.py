"""The guard: `guard ask` from a cold shell, and `Holdout.ask` in a process that stays.

Yardsticks: for the shell, a Python that imports numpy, polars, typer and sqlite3 and ends; for the
process, what the same disk gives the standard library's sqlite3 with one row a commit: as it comes,
with SQLite's default journal, and with the guard's own settings, a write-ahead log.
Every question is a new one: the same predictions again would be looked up and not asked.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl

import ladderboard as lb
from _timing import min_seconds, report_ratio, total_seconds

N = 10_000
ROOT = Path(__file__).parents[1]
COLD_ROUNDS = 25
BLOCK, ROUNDS = 200, 20


def holdout() -> tuple[np.ndarray, list[str]]:
    """Return labels and ids."""
    labels = np.random.default_rng(1).integers(0, 2, N)
    return labels, [f"img_{index:07d}" for index in range(N)]


def time_cold_start(folder: Path) -> None:
    """Time both from a shell, in turn. Bytecode is kept, as where the package is installed."""
    labels, ids = holdout()
    lb.Holdout.create(folder / "cold.db", labels, ids=ids, questions=10**5).close()
    rng = np.random.default_rng(0)
    paths = []
    for index in range(COLD_ROUNDS + 1):
        wrong = rng.random(N) < 0.3
        frame = pl.DataFrame({"id": ids, "prediction": np.where(wrong, 1 - labels, labels)})
        paths.append(folder / f"{index}.csv")
        frame[rng.permutation(N)].write_csv(paths[-1])
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    }
    fresh_paths = iter(paths)

    def run(*args: str | Path) -> None:
        command = [sys.executable, *map(str, args)]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    def ask() -> None:
        run("-m", "ladderboard", "guard", "ask", folder / "cold.db", next(fresh_paths))

    def baseline() -> None:
        run("-c", "import numpy, polars, typer, sqlite3")

    ask()  # writes the bytecode
    baseline()
    ask_seconds, baseline_seconds = min_seconds(ask, baseline, rounds=COLD_ROUNDS)
    report_ratio(
        f"cold guard ask, n={N:.0e} / its imports",
        ask_seconds / baseline_seconds,
        "at most 1.3",
        detail=f"{1e3 * ask_seconds:.0f} ms / {1e3 * baseline_seconds:.0f} ms",
    )


def time_warm(folder: Path) -> None:
    """Time blocks of questions and of bare commits, in turn, on one disk."""
    labels, _ = holdout()
    guard = lb.Holdout.create(folder / "warm.db", labels, questions=10**6)
    rng = np.random.default_rng(2)
    base = labels ^ (rng.random(N) < 0.3)
    number = count()

    def asks() -> None:
        for _ in range(BLOCK):
            base[next(number) % N] ^= 1  # another model, at no cost
            guard.ask(base)

    commits = []
    for name, journal in (("as it comes", "DELETE"), ("write-ahead log", "WAL")):
        database = sqlite3.connect(folder / f"{journal}.db", isolation_level=None)
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE row (number INTEGER PRIMARY KEY, content BLOB)")
        commits.append((name, lambda database=database: _commit(database)))
    asks()  # the first ones are slower
    seconds = total_seconds(asks, *(run for _, run in commits), rounds=ROUNDS)
    asked = BLOCK * ROUNDS
    for (name, _), commit_seconds in zip(commits, seconds[1:], strict=True):
        report_ratio(
            f"Holdout.ask, n={N:.0e} / bare commits, {name}",
            commit_seconds / seconds[0],
            "at least 0.5",
            detail=f"{asked / seconds[0]:.0f} a second / {asked / commit_seconds:.0f}",
        )
    if guard.check() != BLOCK * (ROUNDS + 1):
        raise SystemExit("questions were lost")


def _commit(database: sqlite3.Connection) -> None:
    for _ in range(BLOCK):
        database.execute("INSERT INTO row (content) VALUES (?)", (b"0" * 32,))


if __name__ == "__main__":
    # In the clone, which is on a disk where a temporary directory may be in memory.
    with tempfile.TemporaryDirectory(dir=ROOT) as temporary:
        time_cold_start(Path(temporary))
        time_warm(Path(temporary))
