"""Figures: one look, and the same bytes every time."""

from __future__ import annotations

import importlib
import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.arena._study import Study

__all__ = ["COLOURS", "NOISE_COLOURS", "drawn", "figure_of", "need_figures", "saved"]

# Okabe and Ito's colours, which colour-blind people can tell apart too, and some more; markers
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
)
# Noise in units of 1/sqrt(n), on the correlation.
NOISE_COLOURS = {0.0: COLOURS[0], 1.0: COLOURS[1], 3.0: COLOURS[2]}

_STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.hashsalt": "ladderboard",  # else ids are random
    "svg.fonttype": "path",
}
# What each format would otherwise say about when or by what it was made.
_DATES = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}


def need_figures() -> None:
    """Refuse to begin a long run whose figures could not be drawn."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise MissingDependency(
            "Figures need matplotlib: pip install 'ladderboard[arena]'."
        ) from None


@contextmanager
def figure_of(size: tuple[float, float]) -> Iterator[Any]:
    """Yield an empty figure in our look; what is drawn and saved inside has it."""
    need_figures()
    import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        # A figure without pyplot: no window, no global state of the reader's notebook touched.
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        yield figure


def saved(figure: Any, kind: str) -> bytes:
    """Return a figure as a file, without a date."""
    metadata = {_DATES[kind]: None}
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=200, metadata=metadata)
    return picture.getvalue()


@contextmanager
def drawn(
    study: Study, name: str, rows: int, columns: int, size: tuple[float, float], **options: Any
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes; write PNG and SVG at the end."""
    with figure_of(size) as figure:
        yield figure, figure.subplots(rows, columns, squeeze=False, **options)
        for kind in ("png", "svg"):
            study.write(f"{name}.{kind}", saved(figure, kind))
