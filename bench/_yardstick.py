"""How things are timed: alternately, in one run, least time over least time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["least_times", "say"]


def least_times(*tasks: Callable[[], object], rounds: int = 7) -> list[float]:
    """Run the tasks in turn, ``rounds`` times over, and return the least seconds of each."""
    least = [float("inf")] * len(tasks)
    for _ in range(rounds):
        for at, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            least[at] = min(least[at], time.perf_counter() - start)
    return least


def say(what: str, ratio: float, bound: str, *, detail: str) -> None:
    """Print one line: what, the ratio, its bound, and the two times."""
    print(f"{what:<52} {ratio:8.2f}   wanted {bound:<12} {detail}")
