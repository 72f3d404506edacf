"""Practical settings of the Shaky Ladder: a first table, measured against attacks.

Three cells were measured (step, compare noise and release noise in units of 1/sqrt(n)) against
steady improvement, a plateau of equal models and a patient shifted majority attack; other sizes
take the nearest cell. See docs/explanation/mechanisms.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ladderboard import _settings

__all__ = ["Calibrated", "calibrated_settings"]

# (n, questions): step, compare noise, release noise, each times sqrt(n)
_CELLS: dict[tuple[int, int], tuple[float, float, float]] = {
    (1_000, 1_000): (1.0, 0.5, 0.0),
    (10_000, 1_000): (1.0, 0.4, 0.0),
    (10_000, 10_000): (1.5, 0.6, 0.25),
}
# With one ladder a team every account's first question is answered, and only noise on the release
# blurs it. The paper finds 3/sqrt(n) on the correlation enough, which is half as much on the risk.
_TEAM_RELEASE = 1.5
_DIGITS = 12
_LARGEST = 10**15


@dataclass(frozen=True)
class Calibrated:
    """Settings for so many examples, questions and teams, and where they come from."""

    n: int
    questions: int
    teams: int
    step: float
    compare_noise: float
    release_noise: float
    grid: float
    note: str


def calibrated_settings(n: int, questions: int, teams: int = 1) -> Calibrated:
    """Return the settings of the nearest measured cell, scaled to this n.

    >>> print(calibrated_settings(20_000, 900).note)
    nearest measured cell: n=10000, questions=1000
    """
    n = _settings.whole("n", n, at_least=1, at_most=_LARGEST)
    questions = _settings.whole("questions", questions, at_least=1, at_most=_LARGEST)
    teams = _settings.whole("teams", teams, at_least=1, at_most=_LARGEST)
    cell = min(
        _CELLS,
        key=lambda at: math.hypot(math.log(n / at[0]), math.log(questions / at[1])),
    )
    note = f"nearest measured cell: n={cell[0]}, questions={cell[1]}"
    step, compare, release = _CELLS[cell]
    if teams > 1:
        release = max(release, _TEAM_RELEASE)
        note += f"; release noise raised to {_TEAM_RELEASE:g}/sqrt(n) for {teams} teams"
    unit = 1 / math.sqrt(n)
    step, compare, release = (round(x * unit, _DIGITS) for x in (step, compare, release))
    return Calibrated(n, questions, teams, step, compare, release, _round_grid(step / 2), note)


def _round_grid(most: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is at most ``most``."""
    decade = 10.0 ** math.floor(math.log10(most))
    leading = next(x for x in (5, 2, 1) if x * decade <= most * (1 + 1e-9))
    return round(leading * decade, _DIGITS)
