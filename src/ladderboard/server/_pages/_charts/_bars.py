"""Bar charts: named amounts, and amounts over time."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from ladderboard.server._pages._charts import _axes as axes
from ladderboard.server._pages._charts._axes import (
    Range,
    format_number,
    number_ticks,
    padded_range,
    time_range,
    time_ticks,
)
from ladderboard.server._pages._charts._svg import (
    ViewBox,
    coord,
    draw_figure,
    draw_text,
    tag,
    text_width,
    tooltip,
    truncate_to_width,
)

_ROW_HEIGHT = 24.0
_NAME_WIDTH = 0.36  # as a part of the width
_MAX_BAR_WIDTH = 60.0


class Bar(NamedTuple):
    """A named amount, 0 or more."""

    name: str
    value: float
    note: str = ""


class Bin(NamedTuple):
    """An amount, 0 or more, in an interval of time."""

    start: float
    end: float
    value: float
    note: str = ""


def bar_chart(
    bars: Sequence[Bar], *, key: str, title: str, summary: str, caption: str = ""
) -> Markup | None:
    """Return horizontal bars with names and amounts; None without bars."""
    if not bars:
        return None
    largest = padded_range([max(bar.value, 0.0) for bar in bars] + [0.0], margin=0).high

    def draw(size: ViewBox) -> tuple[float, Markup]:
        return len(bars) * _ROW_HEIGHT + 4, Markup("").join(
            _draw_bar(size, bar, index * _ROW_HEIGHT, largest) for index, bar in enumerate(bars)
        )

    return draw_figure(draw, key=key, title=title, summary=summary, caption=caption)


def _draw_bar(size: ViewBox, bar: Bar, top: float, largest: float) -> Markup:
    amount = format_number(bar.value)
    left = size.width * _NAME_WIDTH
    longest = size.width - left - text_width(amount, bold=True) - 10
    right = left + longest * Range(0.0, largest).fraction(bar.value)
    return tag(
        "g",
        tooltip(bar.note),
        draw_text(
            truncate_to_width(bar.name, left - 10),
            left - 10,
            top + 17,
            anchor="end",
            class_="label",
        ),
        tag(
            "path",
            d=_rectangle_path(left, top + 4, right, top + _ROW_HEIGHT - 3),
            class_="chart-bar",
        ),
        draw_text(amount, right + 6, top + 17, class_="value"),
    )


def _rectangle_path(left: float, top: float, right: float, low: float) -> str:
    return f"M{coord(left)} {coord(top)}H{coord(right)}V{coord(low)}H{coord(left)}Z"


def histogram(
    bins: Sequence[Bin], *, key: str, title: str, summary: str, y_title: str, caption: str = ""
) -> Markup | None:
    """Return bars over time; None without bins."""
    if not bins:
        return None
    xs = time_range(min(tick.start for tick in bins), max(tick.end for tick in bins))
    ys = Range(0.0, padded_range([0.0, 1.0, *(tick.value for tick in bins)]).high)

    def draw(size: ViewBox) -> tuple[float, Markup]:
        whole_ticks = (tick for tick in number_ticks(ys, 4) if tick.value == round(tick.value))
        rows = [tick._replace(label=format_number(tick.value)) for tick in whole_ticks]
        height = size.height * 0.75
        area = axes.PlotArea(axes.left_axis_width(rows), 30, size.width - 4, height - 42, xs, ys)
        columns = time_ticks(xs, area.right - area.left)
        return height, Markup("").join(
            [
                axes.draw_title(y_title, size.width),
                axes.draw_left_axis(area, rows),
                *(_draw_bin(area, tick) for tick in bins if tick.value > 0),
                axes.draw_bottom_axis(area, columns, size.width),
            ]
        )

    return draw_figure(draw, key=key, title=title, summary=summary, caption=caption)


def _draw_bin(area: axes.PlotArea, bin_: Bin) -> Markup:
    left, right = area.x(bin_.start), area.x(bin_.end)
    half = min((right - left) / 2 - min((right - left) / 6, 1.0), _MAX_BAR_WIDTH / 2)
    middle = (left + right) / 2
    box = _rectangle_path(middle - half, area.y(bin_.value), middle + half, area.bottom)
    return tag("path", tooltip(bin_.note), d=box, class_="chart-bar")
