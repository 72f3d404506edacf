"""Axes: the room a chart is drawn in, with its lines and labels."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from ladderboard.server._pages._chart_svg import fit, number, tag, text, width_of
from ladderboard.server._pages._chart_ticks import Range, Tick

__all__ = ["Area", "bottom", "header", "left", "left_room"]

_GAP = 8.0


class Area(NamedTuple):
    """Where values are drawn, and which."""

    left: float
    top: float
    right: float
    bottom: float
    xs: Range
    ys: Range

    def x(self, value: float) -> float:
        """Return where a value is along the bottom."""
        return self.left + self.xs.part(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a value is along the left; what is more is higher."""
        return self.bottom - self.ys.part(value) * (self.bottom - self.top)


def header(said: str, width: float) -> Markup:
    """Return what the left axis is about, on top, where it can be read."""
    return text(fit(said, width), 0, 13, class_="heading")


def left_room(marks: Sequence[Tick]) -> float:
    """Return the room that the labels of a left axis take."""
    return max((width_of(each.label) for each in marks), default=0.0) + _GAP


def left(area: Area, marks: Sequence[Tick]) -> Markup:
    """Return a left axis: labels, and lines across."""
    lines = "".join(
        f"M{number(area.left)} {number(area.y(each.value))}H{number(area.right)}" for each in marks
    )
    labels = [
        text(each.label, area.left - _GAP, area.y(each.value) + 4.5, anchor="end") for each in marks
    ]
    return tag("g", tag("path", d=lines or "M0 0", class_="chart-grid"), *labels)


def bottom(area: Area, marks: Sequence[Tick], width: float, title: str = "") -> Markup:
    """Return a bottom axis: a line, ticks, labels, and a second line of labels or a title."""
    line = f"M{number(area.left)} {number(area.bottom)}H{number(area.right)}"
    labels, contexts = [], list[tuple[float, str]]()
    end = 0.0
    for each in marks:
        at, half = area.x(each.value), width_of(each.label) / 2
        line += f"M{number(at)} {number(area.bottom)}V{number(area.bottom + 4)}"
        at = min(max(at, half), width - half)
        if at - half >= end:
            labels.append(text(each.label, at, area.bottom + 18, anchor="middle"))
            end = at + half + 4
        if each.context:
            room = width_of(each.context) / 2
            at = min(max(at, room), width - room)
            # Where two do not fit beside each other, the later one says it for more of the axis.
            if contexts and contexts[-1][0] + width_of(contexts[-1][1]) / 2 + _GAP > at - room:
                contexts.pop()
            contexts.append((at, each.context))
    labels += [text(said, at, area.bottom + 34, anchor="middle") for at, said in contexts]
    if title:
        labels.append(
            text(
                fit(title, area.right), area.right, area.bottom + 36, anchor="end", class_="heading"
            )
        )
    return tag("g", tag("path", d=line, class_="chart-axis-line"), *labels)
