"""Cells: the repetitions of one pair at one size, summed up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ladderboard.arena._row import Row

__all__ = ["Cell", "cells_of", "markdown"]


@dataclass(frozen=True)
class Cell:
    """One mechanism against one analyst at one size.

    Errors and biases are on the risk; those that end in ``_units`` are times sqrt(n), which is
    what luck is measured in.
    """

    n: int
    k: int
    analyst: str
    mechanism: str
    repetitions: int
    error_mean: float
    error_std: float
    error_worst: float
    bias_mean: float
    bias_std: float
    changes_mean: float
    asked_mean: float
    seconds_mean: float
    error_units: float
    bias_units: float
    note: str = ""


def cells_of(rows: Iterable[Row], wanted: int) -> list[Cell]:
    """Sum rows up, in their order; a cell with fewer repetitions than wanted gets a note."""
    groups: dict[tuple[int, int, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.n, row.k, row.analyst, row.mechanism), []).append(row)
    return [_cell(key, group, wanted) for key, group in groups.items()]


def _cell(key: tuple[int, int, str, str], rows: list[Row], wanted: int) -> Cell:
    errors = np.array([row.leaderboard_error for row in rows])
    biases = np.array([row.bias for row in rows])
    unit = math.sqrt(key[0])
    fewer = f"slow: {len(rows)} of {wanted} repetitions" if len(rows) < wanted else ""
    return Cell(
        *key,
        repetitions=len(rows),
        error_mean=float(errors.mean()),
        error_std=_std(errors),
        error_worst=float(errors.max()),
        bias_mean=float(biases.mean()),
        bias_std=_std(biases),
        changes_mean=float(np.mean([row.changes for row in rows])),
        asked_mean=float(np.mean([row.asked for row in rows])),
        seconds_mean=float(np.mean([row.seconds for row in rows])),
        error_units=float(errors.mean()) * unit,
        bias_units=float(biases.mean()) * unit,
        note=fewer,
    )


def _std(values: Any) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _with_spread(mean: float, std: float, games: int) -> str:
    """Write a mean and its standard deviation, of which a single game has none."""
    return f"{mean:.4f} ± {std:.4f}" if games > 1 else f"{mean:.4f}"


_HEADS = (
    "mechanism",
    "games",
    "error",
    "worst",
    "error·√n",
    "bias",
    "bias·√n",
    "changes",
    "seconds",
    "",
)


def markdown(cells: Sequence[Cell], left_out: Sequence[str] = ()) -> str:
    """Return the cells as tables that can be read, and what was left out."""
    lines = [
        "# Mechanisms against analysts",
        "",
        "*error* is the leaderboard error (Definition 1 of the paper), mean ± standard deviation",
        "over the repetitions; *bias* is how much better the analyst's last model looks on the",
        "holdout than it is; *changes* is how often the board moved; *seconds* is for one game.",
        "The error compares the board with the best true risk so far, the bias is about the last",
        "model alone: an attack may end with a model that looks far better than the board says.",
    ]
    before = None
    for cell in cells:
        if before != (cell.n, cell.k, cell.analyst):
            before = (cell.n, cell.k, cell.analyst)
            lines += [
                "",
                f"## {cell.analyst}, n = {cell.n:,}, k = {cell.k:,}",
                "",
                f"| {' | '.join(_HEADS)} |",
                f"|---{'|---:' * (len(_HEADS) - 2)}|---|",
            ]
        values = (
            cell.mechanism.replace("|", "\\|"),
            f"{cell.repetitions}",
            _with_spread(cell.error_mean, cell.error_std, cell.repetitions),
            f"{cell.error_worst:.4f}",
            f"{cell.error_units:.2f}",
            _with_spread(cell.bias_mean, cell.bias_std, cell.repetitions),
            f"{cell.bias_units:.2f}",
            f"{cell.changes_mean:.1f}",
            f"{cell.seconds_mean:.2g}",
            cell.note,
        )
        lines.append(f"| {' | '.join(values)} |")
    if left_out:
        lines += ["", "## Left out", "", *(f"- {each}" for each in left_out)]
    return "\n".join(lines) + "\n"
