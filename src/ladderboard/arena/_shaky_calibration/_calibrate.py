"""Calibration of the Shaky Ladder, for one size and for a table of sizes."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import product
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
    effort = choose_effort(size, quick=quick)
    limit = math.inf if max_error is None else max_error
    finalists = search_settings(size, effort, seed, threads, max_error=limit, advance=advance)
    return Calibration(size, seed, MARGIN - 1, max_error, tuple(finalists))


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


MARGIN = 1.2  # settings within 20% of the least error compete for the least bias

# In units of 1/sqrt(n).
_STEPS = (0.0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.5, 4, 4.5, 5, 6, 7, 8)
_COMPARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4)
_RELEASES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4)
_COARSE = (
    (0.5, 1.0, 2.0, 3.0, 4.5, 6.0),
    (0.3, 0.6, 1.0, 1.7, 2.8),
    (0.0, 0.2, 0.5),
    (0.2, 0.5, 1.0),
)
_COARSE_RELEASES = (0.2, 0.5, 1.0, 2.0)  # with one ladder per team, only this noise protects
_GRID_RANGE = 0.04, 3.0


class SearchEffort(NamedTuple):
    """Games per candidate in three rounds, candidates in the second, and finalists."""

    coarse_games: int
    fine_games: int
    final_games: int
    candidates: int
    finalists: int = 12


def choose_effort(size: CalibrationSize, *, quick: bool = False) -> SearchEffort:
    """Return the effort that takes a few minutes; games with more questions take longer."""
    if quick:
        return SearchEffort(4, 8, 16, 30, 4)
    questions = size.questions
    if questions <= 3_000:
        return SearchEffort(12, 60, 500, 200)
    if questions <= 30_000:
        return SearchEffort(8, 24, 200, 160)
    if questions <= 300_000:
        return SearchEffort(2, 8, 60, 80)
    return SearchEffort(1, 4, 24, 40, 6)


def search_settings(
    size: CalibrationSize,
    effort: SearchEffort,
    seed: int,
    threads: int,
    *,
    max_error: float = math.inf,
    advance: Callable[[float], None] = lambda _done: None,
) -> list[CandidateResult]:
    """Return the finalists, measured again on new games, the chosen one first.

    ``max_error`` is the largest worst-case error allowed; ``advance`` is called with the share of
    the work done.
    """
    # It compiles kernels.
    from ladderboard.arena._shaky_calibration._compiled_games import measure_candidate  # noqa: PLC0415

    axes = (_STEPS, _COMPARES, _RELEASES, _allowed_grids(size.n))
    coarse = _coarse_candidates(size, axes)
    work = (
        len(coarse) * effort.coarse_games
        + effort.candidates * effort.fine_games
        + effort.finalists * effort.final_games
    )

    def measure(
        candidates: Iterable[CandidateSettings], games: int, seed: int
    ) -> list[CandidateResult]:
        results = []
        for candidate in candidates:
            results.append(measure_candidate(candidate, size, games, seed, threads))
            advance(games / work)
        return results

    first = sorted(measure(coarse, effort.coarse_games, seed), key=lambda result: result.error)
    starts = [result.candidate for result in first[:8]]
    starts += [result.candidate for result in _lowest_bias(first, max_error)[:4]]
    measured = {
        result.candidate: result
        for result in measure(dict.fromkeys(starts), effort.fine_games, seed)
    }
    _search_neighbours(
        axes,
        measured,
        effort.candidates,
        max_error,
        lambda candidate: measure([candidate], effort.fine_games, seed)[0],
    )

    ranked = _lowest_bias(list(measured.values()), max_error)[: 2 * effort.finalists // 3]
    ranked += sorted(measured.values(), key=lambda result: result.error)[: effort.finalists // 3]
    finalists = dict.fromkeys(result.candidate for result in ranked)
    # The best of many candidates looks better than it is, so finalists play new games.
    return rank_finalists(measure(finalists, effort.final_games, seed + 1), max_error)


def rank_finalists(
    finalists: list[CandidateResult], max_error: float = math.inf
) -> list[CandidateResult]:
    """Return the results in order: those near the least error by bias, then the others."""
    near = _lowest_bias(finalists, max_error)
    return near + sorted(
        (result for result in finalists if result not in near), key=lambda result: result.error
    )


def _lowest_bias(results: list[CandidateResult], max_error: float) -> list[CandidateResult]:
    """Return those within the margin of the least error and ``max_error``, by bias."""
    min_error = min(result.error for result in results)
    limit = max(min(MARGIN * min_error, max_error), min_error)
    near = [result for result in results if result.error <= limit]
    return sorted(near, key=lambda result: result.bias)


def _search_neighbours(
    axes: tuple[tuple[float, ...], ...],
    measured: dict[CandidateSettings, CandidateResult],
    limit: int,
    max_error: float,
    measure: Callable[[CandidateSettings], CandidateResult],
) -> None:
    """Measure neighbours of the best in error and in bias in turn, until none is new."""
    done: set[CandidateSettings] = set()
    turn = 0
    while len(measured) < limit:
        open_results = [result for result in measured.values() if result.candidate not in done]
        lowest_bias = _lowest_bias(list(measured.values()), max_error)
        near = [result for result in lowest_bias if result.candidate not in done]
        if not near:
            return
        most_accurate = min(open_results, key=lambda result: result.error)
        centre = (most_accurate if turn % 2 and most_accurate in near else near[0]).candidate
        turn += 1
        done.add(centre)
        for neighbour in _neighbours(axes, centre):
            if neighbour not in measured and len(measured) < limit:
                measured[neighbour] = measure(neighbour)


def _neighbours(
    axes: tuple[tuple[float, ...], ...], centre: CandidateSettings
) -> list[CandidateSettings]:
    neighbours = []
    for dimension, axis in enumerate(axes):
        position = axis.index(centre[dimension])
        for moved in (position - 1, position + 1):
            if 0 <= moved < len(axis):
                settings = list(centre)
                settings[dimension] = axis[moved]
                neighbours.append(CandidateSettings(*settings))
    return neighbours


def _coarse_candidates(
    size: CalibrationSize, axes: tuple[tuple[float, ...], ...]
) -> list[CandidateSettings]:
    steps, compares, releases, grids = _COARSE
    unit = 1 / math.sqrt(size.n)
    chosen = product(
        steps,
        compares,
        releases if size.teams == 1 else _COARSE_RELEASES,
        dict.fromkeys(_nearest_value(axes[3], grid * unit) for grid in grids),
    )
    return [CandidateSettings(*settings) for settings in chosen]


def _allowed_grids(n: int) -> tuple[float, ...]:
    """Return the numbers 1, 2 or 5 times a power of ten that may be a grid."""
    unit = 1 / math.sqrt(n)
    low, high = (limit * unit for limit in _GRID_RANGE)
    powers = range(math.floor(math.log10(low)), 0)
    round_numbers = (round(lead * 10.0**power, -power) for power in powers for lead in (1, 2, 5))
    return tuple(grid for grid in round_numbers if low <= grid <= high)


def _nearest_value(axis: tuple[float, ...], value: float) -> float:
    index = min(max(bisect_left(axis, value), 1), len(axis) - 1)
    return min(axis[index - 1 : index + 1], key=lambda point: abs(math.log(point / value)))
