"""Candidates: settings of the Shaky Ladder on trial, and what was measured of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Candidate", "Size", "Trial"]


class Size(NamedTuple):
    """What to calibrate for: examples, questions in all, and teams with a ladder each."""

    n: int
    questions: int
    teams: int = 1


class Candidate(NamedTuple):
    """Settings: step and noises in units of 1/sqrt(n), the grid as it is."""

    step: float
    compare: float
    release: float
    grid: float


@dataclass(frozen=True)
class Trial:
    """What was measured of a candidate, in units of 1/sqrt(n), with standard errors.

    ``errors`` has the mean leaderboard error by analyst, ``bias`` is what the attacker's last model
    kept.
    """

    candidate: Candidate
    repetitions: int
    errors: dict[str, float]
    errors_se: dict[str, float]
    bias: float
    bias_se: float

    @property
    def worst(self) -> str:
        """The analyst with the largest mean error."""
        return max(self.errors, key=lambda name: self.errors[name])

    @property
    def error(self) -> float:
        """The worst mean leaderboard error."""
        return self.errors[self.worst]

    @property
    def error_se(self) -> float:
        """The standard error of the worst mean."""
        return self.errors_se[self.worst]
