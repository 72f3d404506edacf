"""The search for settings: a coarse grid first, then neighbours of the best."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.arena._calibration._calibrate import CandidateResult, CandidateSettings
from ladderboard.arena._calibration._compiled_games import measure_candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ladderboard.arena._calibration._calibrate import CalibrationSize

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
    least = min(result.error for result in results)
    limit = max(min(MARGIN * least, max_error), least)
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
        least = min(open_results, key=lambda result: result.error)
        centre = (least if turn % 2 and least in near else near[0]).candidate
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
