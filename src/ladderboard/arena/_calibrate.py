"""Calibration: the settings of the Shaky Ladder that serve a size best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.arena._candidate import Candidate, Size, Trial
from ladderboard.arena._crew import cores
from ladderboard.arena._progress import progress_bar
from ladderboard.mechanisms import ShakyLadder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Calibration", "CalibrationTask", "calibrate"]

_LARGEST_N = 10**9
_LARGEST_K = 10**7


@dataclass(frozen=True)
class Calibration:
    """What was found for a size: the chosen settings and those that came near.

    ``finalists`` are in order, the chosen one first; all were measured on the same games, which
    had no part in finding them. Errors and biases are in units of 1/sqrt(n).
    """

    size: Size
    seed: int
    margin: float
    most: float | None
    finalists: tuple[Trial, ...]

    @property
    def chosen(self) -> Trial:
        """Least bias among the settings near the least error."""
        return self.finalists[0]

    @property
    def least(self) -> Trial:
        """The least worst-case error found."""
        return min(self.finalists, key=lambda each: each.error)

    @property
    def mechanism(self) -> ShakyLadder:
        """The mechanism with the chosen settings."""
        return mechanism_of(self.chosen.candidate, self.size.n)

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "n": self.size.n,
            "questions": self.size.questions,
            "teams": self.size.teams,
            "seed": self.seed,
            "margin": self.margin,
            "most": self.most,
            "least_error": self.least.error,
            "mechanism": self.mechanism.describe(),
            "finalists": [written(each) for each in self.finalists],
        }


def mechanism_of(candidate: Candidate, n: int) -> ShakyLadder:
    """Return the mechanism with these settings on n examples."""
    unit = 1 / math.sqrt(n)
    step, compare, release = (round(each * unit, 12) for each in candidate[:3])
    return ShakyLadder(step, compare, release, grid=candidate.grid, standing_noise=0)


def calibrate(
    n: int,
    questions: int,
    teams: int = 1,
    *,
    most: float | None = None,
    seed: int = 0,
    quick: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> Calibration:
    """Find the settings of the Shaky Ladder for so many examples, questions and teams.

    Among the settings whose worst mean leaderboard error is within 20% of the least found, the one
    that leaves an attacker the least bias on the last model. They meet the shifted majority attack
    (with several teams: the sybil attack, an account a team), steady improvement, a plateau, random
    guesses and random search.

    Parameters
    ----------
    n, questions, teams
        The size; questions are counted over all teams.
    most
        The largest worst-case error allowed, in units of 1/sqrt(n), where 20% would be too much.
    seed
        The same seed gives the same result, on any number of threads.
    quick
        Whether to look at few settings and few games only, for a first idea.

    Examples
    --------
    >>> found = calibrate(n=1_000, questions=100, quick=True)
    >>> found.chosen.error <= 1.2 * found.least.error
    True
    """
    size = Size(
        _settings.whole("n", n, at_least=10, at_most=_LARGEST_N),
        _settings.whole("questions", questions, at_least=1, at_most=_LARGEST_K),
        _settings.whole("teams", teams, at_least=1, at_most=_LARGEST_K),
    )
    seed = _settings.whole("seed", seed, at_least=0)
    if most is not None:
        most = _settings.number("most", most, above=0)
    threads = _settings.whole("threads", cores() if threads is None else threads, at_least=1)
    with progress_bar("calibration", 1.0, wanted=progress) as advance:
        return _calibrate(size, most, seed, quick=quick, threads=threads, advance=advance)


def _calibrate(
    size: Size,
    most: float | None,
    seed: int,
    *,
    quick: bool,
    threads: int,
    advance: Callable[[float], None] = lambda _done: None,
) -> Calibration:
    # Imported late: it needs numba, and reading a table that was made does not.
    from ladderboard.arena import _lattice  # noqa: PLC0415

    effort = _lattice.effort_for(size, quick=quick)
    limit = math.inf if most is None else most
    found = _lattice.search(size, effort, seed, threads, most=limit, advance=advance)
    return Calibration(size, seed, _lattice.MARGIN - 1, most, tuple(found))


@dataclass(frozen=True)
class CalibrationTask:
    """The calibration of one size, as a piece of work."""

    size: Size
    most: float | None
    seed: int
    quick: bool = False

    @property
    def weight(self) -> float:
        """Questions, and what every game costs anyway."""
        return self.size.questions + 10_000

    def describe(self) -> dict[str, Any]:
        """Return what decides the result."""
        return {
            "kind": "calibration",
            "size": list(self.size),
            "most": self.most,
            "seed": self.seed,
            "quick": self.quick,
        }

    def accepts(self, result: Any) -> bool:
        """Tell whether a kept result is one of this task."""
        try:
            mine = (result["n"], result["questions"], result["teams"])
            return mine == tuple(self.size) and len(result["finalists"]) > 0
        except (KeyError, TypeError):
            return False

    def run(self, threads: int | None) -> dict[str, Any]:
        """Search."""
        threads = cores() if threads is None else threads
        found = _calibrate(self.size, self.most, self.seed, quick=self.quick, threads=threads)
        return found.describe()


def written(trial: Trial) -> dict[str, Any]:
    """Return a trial, JSON-able."""
    return {
        **trial.candidate._asdict(),
        "error": trial.error,
        "error_se": trial.error_se,
        "worst": trial.worst,
        "bias": trial.bias,
        "bias_se": trial.bias_se,
        "repetitions": trial.repetitions,
        "errors": trial.errors,
        "errors_se": trial.errors_se,
    }
