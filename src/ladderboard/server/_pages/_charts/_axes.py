"""Axes of numbers and of times: ranges, round ticks, and how axes are drawn."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from markupsafe import Markup

from ladderboard.server._pages._charts._svg import (
    coord,
    draw_text,
    tag,
    text_width,
    truncate_to_width,
)

_HUGE = 1e300  # keeps the difference of two values finite
_TOLERANCE = 1e-9
_LOG_STEPS: tuple[tuple[int, ...], ...] = ((1, 2, 5), (1, 3))  # multiples of a power of ten
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_MONDAY = 4 * _DAY  # the first Monday of 1970
_LATEST_TIME = 253_370_764_800  # in the year 9999, the last one datetime knows
_LABEL_SPACING = 18.0
_CLOCK_LABELS = "{0:%H:%M}", "{0.day} {0:%b %Y}"
_GAP = 8.0


class Range(NamedTuple):
    """The ends of an axis; ``high`` is above ``low``."""

    low: float
    high: float

    def fraction(self, value: float) -> float:
        """Return where a value lies in the range, from 0 to 1; values outside are clamped."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


class Tick(NamedTuple):
    """A tick of an axis with its label; ``context`` is a second line below it."""

    value: float
    label: str
    context: str = ""


def padded_range(values: Iterable[float], *, margin: float = 0.06) -> Range:
    """Return a range around values with a margin, also when all values are equal.

    The margin does not extend values between 0 and 1 beyond these, nor positive values below 0.

    >>> padded_range([0.0, 1.0])
    Range(low=0.0, high=1.0)
    >>> padded_range([5.0, 5.0])
    Range(low=4.5, high=5.5)
    """
    clamped = [min(max(float(value), -_HUGE), _HUGE) for value in values]
    low, high = min(clamped), max(clamped)
    magnitude = max(abs(low), abs(high))
    all_equal = high - low <= _TOLERANCE * magnitude or high - low < 1 / _HUGE
    padding = (
        (0.1 * magnitude if magnitude > 1 / _HUGE else 1.0) if all_equal else margin * (high - low)
    )
    lower, upper = low - padding, high + padding
    if low >= 0:
        lower = max(lower, 0.0)
        if high <= 1:
            upper = min(upper, 1.0)
    return Range(lower, upper)


def _tick_step(span: float, max_steps: int) -> float:
    """Return the smallest of 1, 2, 5, 10, ... that divides a span into at most ``max_steps``."""
    rough = span / max(max_steps, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(
        (power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - _TOLERANCE)),
        10 * power,
    )


def number_ticks(range_: Range, max_ticks: int) -> list[Tick]:
    """Return ticks at round numbers, about ``max_ticks`` at most.

    >>> [tick.label for tick in number_ticks(Range(0.11, 0.42), 4)]
    ['0.2', '0.3', '0.4']
    """
    step = _tick_step(range_.high - range_.low, max_ticks)
    first = math.ceil(range_.low / step - _TOLERANCE)
    last = math.floor(range_.high / step + _TOLERANCE)
    values = [index * step for index in range(first, min(last, first + max_ticks) + 1)]
    return [Tick(value, _number_label(value, step)) for value in values]


def _number_label(value: float, step: float) -> str:
    large = max(abs(value), step)
    if large >= 1e7 or step < 1e-6:
        digits = max(round(math.log10(large / step)) + 1, 1)
        return f"{value:.{min(digits, 12)}g}"
    decimals = max(-math.floor(math.log10(step) + _TOLERANCE), 0)
    return f"{value + 0.0:,.{decimals}f}"


def log_ticks(range_: Range, max_ticks: int) -> list[Tick]:
    """Return ticks at round numbers for a range of base-10 logarithms."""
    span = range_.high - range_.low
    factors = next((factors for factors in _LOG_STEPS if span * len(factors) <= max_ticks), (1,))
    power_step = max(math.ceil(span / max(max_ticks, 1)), 1)
    ticks = [
        Tick(position, format_number(10.0**power * factor))
        for power in range(math.floor(range_.low), math.ceil(range_.high) + 1)
        if power % power_step == 0 and power < 308
        for factor in factors
        if range_.low - _TOLERANCE
        <= (position := power + math.log10(factor))
        <= range_.high + _TOLERANCE
    ]
    return ticks or [Tick(range_.low, format_number(10.0 ** min(range_.low, 308)))]


def format_number(value: float, digits: int = 4) -> str:
    """Return a number with four significant digits, whole numbers in full.

    >>> format_number(1000), format_number(0.25), format_number(1 / 3), format_number(2.5e9)
    ('1,000', '0.25', '0.3333', '2.5e+09')
    """
    if value == round(value) and abs(value) < 1e7:
        return f"{value + 0.0:,.0f}"
    return f"{value:.{digits}g}"


class _TimeStep(NamedTuple):
    """The distance between ticks, in seconds or months, and the format of their labels."""

    seconds: int
    months: int
    label: str
    context: str


