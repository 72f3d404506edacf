"""The table of calibrated settings, over many sizes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ladderboard.arena._arena import read_sizes
from ladderboard.arena._calibrate import CalibrationTask
from ladderboard.arena._candidate import Size
from ladderboard.arena._study import Study

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["calibration_table"]

_DIGITS = 4
_HEAD = "n questions teams step compare release grid error of least bias games"

# Sizes for which the project promises a worst-case error, in units of 1/sqrt(n): there the 20% that
# may be spent on less bias stop at the promise.
_PROMISED = {
    (1_000, 1_000): 1.38,  # 1.35, and what 500 games may be off by
    (10_000, 1_000): 1.7,
    (10_000, 10_000): 2.1,
    (100_000, 100): 2.1,
}


def calibration_table(
    out: Path | str,
    *,
    n: int | Iterable[int],
    questions: int | Iterable[int],
    teams: int | Iterable[int] = 1,
    seed: int = 0,
    quick: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Calibrate every size and return the files written.

    ``calibrated.json`` has the chosen settings of every size, and is what
    ``ShakyLadder.calibrated`` reads; ``table.md`` shows them; ``trade-off.csv`` has all finalists.
    """
    study = Study(out, quick, None, seed, workers, cluster, progress)
    sizes = [
        Size(n_, k, m)
        for m in read_sizes("teams", teams)
        for n_ in read_sizes("n", n)
        for k in read_sizes("questions", questions)
        if m <= k
    ]
    tasks = [
        CalibrationTask(
            size, _PROMISED.get(size[:2]) if size.teams == 1 else None, study.seed, quick
        )
        for size in sizes
    ]
    found = study.do(tasks, "calibration")
    study.write("calibrated.json", _compact(found, seed))
    study.write("table.md", _markdown(found))
    study.write_csv("trade-off.csv", [row for each in found for row in _rows(each)])
    return study.written


def _compact(found: list[dict[str, Any]], seed: int) -> str:
    """Return the chosen settings, a line a size."""
    keys = ("step", "compare", "release", "grid", "error", "error_se", "bias", "bias_se")
    lines = []
    for each in found:
        chosen = each["finalists"][0]
        cell = {key: each[key] for key in ("n", "questions", "teams")}
        cell |= {key: float(f"{chosen[key]:.{_DIGITS}g}") for key in keys}
        cell |= {"repetitions": chosen["repetitions"], "worst": chosen["worst"]}
        lines.append(json.dumps(cell))
    head = json.dumps({"made_by": "script/calibrate", "seed": seed, "unit": "1/sqrt(n)"})[1:-1]
    return "{" + head + ',\n"cells": [\n' + ",\n".join(lines) + "\n]}\n"


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    size = {key: found[key] for key in ("n", "questions", "teams")}
    rows = []
    for place, each in enumerate(found["finalists"], 1):
        flat = {key: value for key, value in each.items() if not key.startswith("errors")}
        rows.append({**size, "place": place, **flat})
    return rows


def _markdown(found: list[dict[str, Any]]) -> str:
    lines = [
        "# Calibrated settings",
        "",
        "Step, noises, error and bias in units of 1/√n, the grid as it is; ± is a standard error.",
        "*error* is the largest mean leaderboard error over the analysts, *of* the analyst who",
        "causes it; *least* is the least worst-case error found for the size; *bias* is what the",
        "attacker's last model keeps.",
        "",
        f"| {_HEAD.replace(' ', ' | ')} |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    for each in found:
        top = each["finalists"][0]
        lines.append(
            f"| {each['n']:,} | {each['questions']:,} | {each['teams']:,} | {top['step']:g} "
            f"| {top['compare']:g} | {top['release']:g} | {top['grid']:g} "
            f"| {top['error']:.2f} ± {top['error_se']:.2f} | {top['worst']} "
            f"| {each['least_error']:.2f} | {top['bias']:.2f} ± {top['bias_se']:.2f} "
            f"| {top['repetitions']} |"
        )
    return "\n".join(lines) + "\n"
