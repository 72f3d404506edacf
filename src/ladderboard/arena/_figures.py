"""Draws figures in one style; the same data gives the same bytes."""

from __future__ import annotations

import importlib
import io
import math
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_confidence
from ladderboard.arena._runner import STANDARD_MECHANISMS
from ladderboard.bounds import ALTERNATIVES, FEW_CHANGES, MEASURED, WORST_CASE, ladder_after_changes
from ladderboard.errors import InvalidSetting, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ladderboard.arena._experiments import PairSummary
    from ladderboard.arena._runner import ExperimentRun
    from ladderboard.bounds import Alternative, Plan

# The colours of Okabe and Ito, which colour-blind people can tell apart, and some more; markers
# differ as well.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#B8A800",
    "#7F7F7F",
    "#A6761D",
    "#5E3C99",
    "#000000",
    "#C2003D",
)
# Noise in units of 1/sqrt(n), on the correlation.
NOISE_COLOURS = {0.0: COLOURS[0], 1.0: COLOURS[1], 3.0: COLOURS[2]}

_STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.hashsalt": "ladderboard",  # ids are random without it
    "svg.fonttype": "path",
}
# Metadata that would make each file differ: date or program.
_DATE_FIELDS = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}

_MAX_COLUMNS = 4
_FEW_TICKS = 6
_MARKERS = "osD^vP*Xphd<"
_TICKS = (-1, 0, 1, 2, 5, 10, 20, 50)
_ERROR, _BIAS = COLOURS[0], COLOURS[3]

_FORMATS = ("png", "svg", "pdf")
_TRIVIAL_ERROR = 0.5  # an error this large needs no data
_MAX_QUESTIONS = 10**15
_PER_DECADE = 6
_DECADES = 2  # on either side of the plan's number of questions


def require_matplotlib() -> None:
    """Raise if figures cannot be drawn, before a long run starts."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise MissingDependency(
            "Figures need matplotlib: pip install 'ladderboard[arena]'."
        ) from None


@contextmanager
def new_figure(size: tuple[float, float]) -> Iterator[Any]:
    """Yield an empty figure; what is drawn and saved inside the block has our style."""
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415 - heavy, optional
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        # Without pyplot: no window opens, and the state of a notebook stays as it is.
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        yield figure


def render_figure(figure: Any, kind: str) -> bytes:
    """Return a figure as the bytes of a file, without a date."""
    metadata = {_DATE_FIELDS[kind]: None}
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=200, metadata=metadata)
    return picture.getvalue()


@contextmanager
def draw_figure(
    study: ExperimentRun,
    name: str,
    rows: int,
    columns: int,
    size: tuple[float, float],
    **options: Any,
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes; write PNG and SVG at the end."""
    with new_figure(size) as figure:
        yield figure, figure.subplots(rows, columns, squeeze=False, **options)
        for kind in ("png", "svg"):
            study.write(f"{name}.{kind}", render_figure(figure, kind))


