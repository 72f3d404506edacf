"""The guard and the gate: their commands from a cold shell, and both in a process that stays.

Yardsticks, for the commands: a Python that imports what reading and asking may need and ends. That
is numpy, polars, typer and sqlite3 for `guard ask` and `gate check`, though neither loads polars
for a plain CSV file; numpy, httpx and typer for `submit`; numpy and typer for `plan`; typer for
`--help`. For the process: what the same disk gives the standard library's sqlite3 with one row a
commit: as it comes, with SQLite's default journal, and with all settings of a guard's file, a
write-ahead log. Every question is a new one: the same predictions again would be looked up and not
asked.

What was found: of a question to a guard in a process, at 10,000 examples, more than half of the
processor time is the interpreter, a quarter the kernel, a twentieth each SQLite and NumPy (perf).
No part is large, so what helps is to do things once: the key of a question is hashed once, the mark
beside the file is read in the transaction that needs it, the form that boards store is made for
boards only, and a certificate is computed when it is read. While no other connection commits, which
SQLite's data_version tells, nothing is read again: eight statements instead of fourteen. The net
wins that a look requires follow from one tail, from where an approximation has them, in 15 us for
any number of differing predictions; a search with whole tails took 90 to 490 us at 10,000.

A question is looked up, scored and recorded in one transaction, in which nothing but the look-up's
statement is left of what took 25 us before it. Other writers wait while it is scored, so this is
for comparisons of at most 100,000 classes; all else is looked up and scored before the transaction.

A commit of four pages waits 0.19 ms in a log that grows and 0.10 in one that it overwrites, of one
page 0.16 and 0.08 (fdatasync on ext4). So a guard extends its log by a megabyte of zeros at a time,
until SQLite starts it over at 8,000 pages; that takes 1 ms for 50 questions. A bare commit's log
grows. With that, pages matter little, and three ways to write fewer bytes were tried and left: the
secret side in its entry's row saves 6 us, pages of 2 KB and of 1 KB nothing. A sampler without a
call for each trial saves 0.5 us, no garbage collection nothing. A JSON encoder that is made once,
constants and floats encoded without a call, the lock of the pool without its condition and fewer
calls on the way of a draw took 6% of the processor time together.

Classes are compared as bytes and mistakes counted in the mask, so that only reading predictions
sees eight bytes for each; maps of numbers are encoded without a call for each; views have no method
made for each; and a look reads the gate once. A question takes 8% fewer instructions with that, a
look 16%. Whole numbers that are classes become bytes as they are read, which spares four passes
over eight bytes for each; values are encoded by adding bytes, which is faster than joining a list
for so few; and what is hashed around predictions is encoded once for each shape.

What is left beside the commit is 66% interpreter in some 280 calls, none of which takes 5 us by
itself; 17 us for the two openings of the mark, of which one would save 4 but would have to stay
open while a question is scored, when a process may fork; and 20 us for exact noise.

In a cold command imports are the cost: numpy.ma, pydantic, fractions and random are avoided, the
first two of which took as long as half of NumPy; `submit` of a file loads httpx, but neither NumPy,
nor the mechanisms, nor httpx's own command, which takes as long as the rest of httpx.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import ladderboard as lb
from _history import time_long_history
from _load import start_server
from _timing import median_ratio, report_ratio, total_seconds
from ladderboard.ledger._storage._sqlite import _SETTINGS
from server import make_board

if TYPE_CHECKING:
    from collections.abc import Callable

N = 10_000
ROOT = Path(__file__).parents[1]
ROUNDS, COLD_RUNS = 5, 5
BLOCK, BLOCKS = 200, 4
GUARD_IMPORTS = "import numpy, polars, typer, sqlite3"
BARE = {
    "as it comes": ("PRAGMA journal_mode = DELETE", "PRAGMA synchronous = FULL"),
    "same journal": ("PRAGMA journal_mode = WAL", *_SETTINGS),
}


def holdout() -> tuple[np.ndarray, list[str]]:
    """Return labels and ids."""
    labels = np.random.default_rng(1).integers(0, 2, N)
    return labels, [f"img_{index:07d}" for index in range(N)]


def write_predictions(folder: Path, count: int) -> list[Path]:
    """Write files of new predictions, in another order than the holdout's."""
    labels, ids = holdout()
    rng = np.random.default_rng(0)
    paths = []
    for index in range(count):
        wrong = rng.random(N) < 0.3
        frame = pl.DataFrame({"id": ids, "prediction": np.where(wrong, 1 - labels, labels)})
        paths.append(folder / f"{index}.csv")
        frame[rng.permutation(N)].write_csv(paths[-1])
    return paths


def run(*args: str | Path, **variables: str) -> None:
    """Run Python; bytecode is kept, as where the package is installed."""
    unwanted = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    command = [sys.executable, *map(str, args)]
    subprocess.run(command, env=environment | variables, check=True, stdout=subprocess.DEVNULL)


