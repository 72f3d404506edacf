"""How things are timed: alternately, in one run, least time over least time.

Where a disk is waited for, all time over all time: pauses belong to what is sustained.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["least_times", "say", "whole_times"]


def least_times(*tasks: Callable[[], object], rounds: int = 7) -> list[float]:
    """Run the tasks in turn, ``rounds`` times over, and return the least seconds of each."""
    least = [float("inf")] * len(tasks)
    for _ in range(rounds):
        for at, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            least[at] = min(least[at], time.perf_counter() - start)
    return least


def whole_times(*tasks: Callable[[], object], rounds: int) -> list[float]:
    """As ``least_times``, but return all seconds of each: what is sustained, pauses included."""
    whole = [0.0] * len(tasks)
    for _ in range(rounds):
        for at, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            whole[at] += time.perf_counter() - start
    return whole


def say(what: str, ratio: float, bound: str, *, detail: str) -> None:
    """Print one line: what, the ratio, its bound, and the two times."""
    print(f"{what:<52} {ratio:8.2f}   wanted {bound:<12} {detail}")
