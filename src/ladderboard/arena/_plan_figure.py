"""A plan as a picture: error against questions, one line for each way to answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.arena._figure import COLOURS, figure_of, saved
from ladderboard.bounds._alternatives import FEW, MEASURED, OTHERS, WORST_CASE, after
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.bounds import Plan
    from ladderboard.bounds._alternatives import Alternative

__all__ = ["plan_figure"]

_KINDS = ("png", "svg", "pdf")
_KNOWN = 0.5  # an error that is known without data
_LARGEST = 10**15
_PER_DECADE = 6
_DECADES = 2  # to either side of the plan's own questions
_GAP = 0.05  # between names, as a part of the axis's height
_ROOM = 0.25  # what a name needs, as a part of the axis's width


def plan_figure(plan: Plan, path: Path | str) -> Path:
    """Draw error against questions for a plan's n, to a file ending in png, svg or pdf.

    Lines that are promised are solid, those that depend on what happens are dashed, measured ones
    are dotted; a line ends where its error says nothing any more.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in _KINDS:
        raise InvalidSetting(
            f"A plan is drawn to a file ending in .png, .svg or .pdf; got {path.name!r}."
        )
    if plan.n is None:
        raise InvalidSetting("There is no n to draw: more than 10^15 examples would be needed.")
    with figure_of((8.4, 4.8)) as figure:
        _draw(figure.subplots(), plan, plan.n)
        content = saved(figure, kind)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _draw(axis: Any, plan: Plan, n: int) -> None:
    ks = _questions(max(plan.questions, 1))
    lines: list[_Line] = []
    for at, way in enumerate((WORST_CASE, after(FEW), *OTHERS)):
        errors = [(k, way.error(n, k, plan.beta)) for k in ks]
        points = [(k, error) for k, error in errors if error < _KNOWN]
        if len(points) > 1:
            lines.append(_Line(way, COLOURS[at % len(COLOURS)], points))
    if not lines:
        raise InvalidSetting(
            f"There is nothing to draw: on {n} examples no error is below {_KNOWN:g}."
        )
    for line in lines:
        axis.plot(
            *zip(*line.points, strict=True),
            color=line.colour,
            linewidth=2.4 if line.way is WORST_CASE else 1.4,
            linestyle={"promised": "-", MEASURED: ":"}.get(line.way.status, (0, (4, 1.5))),
        )
    axis.set(xscale="log", yscale="log", xlabel="questions")
    axis.set(xlim=(ks[0], ks[-1]), ylim=(axis.get_ylim()[0], _KNOWN))
    axis.set_ylabel(f"leaderboard error, with probability {1 - plan.beta:g}")
    axis.set_title(f"What {n:,} examples can promise", loc="left", fontsize=10)
    if plan.promised:
        axis.plot(plan.questions, plan.error, "o", color=COLOURS[0], markersize=7, zorder=5)
    _tick(axis)
    _label(axis, lines, ks)


def _questions(middle: int) -> list[int]:
    """Return numbers of questions around the plan's own, that one among them."""
    low, high = max(1, middle // 10**_DECADES), min(middle * 10**_DECADES, _LARGEST)
    steps = max(1, round(_PER_DECADE * math.log10(high / low)))
    spread = {round(low * (high / low) ** (at / steps)) for at in range(steps + 1)}
    return sorted(spread | {middle})


def _tick(axis: Any) -> None:
    """Write numbers as people do."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - heavy

    low, high = axis.get_ylim()
    between = (1, 2, 5) if high < 100 * low else (1,)
    axis.yaxis.set_major_locator(LogLocator(subs=between))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    if axis.get_xlim()[1] <= 10**7:
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def _label(axis: Any, lines: list[_Line], ks: list[int]) -> None:
    """Write each line's name where it ends, moved apart where names would lie on each other."""
    low, high = map(math.log, axis.get_ylim())
    heights = [(math.log(line.points[-1][1]) - low) / (high - low) for line in lines]
    order = sorted(range(len(lines)), key=heights.__getitem__)
    stays = [at for at in order if lines[at].points[-1][0] == ks[-1]]
    above = -math.inf
    for at in stays:
        above = max(heights[at], above + _GAP)
        place = {"xycoords": "axes fraction", "va": "center", "annotation_clip": False}
        axis.annotate(lines[at].way.name, (1.01, above), color=lines[at].colour, **place)
    # The others leave through the top: names stand beside them, those of neighbours in a column.
    columns: list[list[_Line]] = []
    for line in sorted(lines, key=lambda line: line.points[-1]):
        end = line.points[-1][0]
        if end != ks[-1]:
            if not columns or not _near(columns[-1][0].points[-1][0], end, ks):
                columns.append([])
            columns[-1].append(line)
    for column in columns:
        levels = [math.exp(high - (row + 0.7) * _GAP * (high - low)) for row in range(len(column))]
        left = not _near(ks[0], min(line.crossing(levels[-1]) for line in column), ks)
        for line, level in zip(column, levels, strict=True):
            crossings = [other.crossing(level) for other in column]
            axis.annotate(
                line.way.name,
                (min(crossings) if left else max(crossings), level),
                (-6 if left else 6, 0),
                textcoords="offset points",
                color=line.colour,
                ha="right" if left else "left",
                va="center",
            )


def _near(one: float, other: float, ks: list[int]) -> bool:
    """Return whether two numbers of questions are too near for a name between them."""
    return abs(math.log(other / one)) < _ROOM * math.log(ks[-1] / ks[0])


@dataclass(frozen=True)
class _Line:
    """One way to answer: its colour, and its points with an error that says something."""

    way: Alternative
    colour: str
    points: list[tuple[int, float]]

    def crossing(self, height: float) -> float:
        """Return at how many questions the line comes to a height, or where it ends below."""
        for (k, error), (after_k, after_error) in pairwise(self.points):
            if error <= height < after_error:
                share = math.log(height / error) / math.log(after_error / error)
                return k * (after_k / k) ** share
        first, last = self.points[0], self.points[-1]
        return last[0] if last[1] <= height else first[0]