def time_command(
    title: str,
    arguments: Callable[[], list[str | Path]],
    imports: str,
    bound: str,
    **variables: str,
) -> None:
    """Time a command and its imports in turn."""

    def command() -> None:
        run("-m", "ladderboard", *arguments(), **variables)

    def baseline() -> None:
        run("-c", imports)

    command()  # writes the bytecode
    baseline()
    ratio, seconds, fastest = median_ratio(command, baseline, rounds=ROUNDS, runs=COLD_RUNS)
    report_ratio(title, ratio, bound, detail=f"{1e3 * seconds:.0f} ms / {1e3 * fastest:.0f} ms")


def time_cold_start(folder: Path) -> None:
    """Time the commands from a shell."""
    labels, ids = holdout()
    paths = write_predictions(folder, ROUNDS * COLD_RUNS + 2)
    lb.Holdout.create(folder / "cold.db", labels, ids=ids, questions=10**5).close()
    gate = lb.Gate.create(folder / "gate.db", labels, ids=ids, looks=10**4)
    gate.promote(paths.pop())
    gate.close()
    asked, checked, sent = (iter(paths) for _ in range(3))
    time_command(
        f"cold guard ask, n={N:.0e} / its imports",
        lambda: ["guard", "ask", folder / "cold.db", next(asked)],
        GUARD_IMPORTS,
        "at most 1",
    )
    time_command(
        f"cold gate check, n={N:.0e} / its imports",
        lambda: ["gate", "check", folder / "gate.db", next(checked)],
        GUARD_IMPORTS,
        "at most 1",
    )
    (folder / "board").mkdir()
    token = make_board(folder / "board", labels, ids)[0]
    database = folder / "board" / "boards.db"
    serve = ("-m", "ladderboard", "serve", "--port", "0", "--database", database)
    with start_server(*serve) as server:
        time_command(
            f"cold submit, n={N:.0e} / its imports",
            lambda: ["submit", "bench", next(sent)],
            "import numpy, httpx, typer",
            "at most 1",
            LADDERBOARD_URL=f"http://127.0.0.1:{server.port}",
            LADDERBOARD_TOKEN=token,
            XDG_CONFIG_HOME=str(folder),
            XDG_DATA_HOME=str(folder),
        )
    plan = ["plan", "--n", "10000", "--questions", "1000"]
    time_command("plan / its imports", lambda: [*plan], "import numpy, typer", "at most 2")
    time_command(
        "ladderboard --help / import typer", lambda: ["--help"], "import typer", "at most 2"
    )


def bare_commits(path: Path, settings: tuple[str, ...]) -> Callable[[], None]:
    """Return a task that commits one row at a time."""
    database = sqlite3.connect(path, isolation_level=None)
    for setting in settings:
        database.execute(setting)
    database.execute("CREATE TABLE row (number INTEGER PRIMARY KEY, content BLOB)")

    def commit() -> None:
        for _ in range(BLOCK):
            database.execute("INSERT INTO row (content) VALUES (?)", (b"0" * 32,))

    return commit


def time_warm(folder: Path) -> None:
    """Time blocks of questions, of looks and of bare commits, in turn, on one disk."""
    labels, _ = holdout()
    guard = lb.Holdout.create(folder / "warm.db", labels, questions=10**6)
    gate = lb.Gate.create(folder / "warm-gate.db", labels, looks=10**5)
    rng = np.random.default_rng(2)
    base = labels ^ (rng.random(N) < 0.3)
    gate.promote(base)
    number = count()

    def repeat(ask: Callable[..., object]) -> None:
        for _ in range(BLOCK):
            base[next(number) % N] ^= 1  # another model, at no cost
            ask(base)

    tasks: list[Callable[[], None]] = [lambda: repeat(guard.ask), lambda: repeat(gate.check)]
    tasks += [bare_commits(folder / f"{name}.db", settings) for name, settings in BARE.items()]
    for task in tasks:
        task()  # the first ones are slower
    rounds = [total_seconds(*tasks, rounds=BLOCKS) for _ in range(ROUNDS)]
    rates = [BLOCK * BLOCKS / median(column) for column in zip(*rounds, strict=True)]
    for asked, title in enumerate(("Holdout.ask", "Gate.check")):
        for at, name in enumerate(BARE, 2):
            report_ratio(
                f"{title}, n={N:.0e} / bare commits, {name}",
                median(seconds[at] / seconds[asked] for seconds in rounds),
                "at least 0.5",
                detail=f"{rates[asked]:.0f} a second / {rates[at]:.0f}",
            )
    if guard.check() != BLOCK * (ROUNDS * BLOCKS + 1):
        raise SystemExit("questions were lost")


if __name__ == "__main__":
    # In the clone, which is on a disk where a temporary directory may be in memory.
    with tempfile.TemporaryDirectory(dir=ROOT) as temporary:
        time_cold_start(Path(temporary))
        time_warm(Path(temporary))
        time_long_history(Path(temporary))
