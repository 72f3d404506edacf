"""The four searches of overfitting.py on several splits of the images, as a table and a figure.

    python examples/overfitting_figure.py OUT [SPLITS [STEPS]]

Writes OUT/overfitting.csv, .png and .svg; the same code gives the same bytes.
"""

import csv
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from overfitting import SEARCHES, STEPS, Standing, search

SPLITS = 12
EVERY = 4  # steps are drawn, so that the picture stays small
SHOWN, FRESH, OWN = "#0072B2", "#D55E00", "#7F7F7F"
STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.hashsalt": "ladderboard",  # otherwise ids are random
}


def courses(splits: int = SPLITS, steps: int = STEPS) -> dict[str, np.ndarray]:
    """Run all searches; return for each an array of splits, steps and fields of ``Standing``."""
    return {
        name: np.array(
            [
                list(search(split, mechanism, own_score=own_score, steps=steps))
                for split in range(splits)
            ]
        )
        for name, (mechanism, own_score) in SEARCHES.items()
    }


def write(courses_by_search: Mapping[str, np.ndarray], path: Path) -> None:
    """Write the last state of every search."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["search", "split", *Standing._fields])
        for name, course in courses_by_search.items():
            for split, (*errors, asked, improved) in enumerate(course[:, -1]):
                row = [f"{error:.6f}" for error in errors]
                table.writerow([name, split, *row, int(asked), int(improved)])


def draw(courses_by_search: Mapping[str, np.ndarray], out: Path) -> None:
    """Draw each search's course, and below it each winner's released and fresh errors."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 6), layout="constrained")
        axes = figure.subplots(2, len(courses_by_search), sharey=True)
        for (name, course), above, below in zip(courses_by_search.items(), *axes, strict=True):
            above.set_title(name.replace(", ", ",\n"), fontsize=10, weight="bold")
            draw_course(above, course, own_score=SEARCHES[name][1])
            draw_winners(below, course[:, -1])
        for row in axes:
            row[0].set_ylabel("error")
        axes[0, 0].set_ylim(0, None)
        handles, names = axes[0, -1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)
        for kind in ("png", "svg"):
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(out / f"overfitting.{kind}", dpi=150, metadata=metadata)


def draw_course(axis: Any, course: np.ndarray, *, own_score: bool) -> None:
    """Draw means over the splits, with bands from the least to the greatest."""
    lines = [
        (Standing._fields.index("shown"), SHOWN, "-", "released score of the best so far"),
        (Standing._fields.index("fresh"), FRESH, "--", "the same model on fresh data"),
    ]
    if own_score:
        own = Standing._fields.index("own")
        lines.append((own, OWN, ":", "the search's own score"))
    steps = np.arange(1, course.shape[1] + 1, EVERY)
    for column, colour, dashes, label in lines:
        values = course[:, ::EVERY, column]
        axis.plot(steps, values.mean(axis=0), dashes, color=colour, label=label)
        axis.fill_between(
            steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0
        )
    axis.set_xlabel("step of the search")
    axis.set_xlim(0, len(course[0]))
    axis.xaxis.set_major_locator(MaxNLocator(2, integer=True))
    axis.xaxis.set_major_formatter("{x:,.0f}")


def draw_winners(axis: Any, ends: np.ndarray) -> None:
    """Draw a line for each split from the released to the fresh error, and the means."""
    pairs = ends[:, [Standing._fields.index("shown"), Standing._fields.index("fresh")]]
    axis.plot([0, 1], pairs.T, color="#BBBBBB", linewidth=0.8, zorder=1)
    for index, (colour, side) in enumerate([(SHOWN, "right"), (FRESH, "left")]):
        mean = statistics.mean(pairs[:, index].tolist())
        axis.plot([index] * len(pairs), pairs[:, index], ".", color=colour, alpha=0.6, markersize=5)
        axis.plot(index, mean, "o", color=colour, markersize=9)
        shift = 0.1 if side == "left" else -0.1
        axis.text(
            index + shift, mean, f"{mean:.3f}", color=colour, ha=side, va="center", weight="bold"
        )
    axis.plot([0, 1], pairs.mean(axis=0), color="black", linewidth=1.5, zorder=2)
    axis.set_xticks([0, 1], ["released\nscore", "on fresh\ndata"])
    axis.set_xlim(-0.6, 1.6)
    axis.grid(visible=False, axis="x")


def main(out: Path, *size: int) -> None:
    """Search, write and draw."""
    out.mkdir(parents=True, exist_ok=True)
    courses_by_search = courses(*size)
    write(courses_by_search, out / "overfitting.csv")
    draw(courses_by_search, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
