"""Searching whole numbers: the least that will do, the most that will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LARGEST", "least", "most"]

LARGEST = 10**15


def least(does: Callable[[int], bool]) -> int | None:
    """Return the least number that will do, if all above it will too; None beyond 10^15.

    >>> least(lambda x: x * x >= 50)
    8
    """
    high = 1
    while not does(high):
        if high == LARGEST:
            return None
        high = min(2 * high, LARGEST)
    return _border(does, high, high // 2)


def most(does: Callable[[int], bool], first: int = 1) -> int:
    """Return the largest number that will do, if all from the first to it will too; 0 if none.

    10^15 at most.

    >>> most(lambda x: x * x <= 50)
    7
    """
    if does(LARGEST):
        return LARGEST
    if not does(first):
        return 0
    low, high = first, min(2 * first, LARGEST)
    while does(high):
        low, high = high, min(2 * high, LARGEST)
    return _border(does, low, high)


def _border(does: Callable[[int], bool], good: int, bad: int) -> int:
    """Return the last number that will do on the way from one that does to one that does not."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if does(middle) else (good, middle)
    return good
