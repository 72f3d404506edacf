"""A line chart: a few named lines, told apart by dash and mark and not by colour alone."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from ladderboard.server._pages import _chart_axes as axes
from ladderboard.server._pages._chart_svg import (
    FONT,
    Size,
    figure,
    fit,
    number,
    tag,
    text,
    tooltip,
    width_of,
)
from ladderboard.server._pages._chart_ticks import Range, log_ticks, range_of, said, ticks

__all__ = ["Line", "line_chart"]

_LINES = 6
_MARKED = 40
_SAMPLE, _ROW = 30.0, 20.0
_LARGE = 4.0  # half the size of a mark


class Line(NamedTuple):
    """A line with its name."""

    name: str
    points: Sequence[tuple[float, float]]


def line_chart(
    lines: Sequence[Line],
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
    """Return lines over a common axis; None if there is nothing to draw.

    At most six. With ``log_x`` only what is above 0 has a place. With ``zero`` the left axis
    begins there, or reaches it.
    """
    if len(lines) > _LINES:
        raise ValueError(f"There are colours for {_LINES} lines; got {len(lines)}.")
    kept = [_placed(each, log_x=log_x) for each in lines]
    places = [point for each in kept for point in each.points]
    if not places:
        return None
    xs = range_of([x for x, _ in places], margin=0)
    ys = range_of([y for _, y in places] + [0.0] * zero)

    def draw(size: Size) -> tuple[float, Markup]:
        return _draw(size, (xs, ys), kept, (x_title, y_title), log_x=log_x)

    return figure(draw, key=key, title=title, summary=summary, caption=caption)


def _placed(line: Line, *, log_x: bool) -> Line:
    points = sorted(line.points)
    if log_x:
        points = [(math.log10(x), y) for x, y in points if x > 0]
    return Line(line.name, points)


def _draw(
    size: Size,
    ranges: tuple[Range, Range],
    lines: Sequence[Line],
    titles: tuple[str, str],
    *,
    log_x: bool,
) -> tuple[float, Markup]:
    rows = ticks(ranges[1], 5)
    key, below = _legend(lines, size.width)
    height = size.height + below
    area = axes.Area(axes.left_room(rows), 30 + below, size.width - FONT, height - 44, *ranges)
    most = int((area.right - area.left) / 62)
    columns = (log_ticks if log_x else ticks)(area.xs, most)
    drawn = [
        axes.header(titles[1], size.width),
        key,
        axes.left(area, rows),
        axes.bottom(area, columns, size.width, titles[0]),
    ]
    drawn += [_line(area, each, at, log_x=log_x) for at, each in enumerate(lines, 1) if each.points]
    return height, Markup("").join(drawn)


def _line(area: axes.Area, line: Line, which: int, *, log_x: bool) -> Markup:
    places = [(area.x(x), area.y(y)) for x, y in line.points]
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)
    drawn = tag("path", d=path, class_=f"chart-line chart-line-{which}")
    every = -(-len(places) // _MARKED)
    for at in range(0, len(places), every):
        x, y = line.points[at]
        told = f"{line.name}: {said(y)} at {said(10.0 ** min(x, 308) if log_x else x)}"
        drawn += _mark(*places[at], which, told)
    return tag("g", drawn)


def _mark(x: float, y: float, which: int, told: str = "") -> Markup:
    """Return a mark of a shape of its own: disc, square, triangle, lozenge, two crosses."""
    left, right, top, low = (
        number(each) for each in (x - _LARGE, x + _LARGE, y - _LARGE, y + _LARGE)
    )
    at, level = number(x), number(y)
    shape = {
        2: f"M{left} {top}H{right}V{low}H{left}Z",
        3: f"M{at} {top}L{right} {low}H{left}Z",
        4: f"M{at} {top}L{right} {level}L{at} {low}L{left} {level}Z",
        5: f"M{left} {level}H{right}M{at} {top}V{low}",
        6: f"M{left} {top}L{right} {low}M{right} {top}L{left} {low}",
    }.get(which)
    kind = f"chart-mark chart-mark-{which}"
    if shape is None:
        return tag("circle", tooltip(told), cx=x, cy=y, r=_LARGE, class_=kind)
    return tag("path", tooltip(told), d=shape, class_=kind)


def _legend(lines: Sequence[Line], width: float) -> tuple[Markup, float]:
    """Return samples with names, in as many rows as they need, and the height they take."""
    drawn, x, y = Markup(""), 0.0, 34.0
    for which, line in enumerate(lines, 1):
        name = fit(line.name, width - _SAMPLE - 8)
        room = _SAMPLE + 6 + width_of(name)
        if x and x + room > width:
            x, y = 0.0, y + _ROW
        sample = f"M{number(x)} {number(y - 4)}H{number(x + _SAMPLE)}"
        drawn += tag("path", d=sample, class_=f"chart-line chart-line-{which}")
        drawn += _mark(x + _SAMPLE / 2, y - 4, which)
        drawn += text(name, x + _SAMPLE + 6, y, class_="label")
        x += room + 16
    return drawn, y - 34 + _ROW + 2
