"""Bars: so many of each, and so many over time."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from ladderboard.server._pages._charts import _axes as axes
from ladderboard.server._pages._charts._axes import (
    Range,
    range_of,
    said,
    ticks,
    time_range,
    time_ticks,
)
from ladderboard.server._pages._charts._svg import (
    Size,
    figure,
    fit,
    number,
    tag,
    text,
    tooltip,
    width_of,
)

_ROW = 24.0
_NAMES = 0.36  # of the width
_BROAD = 60.0  # the most that a bar takes


class Bar(NamedTuple):
    """A named amount, 0 or more."""

    name: str
    value: float
    note: str = ""


class Bin(NamedTuple):
    """An amount, 0 or more, in a stretch of time."""

    start: float
    end: float
    value: float
    note: str = ""


def bar_chart(
    bars: Sequence[Bar], *, key: str, title: str, summary: str, caption: str = ""
) -> Markup | None:
    """Return bars beside their names, with their amounts; None if there are none."""
    if not bars:
        return None
    most = range_of([max(bar.value, 0.0) for bar in bars] + [0.0], margin=0).high

    def draw(size: Size) -> tuple[float, Markup]:
        return len(bars) * _ROW + 4, Markup("").join(
            _bar(size, each, at * _ROW, most) for at, each in enumerate(bars)
        )

    return figure(draw, key=key, title=title, summary=summary, caption=caption)


def _bar(size: Size, bar: Bar, top: float, most: float) -> Markup:
    amount = said(bar.value)
    left = size.width * _NAMES
    reach = size.width - left - width_of(amount, bold=True) - 10
    right = left + reach * Range(0.0, most).part(bar.value)
    return tag(
        "g",
        tooltip(bar.note),
        text(fit(bar.name, left - 10), left - 10, top + 17, anchor="end", class_="label"),
        tag("path", d=_box(left, top + 4, right, top + _ROW - 3), class_="chart-bar"),
        text(amount, right + 6, top + 17, class_="value"),
    )


def _box(left: float, top: float, right: float, low: float) -> str:
    return f"M{number(left)} {number(top)}H{number(right)}V{number(low)}H{number(left)}Z"


def bin_chart(
    bins: Sequence[Bin], *, key: str, title: str, summary: str, y_title: str, caption: str = ""
) -> Markup | None:
    """Return bars over time; None if there are none."""
    if not bins:
        return None
    xs = time_range(min(each.start for each in bins), max(each.end for each in bins))
    ys = Range(0.0, range_of([0.0, 1.0, *(each.value for each in bins)]).high)

    def draw(size: Size) -> tuple[float, Markup]:
        whole = (tick for tick in ticks(ys, 4) if tick.value == round(tick.value))
        rows = [each._replace(label=said(each.value)) for each in whole]
        height = size.height * 0.75
        area = axes.Area(axes.left_room(rows), 30, size.width - 4, height - 42, xs, ys)
        columns = time_ticks(xs, area.right - area.left)
        return height, Markup("").join(
            [
                axes.header(y_title, size.width),
                axes.left(area, rows),
                *(_bin(area, each) for each in bins if each.value > 0),
                axes.bottom(area, columns, size.width),
            ]
        )

    return figure(draw, key=key, title=title, summary=summary, caption=caption)


def _bin(area: axes.Area, bin_: Bin) -> Markup:
    left, right = area.x(bin_.start), area.x(bin_.end)
    half = min((right - left) / 2 - min((right - left) / 6, 1.0), _BROAD / 2)
    middle = (left + right) / 2
    box = _box(middle - half, area.y(bin_.value), middle + half, area.bottom)
    return tag("path", tooltip(bin_.note), d=box, class_="chart-bar")
