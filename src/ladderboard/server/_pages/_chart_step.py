"""A step chart: a best over time, with a band around it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from ladderboard.server._pages import _chart_axes as axes
from ladderboard.server._pages._chart_svg import (
    Size,
    dots,
    figure,
    number,
    tag,
    text,
    tooltip,
    width_of,
)
from ladderboard.server._pages._chart_ticks import range_of, ticks
from ladderboard.server._pages._chart_time import time_range, time_ticks

__all__ = ["Mark", "Step", "step_chart"]

_TOLD = 150  # marks with words of their own; of more there are points only
_ROWS = 6


class Step(NamedTuple):
    """From when on a value stood, and between what it was known to lie."""

    time: float
    value: float
    low: float | None = None
    high: float | None = None


class Mark(NamedTuple):
    """Something that happened: ``strong`` where it moved the line; without a value, at the foot."""

    time: float
    value: float | None
    note: str = ""
    strong: bool = True


def step_chart(
    steps: Sequence[Step],
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
    """Return values over time, each of which stands until the next; None if there are none.

    Parameters
    ----------
    steps
        The values. The last one's band is drawn as a bar at the end, the others' as areas.
    marks
        What to mark, on the line or off it.
    key, title, summary, caption
        A word for ids, the name, the whole in words, and what stands below for all to see.
    y_title
        What the values are, and which way is better.
    digits
        Decimals of the last value, which is written at its end.
    until
        Where the line ends: now.
    """
    if not steps:
        return None
    steps = sorted(steps, key=lambda each: each.time)
    times = [each.time for each in steps] + [each.time for each in marks]
    times += [] if until is None else [until]
    xs = time_range(min(times), max(times))
    ends = [end for each in steps for end in (each.low, each.high) if end is not None]
    values = [each.value for each in steps] + [
        each.value for each in marks if each.value is not None
    ]
    ys = range_of(values + ends)

    def draw(size: Size) -> tuple[float, Markup]:
        last = steps[-1].value
        label = f"{last:,.{digits}f}" if abs(last) < 1e6 else f"{last:.4g}"
        rows = ticks(ys, _ROWS)
        area = axes.Area(
            axes.left_room(rows),
            30,
            size.width - width_of(label, bold=True) - 12,
            size.height - 42,
            xs,
            ys,
        )
        return size.height, Markup("").join(
            [
                axes.header(y_title, size.width),
                axes.left(area, rows),
                _band(area, steps),
                axes.bottom(area, time_ticks(xs, area.right - area.left), size.width),
                tag("path", d=_line(area, steps), class_="chart-line chart-line-1"),
                _marks(area, marks),
                text(label, area.right + 9, area.y(last) + 4.5, class_="value"),
            ]
        )

    return figure(draw, key=key, title=title, summary=summary, caption=caption)


def _line(area: axes.Area, steps: Sequence[Step]) -> str:
    first = steps[0]
    path = f"M{number(area.x(first.time))} {number(area.y(first.value))}"
    for each in steps[1:]:
        path += f"H{number(area.x(each.time))}V{number(area.y(each.value))}"
    return f"{path}H{number(area.right)}"


def _band(area: axes.Area, steps: Sequence[Step]) -> Markup:
    """Return an area for every stretch that has a band, and a bar for how it stands at the end."""
    stretches = [*pairwise(steps), (steps[-1], None)]
    boxes = "".join(
        f"M{number(area.x(each.time))} {number(area.y(each.low))}"
        f"H{number(area.right if after is None else area.x(after.time))}"
        f"V{number(area.y(each.high))}H{number(area.x(each.time))}Z"
        for each, after in stretches
        if each.low is not None and each.high is not None
    )
    if not boxes:
        return Markup("")
    drawn = tag("path", d=boxes, class_="chart-band")
    last = steps[-1]
    if last.low is not None and last.high is not None:
        at, low, high = area.right, area.y(last.low), area.y(last.high)
        left, right = number(at - 4), number(at + 4)
        bar = f"M{left} {number(low)}H{right}M{left} {number(high)}H{right}M{number(at)} "
        drawn += tag("path", d=f"{bar}{number(low)}V{number(high)}", class_="chart-bar-end")
    return drawn


def _marks(area: axes.Area, marks: Sequence[Mark]) -> Markup:
    foot = {number(area.x(each.time)) for each in marks if each.value is None}
    placed = [
        ((area.x(each.time), area.y(each.value)), each) for each in marks if each.value is not None
    ]
    strong = [each for each in placed if each[1].strong]
    told = strong[-_TOLD:]
    rest = [place for place, each in placed if not each.strong]
    rest += [place for place, _ in strong[:-_TOLD]]
    drawn = Markup("")
    if foot:
        top, low = number(area.bottom - 7), number(area.bottom - 1)
        rug = "".join(f"M{x} {top}V{low}" for x in sorted(foot, key=float))
        drawn += tag("path", d=rug, class_="chart-rug")
    if rest:
        drawn += tag("path", d=dots(rest), class_="chart-dots")
    for (x, y), each in told:
        drawn += tag("circle", tooltip(each.note), cx=x, cy=y, r=4, class_="chart-dot")
    return drawn
