"""Panels: how cells are drawn."""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING, Any

from ladderboard.arena._figure import COLOURS, drawn
from ladderboard.arena._lineup import LINEUP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ladderboard.arena._cells import Cell
    from ladderboard.arena._study import Study

__all__ = ["draw_against_k", "draw_dots", "looks_of"]

_ACROSS = 4
_FEW_TICKS = 6
_MARKERS = "osD^vP*Xphd"
_TICKS = (-1, 0, 1, 2, 5, 10, 20, 50)
_ERROR, _BIAS = COLOURS[0], COLOURS[3]


def draw_dots(study: Study, name: str, cells: Sequence[Cell]) -> None:
    """Draw error and bias of every mechanism, one panel an analyst, all at one size."""
    analysts = list(dict.fromkeys(cell.analyst for cell in cells))
    mechanisms = list(dict.fromkeys(cell.mechanism for cell in cells))
    across = min(_ACROSS, len(analysts))
    down = -(-len(analysts) // across)
    size = (2.4 + 2.1 * across, 0.9 + down * (0.7 + 0.2 * len(mechanisms)))
    with drawn(study, name, down, across, size, sharex=True, sharey=True) as (figure, axes):
        for axis in axes.flat[len(analysts) :]:
            axis.set_visible(False)
        for axis, analyst in zip(axes.flat, analysts, strict=False):
            panel = [cell for cell in cells if cell.analyst == analyst]
            at = [mechanisms.index(cell.mechanism) for cell in panel]
            unit = math.sqrt(panel[0].n)
            for shift, colour, marker, label, values, spread in (
                (-0.15, _ERROR, "o", "leaderboard error", "error_units", "error_std"),
                (0.15, _BIAS, "D", "bias of the last model", "bias_units", "bias_std"),
            ):
                axis.errorbar(
                    [getattr(cell, values) for cell in panel],
                    [place + shift for place in at],
                    xerr=[getattr(cell, spread) * unit for cell in panel],
                    fmt=marker,
                    markersize=3.5,
                    elinewidth=1,
                    color=colour,
                    label=label,
                )
            axis.axvline(0, color="#444444", linewidth=0.8)
            axis.set_title(analyst, fontsize=9)
            # Most of it lies within a few units; the paper's own settings lie far out.
            axis.set_xscale("symlog", linthresh=2)
            axis.set_xticks(_TICKS, [str(tick) for tick in _TICKS])
            axis.minorticks_off()
            axis.tick_params(labelbottom=True)
        reach = max(1.0, *(abs(cell.error_units) for cell in cells))
        reach = max(reach, *(abs(cell.bias_units) for cell in cells))
        axes.flat[0].set_xlim(-2, reach * 1.4)
        axes.flat[0].set_yticks(range(len(mechanisms)), mechanisms)
        axes.flat[0].set_ylim(len(mechanisms) - 0.5, -0.5)
        where = f"n = {cells[0].n:,}, k = {cells[0].k:,}"
        figure.supxlabel(
            f"in units of 1/√n, compressed beyond 2 ({where}); bars: one standard deviation",
            fontsize=9,
        )
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)


def draw_against_k(
    study: Study,
    name: str,
    cells: Sequence[Cell],
    *,
    extra: Callable[[Any, int], None] = lambda _axis, _n: None,
) -> None:
    """Draw bias against k, one line a mechanism, one panel each n; ``extra`` adds to a panel."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415 - heavy, and optional

    sizes = sorted({cell.n for cell in cells})
    mechanisms = list(dict.fromkeys(cell.mechanism for cell in cells))
    looks = looks_of(mechanisms)
    across = min(3, len(sizes))
    down = -(-len(sizes) // across)
    size = (1.2 + 2.8 * across if across > 1 else 6.8, 0.9 + 3.0 * down)
    with drawn(study, name, down, across, size, sharey=True) as (figure, axes):
        for axis in axes.flat[len(sizes) :]:
            axis.set_visible(False)
        for axis, n in zip(axes.flat, sizes, strict=False):
            unit = math.sqrt(n)
            extra(axis, n)
            for mechanism, look in looks.items():
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
                    **look,
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


def looks_of(mechanisms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the colour and marker of each: the same in all figures for those we know."""
    return {
        name: {"color": COLOURS[at % len(COLOURS)], "marker": _MARKERS[at % len(_MARKERS)]}
        for name, at in _looks(mechanisms).items()
    }


def _looks(mechanisms: Sequence[str]) -> dict[str, int]:
    """Return the place of each in the row of colours and markers."""
    order = list(LINEUP)
    known = {name: at for at, name in enumerate(order)}
    free = (at for at in count() if at >= len(known) or order[at] not in mechanisms)
    return {name: known[name] if name in known else next(free) for name in mechanisms}