def draw_error_and_bias(study: ExperimentRun, name: str, cells: Sequence[PairSummary]) -> None:
    """Draw error and bias of every mechanism at one size, one panel for each analyst."""
    analysts = list(dict.fromkeys(cell.analyst for cell in cells))
    mechanisms = list(dict.fromkeys(cell.mechanism for cell in cells))
    across = min(_MAX_COLUMNS, len(analysts))
    down = -(-len(analysts) // across)
    size = (2.4 + 2.1 * across, 0.9 + down * (0.7 + 0.2 * len(mechanisms)))
    with draw_figure(study, name, down, across, size, sharex=True, sharey=True) as (figure, axes):
        for axis in axes.flat[len(analysts) :]:
            axis.set_visible(False)
        for axis, analyst in zip(axes.flat, analysts, strict=False):
            panel = [cell for cell in cells if cell.analyst == analyst]
            positions = [mechanisms.index(cell.mechanism) for cell in panel]
            unit = math.sqrt(panel[0].n)
            for shift, colour, marker, label, values, spread in (
                (-0.15, _ERROR, "o", "leaderboard error", "error_units", "error_std"),
                (0.15, _BIAS, "D", "bias of the last model", "bias_units", "bias_std"),
            ):
                axis.errorbar(
                    [getattr(cell, values) for cell in panel],
                    [position + shift for position in positions],
                    xerr=[getattr(cell, spread) * unit for cell in panel],
                    fmt=marker,
                    markersize=3.5,
                    elinewidth=1,
                    color=colour,
                    label=label,
                )
            axis.axvline(0, color="#444444", linewidth=0.8)
            axis.set_title(analyst, fontsize=9)
            # Most values lie within a few units; those of the paper's settings are far larger.
            axis.set_xscale("symlog", linthresh=2)
            axis.set_xticks(_TICKS, [str(tick) for tick in _TICKS])
            axis.minorticks_off()
            axis.tick_params(labelbottom=True)
        reach = max(1.0, *(abs(cell.error_units) for cell in cells))
        reach = max(reach, *(abs(cell.bias_units) for cell in cells))
        axes.flat[0].set_xlim(-2, reach * 1.4)
        axes.flat[0].set_yticks(range(len(mechanisms)), mechanisms)
        axes.flat[0].set_ylim(len(mechanisms) - 0.5, -0.5)
        size_text = f"n = {cells[0].n:,}, k = {cells[0].k:,}"
        figure.supxlabel(
            f"in units of 1/√n, compressed beyond 2 ({size_text}); bars: one standard deviation",
            fontsize=9,
        )
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)


def draw_bias_against_questions(
    study: ExperimentRun,
    name: str,
    cells: Sequence[PairSummary],
    *,
    extra: Callable[[Any, int], None] = lambda _axis, _n: None,
) -> None:
    """Draw bias against k: a line for each mechanism, a panel for each n plus ``extra``."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415 - heavy, optional

    sizes = sorted({cell.n for cell in cells})
    mechanisms = list(dict.fromkeys(cell.mechanism for cell in cells))
    styles = line_styles(mechanisms)
    across = min(3, len(sizes))
    down = -(-len(sizes) // across)
    size = (1.2 + 2.8 * across if across > 1 else 6.8, 0.9 + 3.0 * down)
    with draw_figure(study, name, down, across, size, sharey=True) as (figure, axes):
        for axis in axes.flat[len(sizes) :]:
            axis.set_visible(False)
        for axis, n in zip(axes.flat, sizes, strict=False):
            unit = math.sqrt(n)
            extra(axis, n)
            for mechanism, style in styles.items():
                line = [cell for cell in cells if (cell.n, cell.mechanism) == (n, mechanism)]
                axis.errorbar(
                    [cell.k for cell in line],
                    [cell.bias_units for cell in line],
                    [cell.bias_std * unit for cell in line],
                    markersize=4,
                    linewidth=1.2,
                    elinewidth=0.8,
                    capsize=2,
                    label=mechanism,
                    **style,
                )
            axis.axhline(0, color="#444444", linewidth=0.8, linestyle=":")
            axis.set(xscale="log", title=f"n = {n:,}", xlabel="number of questions k")
            ks = sorted({cell.k for cell in cells if cell.n == n})
            if len(ks) <= _FEW_TICKS:
                axis.set_xticks(ks, [f"{k:,}" for k in ks], fontsize=8)
            axis.xaxis.set_minor_formatter(NullFormatter())
        axes.flat[0].set_ylabel(
            "bias of the last model, in units of 1/√n\n(bars: one standard deviation)"
        )
        handles, labels = axes.flat[0].get_legend_handles_labels()
        if across == 1:
            figure.legend(handles, labels, loc="outside right upper")
        else:
            columns = max(1, min(len(labels), int(size[0] * 13 / (8 + max(map(len, labels))))))
            figure.legend(handles, labels, loc="outside upper center", ncols=columns)


def line_styles(mechanisms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the colour and marker of each: standard mechanisms always have the same."""
    return {
        name: {"color": COLOURS[index % len(COLOURS)], "marker": _MARKERS[index % len(_MARKERS)]}
        for name, index in _style_indices(mechanisms).items()
    }


