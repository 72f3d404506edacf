"""Ticks: round numbers within a range, and how they are written."""

import math
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Range", "Tick", "log_ticks", "range_of", "said", "ticks"]

_HUGE = 1e300  # so that the difference of two is finite
_CLOSE = 1e-9
_PARTS: tuple[tuple[int, ...], ...] = ((1, 2, 5), (1, 3))  # of a power of ten


class Range(NamedTuple):
    """From where to where an axis goes: never nothing."""

    low: float
    high: float

    def part(self, value: float) -> float:
        """Return how far a value lies along it, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


class Tick(NamedTuple):
    """A place on an axis, with what stands there; ``context`` is a second line."""

    value: float
    label: str
    context: str = ""


def range_of(values: Iterable[float], *, margin: float = 0.06) -> Range:
    """Return a range around values, with some room, also where they are all the same.

    What lies within 0 and 1 gets no room beyond them, and what is not negative none below 0.

    >>> range_of([0.0, 1.0])
    Range(low=0.0, high=1.0)
    >>> range_of([5.0, 5.0])
    Range(low=4.5, high=5.5)
    """
    held = [min(max(float(each), -_HUGE), _HUGE) for each in values]
    low, high = min(held), max(held)
    large = max(abs(low), abs(high))
    near = high - low <= _CLOSE * large or high - low < 1 / _HUGE
    room = (0.1 * large if large > 1 / _HUGE else 1.0) if near else margin * (high - low)
    least, most = low - room, high + room
    if low >= 0:
        least = max(least, 0.0)
        if high <= 1:
            most = min(most, 1.0)
    return Range(least, most)


def _step(span: float, most: int) -> float:
    """Return the least of 1, 2, 5, 10, ... that parts a span into no more than so many."""
    rough = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(
        (power * each for each in (1, 2, 5, 10) if power * each >= rough * (1 - _CLOSE)),
        10 * power,
    )


def ticks(range_: Range, most: int) -> list[Tick]:
    """Return at most about so many round numbers within a range.

    >>> [each.label for each in ticks(Range(0.11, 0.42), 4)]
    ['0.2', '0.3', '0.4']
    """
    step = _step(range_.high - range_.low, most)
    first = math.ceil(range_.low / step - _CLOSE)
    last = math.floor(range_.high / step + _CLOSE)
    values = [each * step for each in range(first, min(last, first + most) + 1)]
    return [Tick(value, _label(value, step)) for value in values]


def _label(value: float, step: float) -> str:
    large = max(abs(value), step)
    if large >= 1e7 or step < 1e-6:
        digits = max(round(math.log10(large / step)) + 1, 1)
        return f"{value:.{min(digits, 12)}g}"
    decimals = max(-math.floor(math.log10(step) + _CLOSE), 0)
    return f"{value + 0.0:,.{decimals}f}"


def log_ticks(range_: Range, most: int) -> list[Tick]:
    """Return round numbers for a range of logarithms to the base of ten."""
    span = range_.high - range_.low
    parts = next((each for each in _PARTS if span * len(each) <= most), (1,))
    every = max(math.ceil(span / max(most, 1)), 1)
    found = [
        Tick(at, said(10.0**power * part))
        for power in range(math.floor(range_.low), math.ceil(range_.high) + 1)
        if power % every == 0 and power < 308
        for part in parts
        if range_.low - _CLOSE <= (at := power + math.log10(part)) <= range_.high + _CLOSE
    ]
    return found or [Tick(range_.low, said(10.0 ** min(range_.low, 308)))]


def said(value: float, digits: int = 4) -> str:
    """Return a number in words for people: no more digits than tell something.

    >>> said(1000), said(0.25), said(1 / 3), said(2.5e9)
    ('1,000', '0.25', '0.3333', '2.5e+09')
    """
    if value == round(value) and abs(value) < 1e7:
        return f"{value + 0.0:,.0f}"
    return f"{value:.{digits}g}"
