"""Charts as SVG: steps over time with an interval, and bars; each described in words.

Functions return None when there is nothing to draw; the page then says so.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import east_asian_width

from markupsafe import Markup, escape

from ladderboard._formatting import (
    format_confidence,
    format_count,
    format_decimals,
    format_fixed,
    format_interval,
    format_rank_range,
    format_time,
    shared_decimals,
)
from ladderboard.server._pages._wording import exact_duration, metric_title, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ladderboard.board import DisplayRules

# Text scales with a drawing, so narrow screens get a drawing of their own; style.css chooses.
_SIZES = {"wide": (720.0, 300.0), "narrow": (340.0, 260.0)}
_HUGE = 1e300  # keeps the difference of two values finite
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_TIME_STEPS = (
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 4, 7, 14, 28, 56)),
    *(quarters * 91 * _DAY for quarters in (1, 2, 4, 8, 20, 40, 80, 200, 400, 800)),
    *(quarters * 91 * _DAY for quarters in (2_000, 4_000, 8_000, 20_000)),
)
_TICK_WIDTH = 64  # of a label and the space beside it
_FIRST_MONDAY = 4 * _DAY  # of 1970; ticks at whole weeks are Mondays
_DATE = "{0:%Y-%m-%d}"
_LATEST_TIME = 253_370_764_800  # in the year 9999, the last one datetime knows
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAX_TOOLTIPS = 150  # older marks become dots without a tooltip
_MAX_TEAMS = 20
_NARROW_LETTERS = frozenset("fijlrt.,:;'|! ")
_NEAR_LEVEL = 0.25  # of the height of a chart: a level this far away is shown
_MAX_RANKED = 40
_LAST_SHARE = 0.03  # of the time shown: at least this much is after the last new best
_UTC_NOTE = "Times are in UTC."


def coord(value: float) -> str:
    """Return a coordinate as text, with at most one decimal.

    >>> coord(12.0), coord(1 / 3), coord(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """Return an element, escaped. In attribute names ``class_`` is class and ``_`` is ``-``.

    >>> tag("text", "a < b", x=1, class_="axis")
    Markup('<text x="1" class="axis">a &lt; b</text>')
    """
    texts = [
        f' {key.rstrip("_").replace("_", "-")}="{_escape(value)}"'
        for key, value in attributes.items()
    ]
    content = "".join([child if type(child) is Markup else _escape(child) for child in children])
    end = f">{content}</{name}>" if content else "/>"
    return Markup(f"<{name}{''.join(texts)}{end}")  # noqa: S704 - escaped above


def _escape(value: str | float) -> str:
    """Return a value as escaped text; characters that XML forbids are replaced."""
    if not isinstance(value, str):
        return coord(value)
    return str(escape(_INVALID_XML.sub("\ufffd", value)))


def _draw_text(
    content: str, x: float, y: float, anchor: str = "start", class_: str = "axis"
) -> Markup:
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=f"chart-{class_}")


def _draw_path(d: str, class_: str, tooltip: str = "") -> Markup:
    title = [tag("title", tooltip)] if tooltip else []
    return tag("path", *title, d=d, class_=class_) if d else Markup("")


def _draw_dot(place: tuple[float, float], tooltip: str) -> Markup:
    return tag("circle", tag("title", tooltip), cx=place[0], cy=place[1], r=4, class_="chart-dot")


def text_width(content: str) -> float:
    """Return the width of a text, about: that in a wide font."""
    return sum(map(_letter_width, content))


def _letter_width(letter: str) -> float:
    if letter in _NARROW_LETTERS:
        return 5.0
    if "a" <= letter <= "z" and letter not in "mw":
        return 7.5
    if letter in "mwMW":
        return 12.0
    return 14.4 if east_asian_width(letter) in "WF" else 9.0


def truncate_to_width(content: str, width: float) -> str:
    """Return a text cut to a width, with an ellipsis if it is cut.

    >>> truncate_to_width("a long name", 54)
    'a long…'
    """
    if text_width(content) <= width:
        return content
    while content and text_width(f"{content}…") > width:
        content = content[:-1]
    return f"{content.rstrip()}…"


