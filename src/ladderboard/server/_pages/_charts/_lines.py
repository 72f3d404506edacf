"""Line charts: a few named lines, or a step function over time with a band around it."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from ladderboard.server._pages._charts import _axes as axes
from ladderboard.server._pages._charts._axes import (
    Range,
    format_number,
    log_ticks,
    number_ticks,
    padded_range,
    time_range,
    time_ticks,
)
from ladderboard.server._pages._charts._svg import (
    FONT,
    ViewBox,
    coord,
    dots_path,
    draw_figure,
    draw_text,
    tag,
    text_width,
    tooltip,
    truncate_to_width,
)

_MAX_LINES = 6
_MAX_MARKERS = 40
_LEGEND_SAMPLE, _LEGEND_ROW = 30.0, 20.0
_MARKER_RADIUS = 4.0  # half its width
_MAX_TOOLTIPS = 150  # older marks become dots without a tooltip
_MAX_TICKS = 6


class ChartLine(NamedTuple):
    """A line with its name."""

    name: str
    points: Sequence[tuple[float, float]]


def line_chart(
    lines: Sequence[ChartLine],
    *,
    key: str,
    title: str,
    summary: str,
    x_title: str,
    y_title: str,
    log_x: bool = False,
    zero: bool = False,
    caption: str = "",
) -> Markup | None:
    """Return at most six lines in one plot; None if there is nothing to draw.

    ``log_x`` makes the x axis logarithmic and leaves out points at 0 or below; ``zero`` extends the
    y axis to 0.
    """
    if len(lines) > _MAX_LINES:
        raise ValueError(f"There are colours for {_MAX_LINES} lines; got {len(lines)}.")
    scaled = [_scale_line(line, log_x=log_x) for line in lines]
    points = [point for line in scaled for point in line.points]
    if not points:
        return None
    xs = padded_range([x for x, _ in points], margin=0)
    ys = padded_range([y for _, y in points] + [0.0] * zero)

    def draw(size: ViewBox) -> tuple[float, Markup]:
        return _draw_lines(size, (xs, ys), scaled, (x_title, y_title), log_x=log_x)

    return draw_figure(draw, key=key, title=title, summary=summary, caption=caption)


def _scale_line(line: ChartLine, *, log_x: bool) -> ChartLine:
    points = sorted(line.points)
    if log_x:
        points = [(math.log10(x), y) for x, y in points if x > 0]
    return ChartLine(line.name, points)


def _draw_lines(
    size: ViewBox,
    ranges: tuple[Range, Range],
    lines: Sequence[ChartLine],
    titles: tuple[str, str],
    *,
    log_x: bool,
) -> tuple[float, Markup]:
    rows = number_ticks(ranges[1], 5)
    legend, legend_height = _draw_legend(lines, size.width)
    height = size.height + legend_height
    area = axes.PlotArea(
        axes.left_axis_width(rows), 30 + legend_height, size.width - FONT, height - 44, *ranges
    )
    max_ticks = int((area.right - area.left) / 62)
    columns = (log_ticks if log_x else number_ticks)(area.xs, max_ticks)
    elements = [
        axes.draw_title(titles[1], size.width),
        legend,
        axes.draw_left_axis(area, rows),
        axes.draw_bottom_axis(area, columns, size.width, titles[0]),
    ]
    elements += [
        _draw_line(area, line, number, log_x=log_x)
        for number, line in enumerate(lines, 1)
        if line.points
    ]
    return height, Markup("").join(elements)


def _draw_line(area: axes.PlotArea, line: ChartLine, number: int, *, log_x: bool) -> Markup:
    places = [(area.x(x), area.y(y)) for x, y in line.points]
    path = "M" + "L".join(f"{coord(x)} {coord(y)}" for x, y in places)
    elements = tag("path", d=path, class_=f"chart-line chart-line-{number}")
    marker_step = -(-len(places) // _MAX_MARKERS)
    for index in range(0, len(places), marker_step):
        x, y = line.points[index]
        x_value = 10.0 ** min(x, 308) if log_x else x
        note = f"{line.name}: {format_number(y)} at {format_number(x_value)}"
        elements += _draw_marker(*places[index], number, note)
    return tag("g", elements)


def _draw_marker(x: float, y: float, number: int, note: str = "") -> Markup:
    """Return the marker of a line: disc, square, triangle, diamond, plus or cross."""
    left, right, top, bottom = (
        coord(position)
        for position in (
            x - _MARKER_RADIUS,
            x + _MARKER_RADIUS,
            y - _MARKER_RADIUS,
            y + _MARKER_RADIUS,
        )
    )
    middle_x, middle_y = coord(x), coord(y)
    shape = {
        2: f"M{left} {top}H{right}V{bottom}H{left}Z",
        3: f"M{middle_x} {top}L{right} {bottom}H{left}Z",
        4: f"M{middle_x} {top}L{right} {middle_y}L{middle_x} {bottom}L{left} {middle_y}Z",
        5: f"M{left} {middle_y}H{right}M{middle_x} {top}V{bottom}",
        6: f"M{left} {top}L{right} {bottom}M{right} {top}L{left} {bottom}",
    }.get(number)
    css_class = f"chart-mark chart-mark-{number}"
    if shape is None:
        return tag("circle", tooltip(note), cx=x, cy=y, r=_MARKER_RADIUS, class_=css_class)
    return tag("path", tooltip(note), d=shape, class_=css_class)


def _draw_legend(lines: Sequence[ChartLine], width: float) -> tuple[Markup, float]:
    """Return the legend, in as many rows as needed, and its height."""
    elements, x, y = Markup(""), 0.0, 34.0
    for number, line in enumerate(lines, 1):
        name = truncate_to_width(line.name, width - _LEGEND_SAMPLE - 8)
        entry_width = _LEGEND_SAMPLE + 6 + text_width(name)
        if x and x + entry_width > width:
            x, y = 0.0, y + _LEGEND_ROW
        sample = f"M{coord(x)} {coord(y - 4)}H{coord(x + _LEGEND_SAMPLE)}"
        elements += tag("path", d=sample, class_=f"chart-line chart-line-{number}")
        elements += _draw_marker(x + _LEGEND_SAMPLE / 2, y - 4, number)
        elements += draw_text(name, x + _LEGEND_SAMPLE + 6, y, class_="label")
        x += entry_width + 16
    return elements, y - 34 + _LEGEND_ROW + 2


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
    key: str,
    title: str,
    summary: str,
    y_title: str,
    digits: int = 4,
    until: float | None = None,
    caption: str = "",
) -> Markup | None:
    """Return values over time, each valid until the next one; None without values.

    Parameters
    ----------
    steps
        The values. The last one's bounds are drawn as an error bar, the others' as a band.
    marks
        Events to mark, on the line or beside it.
    key, title, summary, caption
        A prefix for ids, the title, a text for screen readers, and the visible caption.
    y_title
        What the values are, and which way is better.
    digits
        Decimals of the last value, which is written beside the line's end.
    until
        The time at which the line ends.
    """
    if not steps:
        return None
    steps = sorted(steps, key=lambda step: step.time)
    times = [step.time for step in steps] + [mark.time for mark in marks]
    times += [] if until is None else [until]
    xs = time_range(min(times), max(times))
    ends = [end for step in steps for end in (step.low, step.high) if end is not None]
    values = [step.value for step in steps] + [
        mark.value for mark in marks if mark.value is not None
    ]
    ys = padded_range(values + ends)

    def draw(size: ViewBox) -> tuple[float, Markup]:
        last = steps[-1].value
        label = f"{last:,.{digits}f}" if abs(last) < 1e6 else f"{last:.4g}"
        rows = number_ticks(ys, _MAX_TICKS)
        area = axes.PlotArea(
            axes.left_axis_width(rows),
            30,
            size.width - text_width(label, bold=True) - 12,
            size.height - 42,
            xs,
            ys,
        )
        return size.height, Markup("").join(
            [
                axes.draw_title(y_title, size.width),
                axes.draw_left_axis(area, rows),
                _draw_band(area, steps),
                axes.draw_bottom_axis(area, time_ticks(xs, area.right - area.left), size.width),
                tag("path", d=_step_path(area, steps), class_="chart-line chart-line-1"),
                _draw_marks(area, marks),
                draw_text(label, area.right + 9, area.y(last) + 4.5, class_="value"),
            ]
        )

    return draw_figure(draw, key=key, title=title, summary=summary, caption=caption)


def _step_path(area: axes.PlotArea, steps: Sequence[ChartStep]) -> str:
    first = steps[0]
    path = f"M{coord(area.x(first.time))} {coord(area.y(first.value))}"
    for step in steps[1:]:
        path += f"H{coord(area.x(step.time))}V{coord(area.y(step.value))}"
    return f"{path}H{coord(area.right)}"


def _draw_band(area: axes.PlotArea, steps: Sequence[ChartStep]) -> Markup:
    """Return a band where bounds are known, and an error bar at the end."""
    intervals = [*pairwise(steps), (steps[-1], None)]
    boxes = "".join(
        f"M{coord(area.x(step.time))} {coord(area.y(step.low))}"
        f"H{coord(area.right if following is None else area.x(following.time))}"
        f"V{coord(area.y(step.high))}H{coord(area.x(step.time))}Z"
        for step, following in intervals
        if step.low is not None and step.high is not None
    )
    if not boxes:
        return Markup("")
    elements = tag("path", d=boxes, class_="chart-band")
    last = steps[-1]
    if last.low is not None and last.high is not None:
        x, low, high = area.right, area.y(last.low), area.y(last.high)
        left, right = coord(x - 4), coord(x + 4)
        bar = f"M{left} {coord(low)}H{right}M{left} {coord(high)}H{right}M{coord(x)} "
        elements += tag("path", d=f"{bar}{coord(low)}V{coord(high)}", class_="chart-bar-end")
    return elements


def _draw_marks(area: axes.PlotArea, marks: Sequence[Mark]) -> Markup:
    rug_xs = {coord(area.x(mark.time)) for mark in marks if mark.value is None}
    positioned = [
        ((area.x(mark.time), area.y(mark.value)), mark) for mark in marks if mark.value is not None
    ]
    large = [mark for mark in positioned if mark[1].large]
    with_tooltip = large[-_MAX_TOOLTIPS:]
    rest = [position for position, mark in positioned if not mark.large]
    rest += [position for position, _ in large[:-_MAX_TOOLTIPS]]
    elements = Markup("")
    if rug_xs:
        top, low = coord(area.bottom - 7), coord(area.bottom - 1)
        rug = "".join(f"M{x} {top}V{low}" for x in sorted(rug_xs, key=float))
        elements += tag("path", d=rug, class_="chart-rug")
    if rest:
        elements += tag("path", d=dots_path(rest), class_="chart-dots")
    for (x, y), mark in with_tooltip:
        elements += tag("circle", tooltip(mark.note), cx=x, cy=y, r=4, class_="chart-dot")
    return elements
