"""A guard with a million questions behind it, beside one with a thousand.

The history is written by the ledger itself, entry by entry, without scoring and drawing.
"""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

import ladderboard as lb
from _timing import median_ratio, report_ratio

if TYPE_CHECKING:
    from pathlib import Path

N, BLOCK = 10_000, 200
YOUNG, OLD = 1_000, int(os.environ.get("BENCH_HISTORY", "1_000_000"))
BATCH = 50_000
SECRET_BYTES = 513


def write_history(guard: lb.Holdout, questions: int) -> None:
    """Append the entries of this many questions, none of which improved, with their keys."""
    book: Any = guard._book  # noqa: SLF001 - no other way writes a history without asking
    value, asked = guard.released, 0
    while asked < questions:
        with book.transaction() as transaction:
            for _ in range(min(BATCH, questions - asked)):
                asked += 1
                fields = {
                    "ladder": 0,
                    "question": asked,
                    "asker": None,
                    "submission": os.urandom(32).hex(),
                    "value": value,
                    "score": None,
                    "improved": False,
                    "secret": os.urandom(32).hex(),
                    "proven": None,
                }
                number = transaction.chain_state.entries
                secret = os.urandom(SECRET_BYTES)
                transaction.append_entry("question", fields, secret, asked=asked)
                transaction.view.add_dedupe_key(os.urandom(32), number)


def time_long_history(folder: Path) -> None:
    """Time questions to both guards, in turn."""
    labels = np.random.default_rng(1).integers(0, 2, N)
    base = labels ^ (np.random.default_rng(3).random(N) < 0.3)
    number = count()
    guards = []
    for questions in (OLD, YOUNG):
        guard = lb.Holdout.create(folder / f"{questions}.db", labels, questions=2 * OLD)
        write_history(guard, questions)
        guards.append(guard)

    def ask(guard: lb.Holdout) -> None:
        for _ in range(BLOCK):
            base[next(number) % N] ^= 1
            guard.ask(base)

    for guard in guards:
        ask(guard)
    ratio, old, young = median_ratio(lambda: ask(guards[0]), lambda: ask(guards[1]), runs=3)
    report_ratio(
        f"Holdout.ask after {OLD:.0e} questions / after {YOUNG:.0e}",
        ratio,
        "at most 1.1",
        detail=f"{1e6 * old / BLOCK:.0f} us / {1e6 * young / BLOCK:.0f} us",
    )
