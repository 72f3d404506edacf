"""A plan as a picture: error against questions, one line for each way to answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.arena._figure import COLOURS, figure_of, saved
from ladderboard.bounds import FEW, MEASURED, OTHERS, WORST_CASE, after
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.bounds import Alternative, Plan

__all__ = ["plan_figure"]

_KINDS = ("png", "svg", "pdf")
_KNOWN = 0.5  # an error that is known without data
_LARGEST = 10**15
_PER_DECADE = 6
_DECADES = 2  # to either side of the plan's own questions


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
    _label(axis, lines)


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


def _label(axis: Any, lines: list[_Line]) -> None:
    """Name the lines beside the plot, in the order in which they end."""
    order = sorted(range(len(lines)), key=lambda at: lines[at].points[-1][1], reverse=True)
    axis.legend(
        [axis.lines[at] for at in order],
        [lines[at].way.name for at in order],
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        frameon=False,
        labelcolor="linecolor",
    )


@dataclass(frozen=True)
class _Line:
    """One way to answer: its colour, and its points with an error that says something."""

    way: Alternative
    colour: str
    points: list[tuple[int, float]]