def _draw_figure(
    draw: Callable[[float, float], tuple[float, Sequence[Markup]]],
    *,
    key: str,
    title: str,
    summary: str,
    caption: str = "",
) -> Markup:
    """Return a figure with a wide and a narrow drawing.

    ``draw`` takes a width and a height, and returns the height it needs and the elements.
    """
    pictures = []
    for name, size in _SIZES.items():
        height, elements = draw(*size)
        title_id, summary_id = f"{key}-{name}-title", f"{key}-{name}-desc"
        picture = tag(
            "svg",
            tag("title", title, id=title_id),
            tag("desc", summary, id=summary_id),
            *elements,
            class_=f"chart-{name}",
            viewBox=f"0 0 {coord(size[0])} {coord(height)}",
            role="img",
            aria_labelledby=title_id,
            aria_describedby=summary_id,
        )
        pictures.append(picture)
    below = [tag("figcaption", caption)] if caption else []
    return tag("figure", *pictures, *below, class_="chart")


class Range(NamedTuple):
    """The ends of an axis; ``high`` is above ``low``."""

    low: float
    high: float

    def fraction(self, value: float) -> float:
        """Return where a value lies in the range, from 0 to 1; values outside are clamped."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


def padded_range(values: Sequence[float]) -> Range:
    """Return a range around values with a margin, also when all values are equal.

    The margin does not extend values between 0 and 1 beyond these, nor positive values below 0.

    >>> padded_range([0.0, 1.0]), padded_range([5.0, 5.0])
    (Range(low=0.0, high=1.0), Range(low=4.5, high=5.5))
    """
    clamped = [min(max(float(value), -_HUGE), _HUGE) for value in values]
    low, high = min(clamped), max(clamped)
    magnitude = max(abs(low), abs(high))
    padding = 0.06 * (high - low)
    if padding <= 1e-9 * magnitude or padding < 1 / _HUGE:
        padding = 0.1 * magnitude if magnitude > 1 / _HUGE else 1.0
    return Range(
        max(low - padding, 0.0) if low >= 0 else low - padding,
        min(high + padding, 1.0) if low >= 0 and high <= 1 else high + padding,
    )


def number_ticks(range_: Range, max_steps: int) -> dict[float, str]:
    """Return round numbers in a range, in at most this many steps, with their labels.

    >>> list(number_ticks(Range(0.11, 0.42), 4).values())
    ['0.2', '0.3', '0.4']
    """
    rough = (range_.high - range_.low) / max_steps * (1 - 1e-9)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((power * factor for factor in (1, 2, 5) if power * factor >= rough), 10 * power)
    first = math.ceil(range_.low / step - 1e-9)
    last = min(math.floor(range_.high / step + 1e-9), first + max_steps)
    decimals = max(-math.floor(math.log10(step) + 1e-9), 0)
    form = f",.{decimals}f" if abs(range_.high) < 1e7 and decimals < 7 else ".4g"
    return {index * step: f"{index * step:{form}}" for index in range(first, last + 1)}


def format_number(value: float) -> str:
    """Return a number with four significant digits, whole numbers in full.

    >>> format_number(1000), format_number(0.25), format_number(1 / 3), format_number(2.5e9)
    ('1,000', '0.25', '0.3333', '2.5e+09')
    """
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:.4g}"


def _format_utc(time: float, form: str = f"{_DATE} {{0:%H:%M}} UTC") -> str:
    """Return a time in UTC, to the minute unless another form is given.

    >>> _format_utc(1_800_000_000)
    '2027-01-15 08:00 UTC'
    """
    return form.format(datetime.fromtimestamp(min(max(time, 0), _LATEST_TIME), UTC))


def time_range(times: Sequence[float]) -> Range:
    """Return a range of time that is at least one minute long."""
    low, high = (min(max(time, 0.0), _LATEST_TIME) for time in (min(times), max(times)))
    return Range(low, max(high, low + _MINUTE))


def time_ticks(range_: Range, width: float) -> tuple[dict[float, str], str]:
    """Return as many round times as fit into a width, with labels, and the form of their date."""
    span = range_.high - range_.low
    step = next(
        (step for step in _TIME_STEPS if span / step * _TICK_WIDTH <= width), _TIME_STEPS[-1]
    )
    offset = _FIRST_MONDAY if step % (7 * _DAY) == 0 else 0
    first = math.ceil((range_.low - offset) / step) * step + offset
    if step < _DAY:
        form, date_form = "{0:%H:%M}", _DATE
    elif step < 91 * _DAY:
        form, date_form = "{0.day} {0:%b}", "{0.year}"
    else:
        form, date_form = "{0:%b} {0.year}", ""
    times = range(first, math.floor(range_.high) + 1, step)
    return {time: _format_utc(time, form) for time in times}, date_form


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

    def box(self, start: float, end: float, low: float, high: float) -> str:
        """Return the path of a rectangle between two x and two y values."""
        left, right = coord(self.x(start)), coord(self.x(end))
        return f"M{left} {coord(self.y(low))}H{right}V{coord(self.y(high))}H{left}Z"


def _left_width(rows: Mapping[float, str]) -> float:
    return max((text_width(label) for label in rows.values()), default=0.0) + 8


def _draw_left_axis(area: PlotArea, rows: Mapping[float, str], title: str) -> list[Markup]:
    """Return labels, grid lines, and the title, which is written horizontally above the plot."""
    left, right = coord(area.left), coord(area.right)
    grid = "".join(f"M{left} {coord(area.y(value))}H{right}" for value in rows)
    labels = [
        _draw_text(label, area.left - 8, area.y(value) + 4.5, "end")
        for value, label in rows.items()
    ]
    heading = _draw_text(truncate_to_width(title, area.right), 0, 13, class_="heading")
    return [heading, _draw_path(grid, "chart-grid"), *labels]


def _draw_time_axis(area: PlotArea) -> list[Markup]:
    """Return a line with ticks and those labels that fit; the date is below where it changes."""
    ticks, date_form = time_ticks(area.xs, area.right - area.left)
    path, labels, end = f"M{coord(area.left)} {coord(area.bottom)}H{coord(area.right)}", [], 0.0
    written, date_end = "", 0.0
    for time, label in ticks.items():
        x, half = area.x(time), text_width(label) / 2
        path += f"M{coord(x)} {coord(area.bottom)}V{coord(area.bottom + 4)}"
        if x - half >= end:
            labels.append(_draw_text(label, x, area.bottom + 18, "middle"))
            end = x + half + 4
            date = _format_utc(time, date_form)
            center = max(x, text_width(date) / 2)
            if date != written and center - text_width(date) / 2 >= date_end:
                labels.append(_draw_text(date, center, area.bottom + 36, "middle"))
                written, date_end = date, center + text_width(date) / 2 + 4
    return [_draw_path(path, "chart-axis-line"), *labels]


class ChartStep(NamedTuple):
    """A value from a time on, and the bounds on it that were known then."""

    time: float
    value: float
    low: float | None = None
    high: float | None = None


class Mark(NamedTuple):
    """An event to mark: ``large`` if it moved the line; without a value, at the bottom."""

    time: float
    value: float | None
    note: str = ""
    large: bool = True


def step_chart(
    steps: Sequence[ChartStep],
    marks: Sequence[Mark] = (),
    *,
    y_title: str,
    digits: int = 4,
    until: float | None = None,
    levels: Mapping[str, float] | None = None,
    **texts: str,
) -> Markup | None:
    """Return values over time, each valid until the next one; None without values.

    The chart zooms to the values and the last bounds; bounds are drawn as a faint band behind the
    values, and ``levels`` with their names as dashed lines, as far as they are in view. ``digits``
    are the most decimals of the last value, which is written beside the line's end, at the time
    ``until``.
    """
    if not steps:
        return None
    steps = sorted(steps, key=lambda step: step.time)
    times = [step.time for step in steps] + [mark.time for mark in marks]
    xs = time_range([*times, max(times) if until is None else until])
    last = steps[-1]
    ends = [end for end in (last.low, last.high) if end is not None]
    ys = _range_with_levels(all_values(steps, marks), (levels or {}).values(), ends)
    seen = {name: value for name, value in (levels or {}).items() if ys.low < value < ys.high}
    decimals = shared_decimals((step.value for step in steps), digits)
    label = format_fixed(last.value, decimals) if abs(last.value) < 1e6 else f"{last.value:.4g}"
    rows = number_ticks(ys, 6)

    def draw(width: float, height: float) -> tuple[float, list[Markup]]:
        right = width - text_width(label) - 16
        area = PlotArea(_left_width(rows), 30, right, height - 42, xs, ys)
        path = f"M{coord(area.x(steps[0].time))} {coord(area.y(steps[0].value))}"
        for step in steps[1:]:
            path += f"H{coord(area.x(step.time))}V{coord(area.y(step.value))}"
        elements = [
            *_draw_left_axis(area, rows, y_title),
            _draw_bounds(area, steps),
            *_draw_time_axis(area),
            *_draw_levels(area, seen),
            _draw_path(f"{path}H{coord(right)}", "chart-line"),
            *_draw_marks(area, marks),
            _draw_text(label, right + 9, area.y(last.value) + 4.5, class_="value"),
        ]
        return height, elements

    return _draw_figure(draw, **texts)


def all_values(steps: Sequence[ChartStep], marks: Sequence[Mark] = ()) -> list[float]:
    """Return the values that a chart of these steps and marks shows.

    >>> all_values([ChartStep(0, 0.1), ChartStep(5, 0.7)], [Mark(3, None, "Paused")])
    [0.1, 0.7]
    """
    return [step.value for step in steps] + [mark.value for mark in marks if mark.value is not None]


def _range_with_levels(
    values: Sequence[float], levels: Iterable[float], ends: Sequence[float] = ()
) -> Range:
    """Return a range around values and ends of bounds, and around the levels near the values.

    >>> _range_with_levels([0.5, 0.9], [0.96, 0.1]) == padded_range([0.5, 0.96])
    True
    """
    low, high = min(values), max(values)
    margin = _NEAR_LEVEL * (high - low)
    near = [level for level in levels if low - margin <= level <= high + margin]
    return padded_range([*values, *ends, *near])


def _draw_bounds(area: PlotArea, steps: Sequence[ChartStep]) -> Markup:
    """Return a band up to the end, from where bounds are known."""
    end, band = area.xs.high, ""
    for step in reversed(steps):
        if step.low is None or step.high is None:
            break
        band = area.box(step.time, end, step.low, step.high) + band
        end = step.time
    return _draw_path(band, "chart-band")


def _draw_levels(area: PlotArea, levels: Mapping[str, float]) -> list[Markup]:
    """Return dashed lines with their names above them, those that have room."""
    elements: list[Markup] = []
    taken: list[float] = []
    for name, value in levels.items():
        y = area.y(value)
        elements.append(
            _draw_path(f"M{coord(area.left)} {coord(y)}H{coord(area.right)}", "chart-level")
        )
        if all(abs(y - other) > 16 for other in taken) and y - 6 > area.top:
            label = truncate_to_width(name, 0.8 * (area.right - area.left))
            elements.append(_draw_text(label, area.left + 4, y - 5, class_="level-name"))
            taken.append(y)
    return elements


def _draw_marks(area: PlotArea, marks: Sequence[Mark]) -> list[Markup]:
    bottom = coord(area.bottom - 1)
    foot = {coord(area.x(mark.time)): None for mark in marks if mark.value is None}
    placed = [
        ((area.x(mark.time), area.y(mark.value)), mark) for mark in marks if mark.value is not None
    ]
    large = [(place, mark) for place, mark in placed if mark.large]
    small = [place for place, mark in placed if not mark.large]
    small += [place for place, _ in large[:-_MAX_TOOLTIPS]]
    rug = "".join(f"M{x} {coord(area.bottom - 7)}V{bottom}" for x in foot)
    points = dict.fromkeys((coord(x), coord(y)) for x, y in small)
    dots = "".join(f"M{x} {y}H{x}" for x, y in points)  # their caps are round
    return [
        _draw_path(rug, "chart-rug"),
        _draw_path(dots, "chart-dots"),
        *(_draw_dot(place, mark.note) for place, mark in large[-_MAX_TOOLTIPS:]),
    ]


class Bar(NamedTuple):
    """An amount, 0 or more: of a name, or of the time between ``start`` and ``end``."""

    value: float
    note: str
    name: str = ""
    start: float = 0.0
    end: float = 0.0


def bar_chart(bars: Sequence[Bar], **texts: str) -> Markup | None:
    """Return horizontal bars with names and amounts; None without bars."""
    if not bars:
        return None
    xs = Range(0.0, max([1.0, *(bar.value for bar in bars)]))
    widest = max(text_width(format_number(bar.value)) for bar in bars)
    names = max(text_width(bar.name) for bar in bars)

    def draw(width: float, _: float) -> tuple[float, list[Markup]]:
        start = min(names + 14, 0.58 * width)
        area = PlotArea(start, 0, width - widest - 10, 24.0 * len(bars), xs, Range(0, 1))
        elements = []
        for index, bar in enumerate(bars):
            top, left, right = 24.0 * index, coord(area.left), area.x(bar.value)
            path = f"M{left} {coord(top + 4)}H{coord(right)}V{coord(top + 21)}H{left}Z"
            name = truncate_to_width(bar.name, area.left - 10)
            elements += [
                _draw_text(name, area.left - 10, top + 17, "end", class_="label"),
                _draw_path(path, "chart-bar", bar.note),
                _draw_text(format_number(bar.value), right + 6, top + 17, class_="value"),
            ]
        return area.bottom + 4, elements

    return _draw_figure(draw, **texts)


def rank_chart(final: Mapping[str, Any]) -> Markup | None:
    """Return each team's range of ranks, in bands, from :meth:`View.finals`; None without ranges.

    A bar covers the ranks that the data allow, a dot is the rank. Teams of one band, which cannot
    be told apart from the first of them, stand on one background.
    """
    ranked = [row for row in final["rows"] if row.get("ranks") is not None]
    rows = ranked[:_MAX_RANKED]
    if len(rows) < 2:
        return None
    last = max(row["ranks"][1] for row in rows)
    xs = Range(0.5, last + 0.5)
    bands = [row["band"] for row in rows]

    def draw(width: float, _: float) -> tuple[float, list[Markup]]:
        top = 44.0
        area = PlotArea(0.36 * width + 20, top, width - 14, top + 24.0 * len(rows), xs, Range(0, 1))
        ticks = _rank_ticks(last, area.right - area.left)
        elements: list[Markup] = [_draw_text("Possible ranks", area.left, 13, class_="heading")]
        for band in dict.fromkeys(bands):
            first, count = bands.index(band), bands.count(band)
            low, high = top + 24.0 * first + 1, top + 24.0 * (first + count) - 1
            path = f"M0 {coord(low)}H{coord(width)}V{coord(high)}H0Z"
            elements.append(_draw_path(path, "chart-band", f"Band {band}"))
        grid = "".join(
            f"M{coord(area.x(rank))} {coord(top)}V{coord(area.bottom)}" for rank in ticks
        )
        elements.append(_draw_path(grid, "chart-grid"))
        elements += [_draw_text(str(rank), area.x(rank), top - 8, "middle") for rank in ticks]
        for index, row in enumerate(rows):
            elements += _draw_rank_row(row, area, top + 24.0 * index + 12)
        return area.bottom + 4, elements

    together = max(map(bands.count, bands))
    more = len(ranked) - len(rows)
    return _draw_figure(
        draw,
        key="ranks",
        title="Range of ranks of each team",
        summary=f"{format_count(len(rows), 'team')} in {format_count(len(set(bands)), 'band')}; "
        f"the largest has {format_count(together, 'team')}. {_row_name(rows[0])} may have rank "
        f"{format_rank_range(rows[0]['ranks'])}.",
        caption="A bar shows a team's possible ranks (confidence "
        f"{format_confidence(final['beta'])}, for all teams at once), the dot its rank by score. "
        "Teams on one background cannot be told apart from the first of them."
        + (f" {more:,} more teams are in the table." if more > 0 else ""),
    )


def _row_name(row: Mapping[str, Any]) -> str:
    return str(row["team"]["name"] or row["team"]["id"])


def _rank_ticks(last: int, width: float) -> list[int]:
    """Return the ranks to label: 1, and round ones with room for them.

    >>> _rank_ticks(5, 400), _rank_ticks(40, 200)
    ([1, 2, 3, 4, 5], [1, 10, 20, 30, 40])
    """
    step = next(
        (step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500) if last / step * 30 <= width), 1000
    )
    return [1, *(rank for rank in range(step, last + 1, step) if rank > 1)]


def _draw_rank_row(row: Mapping[str, Any], area: PlotArea, middle: float) -> list[Markup]:
    first, last = row["ranks"]
    left, right = area.x(first - 0.4), area.x(last + 0.4)
    path = f"M{coord(left)} {coord(middle - 5)}H{coord(right)}V{coord(middle + 5)}H{coord(left)}Z"
    name = _row_name(row)
    note = f"{name}: rank {row['rank']}, possible ranks {format_rank_range(row['ranks'])}"
    return [
        _draw_text(
            truncate_to_width(name, area.left - 14), area.left - 10, middle + 5, "end", "label"
        ),
        _draw_path(path, "chart-range", note),
        _draw_dot((area.x(row["rank"]), middle), note),
    ]


def histogram(bars: Sequence[Bar], *, y_title: str, **texts: str) -> Markup | None:
    """Return bars over time; None without bars."""
    if not bars:
        return None
    xs = time_range([time for bar in bars for time in (bar.start, bar.end)])
    ys = Range(0.0, 1.06 * max([1.0, *(bar.value for bar in bars)]))
    rows = {value: format_number(value) for value in number_ticks(ys, 4) if value.is_integer()}

    def draw(width: float, height: float) -> tuple[float, list[Markup]]:
        height *= 0.75
        area = PlotArea(_left_width(rows), 30, width - 24, height - 42, xs, ys)
        boxes = []
        for bar in bars:
            gap = min(0.1 * (bar.end - bar.start), 0.002 * (xs.high - xs.low))
            box = area.box(bar.start + gap, bar.end - gap, 0, bar.value)
            boxes += [_draw_path(box, "chart-bar", bar.note)] if bar.value > 0 else []
        return height, [*_draw_left_axis(area, rows, y_title), *boxes, *_draw_time_axis(area)]

    return _draw_figure(draw, **texts)


def mark_wide_bounds(history: Mapping[str, Any], display: DisplayRules) -> dict[str, Any]:
    """Return a history in which bounds that are too wide to act on count as vacuous."""
    points = []
    for point in history["points"]:
        bound = point["bound"]
        wide = not display.is_narrow(bound["display"]["low"], bound["display"]["high"])
        points.append({**point, "bound": {**bound, "vacuous": bound["vacuous"] or wide}})
    return {**history, "points": points}


def history_chart(
    history: Mapping[str, Any],
    baselines: Sequence[Mapping[str, Any]] = (),
    ends: str = "now",
    *,
    public: bool = False,
) -> Markup | None:
    """Return the best score of a board over time, with its bounds, from :meth:`View.history`.

    ``ends`` says in a word or two when its last point was: "now", or "at the close"; ``public`` is
    whether there are other scores, the final ones.

    The chart ends with the last full minute, so it is drawn once in a minute, or with a new best in
    this one. It starts with the first new best of a team; baselines are dashed. A board with fewer
    than two new bests has no chart: a flat line says nothing.
    """
    if len(history["points"]) < 3:  # the last one is now
        return None
    *records, now = history["points"]
    minute = parse_time(now["time"]) // 60 * 60
    end = format_time(max(minute, parse_time(records[-1]["time"])))
    levels = {
        baseline["name"]: baseline["display"]
        for baseline in baselines
        if baseline.get("display") is not None
    }
    levels |= history.get("baselines", {})
    points = [*records, {**now, "time": end}]
    drawn = {"points": points, "levels": levels, "ends": ends, "public": public}
    return _draw_history(json.dumps({**history, **drawn}))


@lru_cache(maxsize=64)
def _draw_history(history_json: str) -> Markup | None:
    history = json.loads(history_json)
    points, display = history["points"], history["display"]
    metric, digits = display["name"], display["digits"]
    steps = _drop_wide_bounds([_history_step(point) for point in points])
    marks = [
        Mark(
            step.time,
            step.value,
            f"{format_decimals(step.value, digits)} on {_format_utc(step.time)}, at "
            f"submission {point['used']:,}{_bound_text(step, digits, '; truly')}",
        )
        for step, point in zip(steps[:-1], points[:-1], strict=True)
    ]
    first, last = steps[0], steps[-1]
    # After a record the bound widens with every submission: the band shows it as it is at the end.
    steps[-2] = steps[-2]._replace(low=last.low, high=last.high)
    # A new best in the last minute has room for its bounds, too.
    until = max(last.time, steps[-2].time + _LAST_SHARE * (last.time - first.time))
    levels = {
        f"{name} {format_decimals(value, digits)}": value
        for name, value in history["levels"].items()
    }
    confidence = f"(confidence {format_confidence(history['beta'])})"
    summary = (
        f"The best {metric} went from {format_decimals(first.value, digits)} on "
        f"{_format_utc(first.time, _DATE)} to {format_decimals(last.value, digits)} in "
        f"{format_count(history['records'], 'new best')}, with "
        f"{format_count(points[-1]['used'], 'submission')} so far."
    )
    caption = "Dots are new bests"
    caption += "; not all are shown." if history["thinned"] else "."
    caption += f" The line ends {history['ends']}, {_format_utc(last.time)}."
    if last.low is not None:
        bounds = _bound_text(last, digits, "")
        summary += f" The true {metric} of the best model so far lies{bounds} {confidence}."
        caption += (
            f" The band shows where the true {metric} of the best model lies: "
            f"{history['ends']}{bounds} {confidence}."
            + (" It starts where it is narrow enough." if steps[0].low is None else "")
        )
    return step_chart(
        steps,
        marks,
        key="history",
        title=f"Best {'public ' * history['public']}{metric} over time",
        summary=summary,
        y_title=f"{metric_title(metric)}, {display['direction']} is better",
        digits=digits,
        until=until,
        levels=levels,
        caption=caption,
    )


def _drop_wide_bounds(steps: Sequence[ChartStep]) -> list[ChartStep]:
    """Remove bounds that are wider than the chart is high: they would say nothing about its values.

    >>> steps = [ChartStep(0, 0.7, 0.6, 0.85), ChartStep(5, 0.8, 0.75, 0.84)]
    >>> [step.low for step in _drop_wide_bounds(steps)]
    [None, 0.75]
    """
    height = (shown := padded_range(all_values(steps))).high - shown.low
    return [
        ChartStep(step.time, step.value)
        if step.low is not None and step.high is not None and step.high - step.low > height
        else step
        for step in steps
    ]


def _history_step(point: Mapping[str, Any]) -> ChartStep:
    bound, time = point["bound"], parse_time(point["time"])
    if bound["vacuous"]:
        return ChartStep(time, point["display"])
    return ChartStep(time, point["display"], bound["display"]["low"], bound["display"]["high"])


def _bound_text(step: ChartStep, digits: int, before: str) -> str:
    if step.low is None or step.high is None:
        return ""
    low, high = format_interval(step.low, step.high, digits)
    return f"{before} between {low} and {high}"


def team_history_chart(history: Mapping[str, Any]) -> Markup | None:
    """Return the scores released to a team over time, from :meth:`View.own_history`."""
    display = history["display"]
    metric, digits = display["name"], display["digits"]
    points = [point for point in history["points"] if point["display"] is not None]
    values = {point[name] for point in points for name in ("display", "shown")} - {None}
    if len(values) < 2:  # a flat line says nothing
        return None
    steps = [ChartStep(parse_time(point["time"]), point["display"]) for point in points]
    marks = [
        Mark(
            step.time,
            step.value if point["improved"] else point["shown"],
            f"Submission {point['number']}: {metric} {format_decimals(step.value, digits)} on "
            f"{_format_utc(step.time)}",
            large=point["improved"],
        )
        for step, point in zip(steps, points, strict=True)
    ]
    improved = sum(point["improved"] for point in points)
    scored = any(point["shown"] is not None for point in points if not point["improved"])
    records = "Large dots" if scored else "Dots"
    others = "small dots" if scored else "ticks on the axis"
    older = "Older ones are left out. " if history["thinned"] else ""
    return step_chart(
        steps,
        marks,
        key="own",
        title=f"{metric_title(metric)} over time",
        summary=f"After {format_count(len(history['points']), 'submission')}, of which "
        f"{improved:,} improved, the score shown is {metric} "
        f"{format_decimals(steps[-1].value, digits)}.",
        y_title=f"{metric_title(metric)}, {display['direction']} is better",
        digits=digits,
        until=None if history["now"] is None else parse_time(history["now"]),
        caption=f"{records} are new bests; {others} are other submissions. {older}{_UTC_NOTE}",
    )


def team_activity_chart(activity: Mapping[str, Any], max_teams: int = _MAX_TEAMS) -> Markup | None:
    """Return the submissions of the most active teams, from :meth:`View.activity`."""
    teams, others = activity["teams"], activity["others"]
    if not teams:
        return None
    questions = sum(team["questions"] for team in teams) + others["questions"]
    bars = [
        Bar(
            team["questions"],
            f"{team['team']['name']}: {format_count(team['questions'], 'submission')}, "
            f"{team['improved']:,} of which improved",
            team["team"]["name"],
        )
        for team in teams[:max_teams]
    ]
    caption, left_out = "", teams[max_teams:]
    if left_out or others["teams"]:  # one bar for all of them would dwarf the others
        left = sum(team["questions"] for team in left_out) + others["questions"]
        caption = (
            f"{format_count(len(left_out) + others['teams'], 'other team')} made "
            f"{format_count(left, 'submission')}."
        )
    return bar_chart(
        bars,
        key="by-team",
        title="Submissions by team",
        summary=f"{format_count(questions, 'submission')} by "
        f"{format_count(len(teams) + others['teams'], 'team')}; "
        f"most by {bars[0].name}, with {bars[0].value:,}.",
        caption=caption,
    )


def activity_histogram(activity: Mapping[str, Any]) -> Markup | None:
    """Return the number of submissions over time, from :meth:`View.activity`."""
    if not activity["bins"]:
        return None
    bars = []
    for bin_ in activity["bins"]:
        start, number = parse_time(bin_["start"]), bin_["questions"]
        note = f"{format_count(number, 'submission')} from {_format_utc(start)}"
        bars.append(Bar(number, note, start=start, end=parse_time(bin_["end"])))
    width = exact_duration(int(bars[0].end - bars[0].start))
    busiest = max(bars, key=lambda bar: bar.value)
    return histogram(
        bars,
        key="by-time",
        title="Submissions over time",
        summary=f"{format_count(activity['questions'], 'submission')} between "
        f"{_format_utc(bars[0].start)} and {_format_utc(bars[-1].end)}; most of them, "
        f"{busiest.value:,}, from {_format_utc(busiest.start)} on.",
        y_title=f"Submissions per {width}",
        caption=_UTC_NOTE,
    )
