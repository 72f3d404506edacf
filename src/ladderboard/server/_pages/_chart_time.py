"""Ticks of time, in UTC: from seconds to centuries."""

from datetime import UTC, datetime
from typing import NamedTuple

from ladderboard.server._pages._chart_svg import width_of
from ladderboard.server._pages._chart_ticks import Range, Tick

__all__ = ["day_of", "minute_of", "time_range", "time_ticks"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_MONDAY = 4 * _DAY  # the first one after 1970 began
_LAST = 253_370_764_800  # the year 9999, which has no end here
_APART = 18.0


class _Step(NamedTuple):
    """How far ticks are apart, in seconds or months, and how they are written."""

    seconds: int
    months: int
    label: str
    context: str


_CLOCK = "{0:%H:%M}", "{0.day} {0:%b %Y}"
_STEPS = (
    *(_Step(each, 0, "{0:%H:%M:%S}", "{0.day} {0:%b %Y}") for each in (1, 2, 5, 10, 15, 30)),
    *(_Step(each * _MINUTE, 0, *_CLOCK) for each in (1, 2, 5, 10, 15, 30)),
    *(_Step(each * _HOUR, 0, *_CLOCK) for each in (1, 2, 3, 6, 12)),
    *(_Step(each * _DAY, 0, "{0.day} {0:%b}", "{0.year}") for each in (1, 2, 4, 7, 14)),
    *(_Step(0, each, "{0:%b}", "{0.year}") for each in (1, 2, 3, 6)),
    *(_Step(0, 12 * each, "{0.year}", "") for each in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(_Step(0, 12 * each, "{0.year}", "") for each in (1000, 2000, 5000)),
)


def _held(time: float) -> int:
    return int(min(max(time, 0), _LAST))


def _date(time: float) -> datetime:
    return datetime.fromtimestamp(_held(time), UTC)


def minute_of(time: float) -> str:
    """Return a time as people are told it.

    >>> minute_of(1_800_000_000)
    '15 Jan 2027, 08:00 UTC'
    """
    date = _date(time)
    return f"{date.day} {date:%b} {date.year}, {date:%H:%M} UTC"


def day_of(time: float) -> str:
    """Return a day as people are told it."""
    date = _date(time)
    return f"{date.day} {date:%b} {date.year}"


def time_range(first: float, last: float) -> Range:
    """Return a range of time, of a minute at least."""
    low, high = sorted((_held(first), _held(last)))
    return Range(low, max(high, low + _MINUTE))


def time_ticks(range_: Range, width: float) -> list[Tick]:
    """Return as many ticks as have room in so much width, the more the better."""
    found: list[Tick] = []
    for step in _STEPS:
        room = width_of(_label(step.label, range_.low)) + _APART
        span = range_.high - range_.low
        if span / (step.seconds or step.months * 30.4 * _DAY) * room > width:
            continue
        found = _ticks(step, range_)
        if found:
            break
    return found or [Tick(range_.low, day_of(range_.low))]


def _label(form: str, time: float) -> str:
    return form.format(_date(time))


def _ticks(step: _Step, range_: Range) -> list[Tick]:
    found, before = [], ""
    for time in _times(step, range_):
        context = _label(step.context, time)
        found.append(Tick(time, _label(step.label, time), "" if context == before else context))
        before = context
    return found


def _times(step: _Step, range_: Range) -> list[int]:
    low, high = int(range_.low), int(range_.high)
    if step.seconds:
        offset = _MONDAY if step.seconds % (7 * _DAY) == 0 else 0
        first = low + (offset - low) % step.seconds
        return list(range(first, high + 1, step.seconds))
    start, end = _date(low), _date(high)
    months = range(
        (start.year * 12 + start.month - 1) // step.months * step.months,
        end.year * 12 + end.month,
        step.months,
    )
    times = [
        int(datetime(each // 12, each % 12 + 1, 1, tzinfo=UTC).timestamp())
        for each in months
        if each >= 12
    ]
    return [time for time in times if low <= time <= high]
