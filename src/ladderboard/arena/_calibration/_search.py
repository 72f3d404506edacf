"""The search for settings: a coarse net first, then from neighbour to neighbour."""

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

# In units of 1/sqrt(n), each about a sixth above the one before.
_STEPS = (0.0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.5, 4, 4.5, 5, 6, 7, 8)
_COMPARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4)
_RELEASES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.2, 1.4, 1.7, 2, 2.4, 2.8, 3.4, 4)
_COARSE = (
    (0.5, 1.0, 2.0, 3.0, 4.5, 6.0),
    (0.3, 0.6, 1.0, 1.7, 2.8),
    (0.0, 0.2, 0.5),
    (0.2, 0.5, 1.0),
)
_COARSE_RELEASES = (0.2, 0.5, 1.0, 2.0)  # with a ladder a team, only this noise protects
_GRID_RANGE = 0.04, 3.0


class SearchEffort(NamedTuple):
    """How much to play: games for a first look, for a closer one, for the last; and how many."""

    first: int
    closer: int
    last: int
    looks: int
    finalists: int = 12


def choose_effort(size: CalibrationSize, *, quick: bool = False) -> SearchEffort:
    """Return as much as a few minutes allow; games are as long as there are questions."""
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
    most: float = math.inf,
    advance: Callable[[float], None] = lambda _done: None,
) -> list[CandidateResult]:
    """Return the finalists, measured again on games of their own, the chosen one first.

    ``most`` is the largest worst error allowed; ``advance`` hears the part of the work done.
    """
    axes = (_STEPS, _COMPARES, _RELEASES, _allowed_grids(size.n))
    net = _coarse_candidates(size, axes)
    work = len(net) * effort.first + effort.looks * effort.closer + effort.finalists * effort.last

    def look(
        candidates: Iterable[CandidateSettings], games: int, seed: int
    ) -> list[CandidateResult]:
        found = []
        for candidate in candidates:
            found.append(measure_candidate(candidate, size, games, seed, threads))
            advance(games / work)
        return found

    first = sorted(look(net, effort.first, seed), key=lambda each: each.error)
    starts = [each.candidate for each in first[:8]]
    starts += [each.candidate for each in _lowest_bias(first, most)[:4]]
    seen = {each.candidate: each for each in look(dict.fromkeys(starts), effort.closer, seed)}
    _search_neighbours(
        axes, seen, effort.looks, most, lambda at: look([at], effort.closer, seed)[0]
    )

    ranked = _lowest_bias(list(seen.values()), most)[: 2 * effort.finalists // 3]
    ranked += sorted(seen.values(), key=lambda each: each.error)[: effort.finalists // 3]
    finalists = dict.fromkeys(each.candidate for each in ranked)
    # Games of their own: the best of many looks better than it is.
    return rank_finalists(look(finalists, effort.last, seed + 1), most)


def rank_finalists(
    finalists: list[CandidateResult], most: float = math.inf
) -> list[CandidateResult]:
    """Return the trials in order: least bias first among those near the least error."""
    near = _lowest_bias(finalists, most)
    return near + sorted((each for each in finalists if each not in near), key=lambda x: x.error)


def _lowest_bias(trials: list[CandidateResult], most: float) -> list[CandidateResult]:
    """Return those within the margin of the least error, and not above ``most``, by bias."""
    least = min(each.error for each in trials)
    near = [each for each in trials if each.error <= max(min(MARGIN * least, most), least)]
    return sorted(near, key=lambda each: each.bias)


def _search_neighbours(
    axes: tuple[tuple[float, ...], ...],
    seen: dict[CandidateSettings, CandidateResult],
    looks: int,
    most: float,
    look: Callable[[CandidateSettings], CandidateResult],
) -> None:
    """Look at neighbours of the best, in error and in bias by turns, until nothing is new."""
    done: set[CandidateSettings] = set()
    turn = 0
    while len(seen) < looks:
        trials = [each for each in seen.values() if each.candidate not in done]
        cheap = _lowest_bias(list(seen.values()), most)
        near = [each for each in cheap if each.candidate not in done]
        if not near:
            return
        least = min(trials, key=lambda each: each.error)
        at = (least if turn % 2 and least in near else near[0]).candidate
        turn += 1
        done.add(at)
        for neighbour in _neighbours(axes, at):
            if neighbour not in seen and len(seen) < looks:
                seen[neighbour] = look(neighbour)


def _neighbours(
    axes: tuple[tuple[float, ...], ...], at: CandidateSettings
) -> list[CandidateSettings]:
    found = []
    for which, axis in enumerate(axes):
        here = axis.index(at[which])
        for there in (here - 1, here + 1):
            if 0 <= there < len(axis):
                changed = list(at)
                changed[which] = axis[there]
                found.append(CandidateSettings(*changed))
    return found


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
    return [CandidateSettings(*each) for each in chosen]


def _allowed_grids(n: int) -> tuple[float, ...]:
    """Return the round numbers, 1, 2 or 5 times a power of ten, that may serve as a grid."""
    unit = 1 / math.sqrt(n)
    low, high = (each * unit for each in _GRID_RANGE)
    powers = range(math.floor(math.log10(low)), 0)
    round_numbers = (round(lead * 10.0**power, -power) for power in powers for lead in (1, 2, 5))
    return tuple(each for each in round_numbers if low <= each <= high)


def _nearest_value(axis: tuple[float, ...], value: float) -> float:
    at = min(max(bisect_left(axis, value), 1), len(axis) - 1)
    return min(axis[at - 1 : at + 1], key=lambda each: abs(math.log(each / value)))
