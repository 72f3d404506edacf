"""Practical settings of the Shaky Ladder, from a table that ``ladderboard calibrate`` made.

The table has cells at powers of ten. Between them settings are interpolated in the logarithms of n,
questions and teams; outside, the edge of the table is scaled to n. How the table was made:
docs/explanation/mechanisms.md.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from ladderboard import _settings

_TABLES = "calibrated.json", "calibrated-teams.json"
_DIGITS = 4  # significant digits of a setting; more are neither measured nor readable
_LARGEST = 10**15
_INTERPOLATED = (
    "step",
    "compare",
    "release",
    "error",
    "error_se",
    "bias",
    "bias_se",
    "repetitions",
)


@dataclass(frozen=True)
class CalibratedSettings:
    """Settings for a number of examples, questions and teams, and where they come from.

    ``error`` is the worst mean leaderboard error over the analysts of the calibration, ``bias`` the
    remaining bias of the attacker's last model, each with its standard error, as risks; between
    measured cells they are interpolated like the settings. ``repetitions`` is the number of games
    played, 0 if exactly this size was not measured. ``beyond`` is true if the size is harder than
    any measured one: fewer examples, more questions or more teams.
    """

    n: int
    questions: int
    teams: int
    step: float
    compare_noise: float
    release_noise: float
    grid: float
    error: float
    error_se: float
    bias: float
    bias_se: float
    repetitions: int
    note: str
    beyond: bool = False


@lru_cache(maxsize=4096)
def calibrated_settings(n: int, questions: int, teams: int = 1) -> CalibratedSettings:
    """Return the settings for a size, and where they come from.

    >>> calibrated_settings(10_000, 1_000).note
    'measured at n=10000, questions=1000'
    >>> print(calibrated_settings(20_000, 900).note)
    interpolated between n=10000..100000, questions=100..1000
    >>> print(calibrated_settings(50, 900).note)
    outside the table: taken at n=100, questions=900, and scaled by 1/sqrt(n); interpolated
    between questions=100..1000
    """
    n = _settings.integer("n", n, at_least=1, at_most=_LARGEST)
    questions = _settings.integer("questions", questions, at_least=1, at_most=_LARGEST)
    teams = _settings.integer("teams", teams, at_least=1, at_most=_LARGEST)
    requested = {"n": n, "questions": questions, "teams": min(teams, questions)}
    cell, used, note = _interpolate(requested)
    unit = 1 / math.sqrt(n)
    step, compare, release, error, error_se, bias, bias_se = (
        float(f"{cell[name] * unit:.{_DIGITS}g}") for name in _INTERPOLATED[:-1]
    )
    measured = note.startswith("measured")
    return CalibratedSettings(
        n,
        questions,
        teams,
        step,
        compare,
        release,
        _round_grid(cell["cells"] * unit),
        error,
        error_se,
        bias,
        bias_se,
        round(cell["repetitions"]) if measured else 0,
        note,
        beyond=any(_is_harder(name, requested[name], used[name]) for name in requested),
    )


def _is_harder(name: str, wanted: int, taken: int) -> bool:
    return wanted < taken if name == "n" else wanted > taken


class _CalibrationTable:
    """Cells on a lattice of n, questions and teams."""

    def __init__(self, cells: list[dict[str, Any]]) -> None:
        self.cells = {(cell["n"], cell["questions"], cell["teams"]): cell for cell in cells}
        self.axes = [sorted({size[axis] for size in self.cells}) for axis in range(3)]

    def at(self, size: tuple[int, int, int]) -> dict[str, float]:
        """Return a cell; with more teams than questions, that of as many teams as questions."""
        n, questions, teams = size
        cell = self.cells[n, questions, min(teams, questions)]
        return {**cell, "cells": cell["grid"] * math.sqrt(n)}


@lru_cache(maxsize=2)
def _load_table(*, several: bool) -> _CalibrationTable:
    """Return the table for one ladder, or the coarser one for several, which includes it."""
    folder = Path(__file__).parent  # importlib.resources would load zipfile and tempfile
    single_team = json.loads((folder / _TABLES[0]).read_text())["cells"]
    if not several:
        return _CalibrationTable(single_team)
    several_teams = json.loads((folder / _TABLES[1]).read_text())["cells"]
    sizes = {(cell["n"], cell["questions"]) for cell in several_teams}
    return _CalibrationTable(
        [cell for cell in single_team if (cell["n"], cell["questions"]) in sizes] + several_teams
    )


def _interpolate(wanted: dict[str, int]) -> tuple[dict[str, float], dict[str, int], str]:
    """Return the settings in units of 1/sqrt(n), the size they are read at, and a note."""
    table = _load_table(several=wanted["teams"] > 1)
    taken, corners, between = {}, [], []
    for axis, (name, value) in zip(table.axes, wanted.items(), strict=True):
        taken[name] = inside = min(max(value, axis[0]), axis[-1])
        low = axis[max(bisect_right(axis, inside) - 1, 0)]
        if low == inside:
            corners.append([(low, 1.0)])
            continue
        high = axis[bisect_right(axis, inside)]
        fraction = math.log(inside / low) / math.log(high / low)
        corners.append([(low, 1 - fraction), (high, fraction)])
        between.append(f"{name}={low}..{high}")
    settings = dict.fromkeys(_INTERPOLATED, 0.0)
    logs = 0.0
    for corner in product(*corners):
        cell = table.at((corner[0][0], corner[1][0], corner[2][0]))
        weight = math.prod(fraction for _, fraction in corner)
        for name in _INTERPOLATED:
            settings[name] += weight * cell[name]
        logs += weight * math.log(cell["cells"])
    settings["cells"] = math.exp(logs)
    return settings, taken, _describe_origin(wanted, taken, between)


def _describe_origin(wanted: dict[str, int], taken: dict[str, int], between: list[str]) -> str:
    names = [name for name in wanted if name != "teams" or wanted["teams"] > 1]
    size = ", ".join(f"{name}={taken[name]}" for name in names)
    if taken != wanted:
        note = f"outside the table: taken at {size}, and scaled by 1/sqrt(n)"
        return f"{note}; interpolated between {', '.join(between)}" if between else note
    return f"interpolated between {', '.join(between)}" if between else f"measured at {size}"


def _round_grid(wanted: float) -> float:
    """Return the number nearest in ratio among 1, 2, 5 times a power of ten; at most 1/2."""
    decade = 10.0 ** math.floor(math.log10(wanted))
    leads = (1, 2, 5, 10)
    nearest = min(leads, key=lambda lead: abs(math.log(lead * decade / wanted)))
    return min(float(f"{nearest * decade:.1g}"), 0.5)
