"""The figure of votes: bias against k, beside what exact answers give away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.arena._figure import drawn
from ladderboard.arena._panels import looks_of
from ladderboard.arena._vote_cells import line_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ladderboard.arena._study import Study
    from ladderboard.arena._vote_cells import VoteCell

__all__ = ["draw_votes"]

_GREY = "#444444"
_APART = 1.025  # mechanisms with the same answers would hide each other


def draw_votes(study: Study, name: str, cells: Sequence[VoteCell]) -> None:
    """Draw one line a mechanism, one panel each n; hollow where the threshold was spent."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - heavy, and optional
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    sizes = sorted({cell.n for cell in cells})
    looks = looks_of(list(dict.fromkeys(cell.mechanism for cell in cells)))
    size = (1.2 + 3.4 * len(sizes), 4.2)
    with drawn(study, name, 1, len(sizes), size, sharey=True) as (figure, axes):
        for axis, n in zip(axes.flat, sizes, strict=True):
            ks = sorted({cell.k for cell in cells if cell.n == n})
            fine = np.geomspace(ks[0], ks[-1], 40).tolist()
            line = [line_of(n, k) * math.sqrt(n) for k in fine]
            axis.plot(fine, line, color=_GREY, linewidth=1.2, linestyle="--", zorder=2.5)
            for at, (mechanism, look) in enumerate(looks.items()):
                shift = _APART ** (at - (len(looks) - 1) / 2)
                here = [cell for cell in cells if (cell.n, cell.mechanism) == (n, mechanism)]
                _draw_line(axis, here, shift, look)
            axis.axhline(0, color=_GREY, linewidth=0.8, linestyle=":")
            axis.set(xscale="log", title=f"n = {n:,}", xlabel="number of guesses k")
            axis.set_xticks(ks, [f"{k:,}" for k in ks])
            axis.xaxis.set_minor_formatter(NullFormatter())
        axes.flat[0].set_ylabel(
            "bias of the vote, in units of 1/√n\n(bars: one standard deviation)"
        )
        handles: list[Any] = [
            Line2D([], [], markersize=4.5, linewidth=1.2, label=mechanism, **look)
            for mechanism, look in looks.items()
        ]
        handles += [
            Line2D([], [], color=_GREY, linestyle="--", linewidth=1.2, label="√(k/n)/π"),
            Line2D(
                *([], []),
                color=_GREY,
                marker="o",
                markerfacecolor="white",
                linestyle="",
                label="hollow: threshold spent before k answers",
            ),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=4)


def _draw_line(axis: Any, cells: Sequence[VoteCell], shift: float, look: dict[str, Any]) -> None:
    """Draw one mechanism; the markers by themselves, since some are hollow."""
    ks = [cell.k * shift for cell in cells]
    biases = [cell.bias_units for cell in cells]
    bars = [cell.bias_std * math.sqrt(cell.n) for cell in cells]
    colour = look["color"]
    axis.errorbar(ks, biases, bars, linewidth=1.2, elinewidth=0.8, capsize=2, color=colour)
    for k, bias, cell in zip(ks, biases, cells, strict=True):
        face = "white" if cell.spent else colour
        axis.plot([k], [bias], **look, markerfacecolor=face, markersize=4.5, zorder=3)