def _style_indices(mechanisms: Sequence[str]) -> dict[str, int]:
    """Return the index of each into the colours and markers."""
    order = list(STANDARD_MECHANISMS)
    known = {name: index for index, name in enumerate(order)}
    free = (index for index in count() if index >= len(known) or order[index] not in mechanisms)
    return {name: known[name] if name in known else next(free) for name in mechanisms}


def plan_figure(plan: Plan, path: Path | str) -> Path:
    """Draw error against questions for a plan's n, to a file ending in png, svg or pdf.

    Promised errors are solid lines, those that depend on the number of changes are dashed, measured
    ones are dotted; a line ends where its error is too large to be useful.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in _FORMATS:
        raise InvalidSetting(f"The file must end in .png, .svg or .pdf; got {path.name!r}.")
    if plan.n is None:
        raise InvalidSetting("The plan has no n to draw: it needs more than 10^15 examples.")
    with new_figure((8.4, 4.8)) as figure:
        _draw_plan(figure.subplots(), plan, plan.n)
        content = render_figure(figure, kind)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _draw_plan(axis: Any, plan: Plan, n: int) -> None:
    ks = _question_grid(max(plan.questions, 1))
    lines: list[_PlanCurve] = []
    for index, way in enumerate((WORST_CASE, ladder_after_changes(FEW_CHANGES), *ALTERNATIVES)):
        errors = [(k, way.error(n, k, plan.beta)) for k in ks]
        points = [(k, error) for k, error in errors if error < _TRIVIAL_ERROR]
        if len(points) > 1:
            lines.append(_PlanCurve(way, COLOURS[index % len(COLOURS)], points))
    if not lines:
        raise InvalidSetting(
            f"Nothing to draw: with {n} examples no error is below {_TRIVIAL_ERROR:g}."
        )
    for line in lines:
        axis.plot(
            *zip(*line.points, strict=True),
            color=line.colour,
            linewidth=2.4 if line.way is WORST_CASE else 1.4,
            linestyle={"promised": "-", MEASURED: ":"}.get(line.way.status, (0, (4, 1.5))),
        )
    axis.set(xscale="log", yscale="log", xlabel="questions")
    axis.set(xlim=(ks[0], ks[-1]), ylim=(axis.get_ylim()[0], _TRIVIAL_ERROR))
    axis.set_ylabel(f"leaderboard error, with confidence {format_confidence(plan.beta)}")
    axis.set_title(f"What {n:,} examples can promise", loc="left", fontsize=10)
    if plan.promised:
        axis.plot(plan.questions, plan.error, "o", color=COLOURS[0], markersize=7, zorder=5)
    _format_ticks(axis)
    _add_legend(axis, lines)


def _question_grid(middle: int) -> list[int]:
    """Return numbers of questions around that of the plan, including it."""
    low, high = max(1, middle // 10**_DECADES), min(middle * 10**_DECADES, _MAX_QUESTIONS)
    steps = max(1, round(_PER_DECADE * math.log10(high / low)))
    spread = {round(low * (high / low) ** (step / steps)) for step in range(steps + 1)}
    return sorted(spread | {middle})


def _format_ticks(axis: Any) -> None:
    """Format tick labels as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - heavy

    low, high = axis.get_ylim()
    between = (1, 2, 5) if high < 100 * low else (1,)
    axis.yaxis.set_major_locator(LogLocator(subs=between))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    if axis.get_xlim()[1] <= 10**7:
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def _add_legend(axis: Any, lines: list[_PlanCurve]) -> None:
    """Add a legend beside the plot, in the order in which the lines end."""
    order = sorted(range(len(lines)), key=lambda index: lines[index].points[-1][1], reverse=True)
    axis.legend(
        [axis.lines[index] for index in order],
        [lines[index].way.name for index in order],
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        frameon=False,
        labelcolor="linecolor",
    )


@dataclass(frozen=True)
class _PlanCurve:
    """One line of a plan: its colour, and its points with a useful error."""

    way: Alternative
    colour: str
    points: list[tuple[int, float]]
