"""Calibration of the Shaky Ladder, for one size and for a table of sizes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard import _settings
from ladderboard.arena._runner import ExperimentRun, available_cores, parse_sizes, progress_bar
from ladderboard.mechanisms import ShakyLadder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_MAX_N = 10**9
_MAX_QUESTIONS = 10**7

_DIGITS = 4
_HEAD = "n questions teams step compare release grid error of least bias games"

# Worst-case errors promised for some sizes, in units of 1/sqrt(n); the margin of 20% for less bias
# ends there.
_PROMISED = {
    (1_000, 1_000): 1.38,  # 1.35, and the sampling error of 500 games
    (10_000, 1_000): 1.7,
    (10_000, 10_000): 2.1,
    (100_000, 100): 2.1,
}


class CalibrationSize(NamedTuple):
    """What to calibrate for: examples, questions of all teams, and teams with a ladder each."""

    n: int
    questions: int
    teams: int = 1


class CandidateSettings(NamedTuple):
    """Settings to try: step and noises in units of 1/sqrt(n), the grid on the risk scale."""

    step: float
    compare: float
    release: float
    grid: float


@dataclass(frozen=True)
class CandidateResult:
    """Measured results of a candidate, in units of 1/sqrt(n), with standard errors.

    ``errors`` has the mean leaderboard error by analyst, ``bias`` is that of the attacker's last
    model.
    """

    candidate: CandidateSettings
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


@dataclass(frozen=True)
class Calibration:
    """The result for a size: the chosen settings and the other finalists.

    ``finalists`` are in order, the chosen one first; all were measured on the same games, which
    were not used in the search. Errors and biases are in units of 1/sqrt(n).
    """

    size: CalibrationSize
    seed: int
    margin: float
    max_error: float | None
    finalists: tuple[CandidateResult, ...]

    @property
    def chosen(self) -> CandidateResult:
        """The settings with the least bias among those near the least error."""
        return self.finalists[0]

    @property
    def lowest_error_result(self) -> CandidateResult:
        """The settings with the least worst-case error."""
        return min(self.finalists, key=lambda result: result.error)

    @property
    def mechanism(self) -> ShakyLadder:
        """The mechanism with the chosen settings."""
        return make_mechanism(self.chosen.candidate, self.size.n)

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "n": self.size.n,
            "questions": self.size.questions,
            "teams": self.size.teams,
            "seed": self.seed,
            "margin": self.margin,
            "most": self.max_error,
            "least_error": self.lowest_error_result.error,
            "mechanism": self.mechanism.describe(),
            "finalists": [result_to_json(finalist) for finalist in self.finalists],
        }


def make_mechanism(candidate: CandidateSettings, n: int) -> ShakyLadder:
    """Return the mechanism with these settings on n examples."""
    unit = 1 / math.sqrt(n)
    step, compare, release = (round(size * unit, 12) for size in candidate[:3])
    return ShakyLadder(step, compare, release, grid=candidate.grid, standing_noise=0)


def calibrate(
    n: int,
    questions: int,
    teams: int = 1,
    *,
    max_error: float | None = None,
    seed: int = 0,
    quick: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> Calibration:
    """Find the best settings of the Shaky Ladder for a number of examples, questions and teams.

    Among the settings whose worst mean leaderboard error is within 20% of the least found, those
    with the least bias of an attacker's last model are chosen. They play against the shifted attack
    (with several teams: the sybil attack, one account per team), steady improvement, a plateau,
    random guesses and random search.

    Parameters
    ----------
    n, questions, teams
        The size; questions are counted over all teams.
    max_error
        The largest worst-case error allowed, in units of 1/sqrt(n), if 20% would be too much.
    seed
        The same seed gives the same result, on any number of threads.
    quick
        Whether to try only a few settings and games, for a rough result.
    """
    size = CalibrationSize(
        _settings.integer("n", n, at_least=10, at_most=_MAX_N),
        _settings.integer("questions", questions, at_least=1, at_most=_MAX_QUESTIONS),
        _settings.integer("teams", teams, at_least=1, at_most=_MAX_QUESTIONS),
    )
    seed = _settings.integer("seed", seed, at_least=0)
    if max_error is not None:
        max_error = _settings.number("max_error", max_error, above=0)
    threads = _settings.integer(
        "threads", available_cores() if threads is None else threads, at_least=1
    )
    with progress_bar("calibration", 1.0, wanted=progress) as advance:
        return _search_settings(
            size, max_error, seed, quick=quick, threads=threads, advance=advance
        )


def _search_settings(
    size: CalibrationSize,
    max_error: float | None,
    seed: int,
    *,
    quick: bool,
    threads: int,
    advance: Callable[[float], None] = lambda _done: None,
) -> Calibration:
    # Imported late: it needs numba, which reading a stored table does not.
    from ladderboard.arena._calibration import _search  # noqa: PLC0415

    effort = _search.choose_effort(size, quick=quick)
    limit = math.inf if max_error is None else max_error
    finalists = _search.search_settings(
        size, effort, seed, threads, max_error=limit, advance=advance
    )
    return Calibration(size, seed, _search.MARGIN - 1, max_error, tuple(finalists))


@dataclass(frozen=True)
class CalibrationTask:
    """The calibration of one size, as a task."""

    size: CalibrationSize
    max_error: float | None
    seed: int
    quick: bool = False

    @property
    def weight(self) -> float:
        """Questions, plus a fixed cost."""
        return self.size.questions + 10_000

    def describe(self) -> dict[str, Any]:
        """Return size, seed and effort."""
        return {
            "kind": "calibration",
            "size": list(self.size),
            "most": self.max_error,
            "seed": self.seed,
            "quick": self.quick,
        }

    def accepts(self, result: Any) -> bool:
        """Return whether a stored result belongs to this task."""
        try:
            mine = (result["n"], result["questions"], result["teams"])
            return mine == tuple(self.size) and len(result["finalists"]) > 0
        except (KeyError, TypeError):
            return False

    def run(self, threads: int | None) -> dict[str, Any]:
        """Search and return the calibration as JSON."""
        threads = available_cores() if threads is None else threads
        calibration = _search_settings(
            self.size, self.max_error, self.seed, quick=self.quick, threads=threads
        )
        return calibration.describe()


def result_to_json(result: CandidateResult) -> dict[str, Any]:
    """Return a candidate's result, JSON-able."""
    return {
        **result.candidate._asdict(),
        "error": result.error,
        "error_se": result.error_se,
        "worst": result.worst,
        "bias": result.bias,
        "bias_se": result.bias_se,
        "repetitions": result.repetitions,
        "errors": result.errors,
        "errors_se": result.errors_se,
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

    ``calibrated.json`` has the chosen settings of every size, which ``ShakyLadder.calibrated``
    reads; ``table.md`` shows them; ``trade-off.csv`` has all finalists.
    """
    study = ExperimentRun(out, quick, None, seed, workers, cluster, progress)
    sizes = [
        CalibrationSize(n_, k, team_count)
        for team_count in parse_sizes("teams", teams)
        for n_ in parse_sizes("n", n)
        for k in parse_sizes("questions", questions)
        if team_count <= k
    ]
    tasks = [
        CalibrationTask(
            size, _PROMISED.get(size[:2]) if size.teams == 1 else None, study.seed, quick
        )
        for size in sizes
    ]
    results = study.run_tasks(tasks, "calibration")
    study.write("calibrated.json", _settings_json(results, seed))
    study.write("table.md", _markdown(results))
    study.write_csv("trade-off.csv", [row for result in results for row in _finalist_rows(result)])
    return study.written


def _settings_json(results: list[dict[str, Any]], seed: int) -> str:
    """Return the chosen settings as JSON, one line for each size."""
    keys = ("step", "compare", "release", "grid", "error", "error_se", "bias", "bias_se")
    lines = []
    for result in results:
        chosen = result["finalists"][0]
        cell = {key: result[key] for key in ("n", "questions", "teams")}
        cell |= {key: float(f"{chosen[key]:.{_DIGITS}g}") for key in keys}
        cell |= {"repetitions": chosen["repetitions"], "worst": chosen["worst"]}
        lines.append(json.dumps(cell))
    head = json.dumps({"made_by": "script/calibrate", "seed": seed, "unit": "1/sqrt(n)"})[1:-1]
    return "{" + head + ',\n"cells": [\n' + ",\n".join(lines) + "\n]}\n"


def _finalist_rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    size = {key: result[key] for key in ("n", "questions", "teams")}
    rows = []
    for rank, finalist in enumerate(result["finalists"], 1):
        flat = {key: value for key, value in finalist.items() if not key.startswith("errors")}
        rows.append({**size, "place": rank, **flat})
    return rows


def _markdown(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Calibrated settings",
        "",
        "Step, noises, error and bias in units of 1/√n, the grid as it is; ± is a standard error.",
        "*error* is the largest mean leaderboard error over the analysts, *of* the analyst with",
        "that error; *least* is the least worst-case error found for the size; *bias* is what the",
        "attacker's last model keeps.",
        "",
        f"| {_HEAD.replace(' ', ' | ')} |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    for result in results:
        top = result["finalists"][0]
        lines.append(
            f"| {result['n']:,} | {result['questions']:,} | {result['teams']:,} | {top['step']:g} "
            f"| {top['compare']:g} | {top['release']:g} | {top['grid']:g} "
            f"| {top['error']:.2f} ± {top['error_se']:.2f} | {top['worst']} "
            f"| {result['least_error']:.2f} | {top['bias']:.2f} ± {top['bias_se']:.2f} "
            f"| {top['repetitions']} |"
        )
    return "\n".join(lines) + "\n"
