"""Timing of two tasks in one run, alternately: the ratio of their least times.

For tasks that wait for a disk, the ratio of their total times, pauses included.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def min_seconds(*tasks: Callable[[], object], rounds: int = 7) -> list[float]:
    """Run the tasks in turn, ``rounds`` times over, and return the least seconds of each."""
    fastest = [float("inf")] * len(tasks)
    for _ in range(rounds):
        for index, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            fastest[index] = min(fastest[index], time.perf_counter() - start)
    return fastest


def median_ratio(
    task: Callable[[], object], yardstick: Callable[[], object], *, rounds: int = 5, runs: int = 1
) -> tuple[float, float, float]:
    """Return the median of five ratios of least times, and the median seconds of both tasks.

    In each of ``rounds`` rounds the two run in turn, ``runs`` times each.
    """
    pairs = [min_seconds(task, yardstick, rounds=runs) for _ in range(rounds)]
    ratio = median(first / second for first, second in pairs)
    return ratio, *(median(column) for column in zip(*pairs, strict=True))


def total_seconds(*tasks: Callable[[], object], rounds: int) -> list[float]:
    """As ``min_seconds``, but return the total seconds of each, pauses included."""
    total = [0.0] * len(tasks)
    for _ in range(rounds):
        for index, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            total[index] += time.perf_counter() - start
    return total


def report_ratio(title: str, ratio: float, bound: str, *, detail: str) -> None:
    """Print one line: a title, the ratio, its bound, and the two times."""
    print(f"{title:<52} {ratio:8.2f}   wanted {bound:<12} {detail}")