_TIME_STEPS = (
    *(
        _TimeStep(seconds, 0, "{0:%H:%M:%S}", "{0.day} {0:%b %Y}")
        for seconds in (1, 2, 5, 10, 15, 30)
    ),
    *(_TimeStep(minutes * _MINUTE, 0, *_CLOCK_LABELS) for minutes in (1, 2, 5, 10, 15, 30)),
    *(_TimeStep(hours * _HOUR, 0, *_CLOCK_LABELS) for hours in (1, 2, 3, 6, 12)),
    *(_TimeStep(days * _DAY, 0, "{0.day} {0:%b}", "{0.year}") for days in (1, 2, 4, 7, 14)),
    *(_TimeStep(0, months, "{0:%b}", "{0.year}") for months in (1, 2, 3, 6)),
    *(_TimeStep(0, 12 * years, "{0.year}", "") for years in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(_TimeStep(0, 12 * years, "{0.year}", "") for years in (1000, 2000, 5000)),
)


def _clamp_time(time: float) -> int:
    return int(min(max(time, 0), _LATEST_TIME))


def _utc_datetime(time: float) -> datetime:
    return datetime.fromtimestamp(_clamp_time(time), UTC)


def format_minute(time: float) -> str:
    """Return a time in UTC, to the minute.

    >>> format_minute(1_800_000_000)
    '15 Jan 2027, 08:00 UTC'
    """
    date = _utc_datetime(time)
    return f"{date.day} {date:%b} {date.year}, {date:%H:%M} UTC"


def format_day(time: float) -> str:
    """Return the day of a time in UTC."""
    date = _utc_datetime(time)
    return f"{date.day} {date:%b} {date.year}"


def time_range(first: float, last: float) -> Range:
    """Return a range of time that is at least one minute long."""
    low, high = sorted((_clamp_time(first), _clamp_time(last)))
    return Range(low, max(high, low + _MINUTE))


def time_ticks(range_: Range, width: float) -> list[Tick]:
    """Return as many ticks as fit into a width."""
    ticks: list[Tick] = []
    for step in _TIME_STEPS:
        label_width = text_width(_time_label(step.label, range_.low)) + _LABEL_SPACING
        span = range_.high - range_.low
        if span / (step.seconds or step.months * 30.4 * _DAY) * label_width > width:
            continue
        ticks = _make_time_ticks(step, range_)
        if ticks:
            break
    return ticks or [Tick(range_.low, format_day(range_.low))]


def _time_label(form: str, time: float) -> str:
    return form.format(_utc_datetime(time))


def _make_time_ticks(step: _TimeStep, range_: Range) -> list[Tick]:
    ticks, previous = [], ""
    for time in _tick_times(step, range_):
        context = _time_label(step.context, time)
        ticks.append(
            Tick(time, _time_label(step.label, time), "" if context == previous else context)
        )
        previous = context
    return ticks


def _tick_times(step: _TimeStep, range_: Range) -> list[int]:
    low, high = int(range_.low), int(range_.high)
    if step.seconds:
        offset = _MONDAY if step.seconds % (7 * _DAY) == 0 else 0
        first = low + (offset - low) % step.seconds
        return list(range(first, high + 1, step.seconds))
    start, end = _utc_datetime(low), _utc_datetime(high)
    months = range(
        (start.year * 12 + start.month - 1) // step.months * step.months,
        end.year * 12 + end.month,
        step.months,
    )
    times = [
        int(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp())
        for month in months
        if month >= 12
    ]
    return [time for time in times if low <= time <= high]


class PlotArea(NamedTuple):
    """The rectangle of a plot, and the ranges that it shows."""

    left: float
    top: float
    right: float
    bottom: float
    xs: Range
    ys: Range

    def x(self, value: float) -> float:
        """Return the x coordinate of a value."""
        return self.left + self.xs.fraction(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the y coordinate of a value; larger values are higher up."""
        return self.bottom - self.ys.fraction(value) * (self.bottom - self.top)


def draw_title(title: str, width: float) -> Markup:
    """Return the title of the left axis, written horizontally above the plot."""
    return draw_text(truncate_to_width(title, width), 0, 13, class_="heading")


def left_axis_width(ticks: Sequence[Tick]) -> float:
    """Return the width of the labels of a left axis."""
    return max((text_width(tick.label) for tick in ticks), default=0.0) + _GAP


def draw_left_axis(area: PlotArea, ticks: Sequence[Tick]) -> Markup:
    """Return a left axis: labels and grid lines."""
    lines = "".join(
        f"M{coord(area.left)} {coord(area.y(tick.value))}H{coord(area.right)}" for tick in ticks
    )
    labels = [
        draw_text(tick.label, area.left - _GAP, area.y(tick.value) + 4.5, anchor="end")
        for tick in ticks
    ]
    return tag("g", tag("path", d=lines or "M0 0", class_="chart-grid"), *labels)


def draw_bottom_axis(
    area: PlotArea, ticks: Sequence[Tick], width: float, title: str = ""
) -> Markup:
    """Return a bottom axis: a line, ticks, labels, and a second line of labels or a title."""
    line = f"M{coord(area.left)} {coord(area.bottom)}H{coord(area.right)}"
    labels, contexts = [], list[tuple[float, str]]()
    end = 0.0
    for tick in ticks:
        x, half_width = area.x(tick.value), text_width(tick.label) / 2
        line += f"M{coord(x)} {coord(area.bottom)}V{coord(area.bottom + 4)}"
        x = min(max(x, half_width), width - half_width)
        if x - half_width >= end:
            labels.append(draw_text(tick.label, x, area.bottom + 18, anchor="middle"))
            end = x + half_width + 4
        if tick.context:
            half_context = text_width(tick.context) / 2
            x = min(max(x, half_context), width - half_context)
            # Of two labels that overlap keep the later one: it is valid for more of the axis.
            if (
                contexts
                and contexts[-1][0] + text_width(contexts[-1][1]) / 2 + _GAP > x - half_context
            ):
                contexts.pop()
            contexts.append((x, tick.context))
    labels += [draw_text(context, x, area.bottom + 34, anchor="middle") for x, context in contexts]
    if title:
        labels.append(
            draw_text(
                truncate_to_width(title, area.right),
                area.right,
                area.bottom + 36,
                anchor="end",
                class_="heading",
            )
        )
    return tag("g", tag("path", d=line, class_="chart-axis-line"), *labels)
