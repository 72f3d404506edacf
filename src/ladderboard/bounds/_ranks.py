"""Rank ranges: which ranks the data allow each team, all at once.

Proof and simulated coverage: docs/explanation/ranks.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

MAX_COMPARED_MODELS = 1_000
"""A final ranking of more models has no rank ranges: there would be too many pairs."""
_MAX_DRAWS, _MIN_DRAWS = 4_000, 1_000
_MAX_NUMBERS = 2 * 10**8  # of pairs times draws
_CHUNK_NUMBERS = 2**22  # of pairs times draws that are compared at a time, or of losses


class RankRange(NamedTuple):
    """The ranks that the data allow a team, and its band.

    Teams in one band cannot be told apart from the first team in it. Bands are numbered from 1, the
    best one.
    """

    best: int
    worst: int
    band: int


class RankComparison(NamedTuple):
    """Which teams are better than which beyond doubt, and the scores by which they are ordered.

    ``ahead[i, j]`` is whether team i is better than team j.
    """

    ahead: NDArray[np.bool_]
    scores: NDArray[np.float64]

    def ranges(self) -> list[RankRange]:
        """Return the range of ranks of each team, and its band."""
        best = 1 + self.ahead.sum(axis=0)
        worst = len(self.ahead) - self.ahead.sum(axis=1)
        bands = _bands(self.scores, self.ahead)
        return list(map(RankRange, best.tolist(), worst.tolist(), bands))


def rank_ranges(
    losses: ArrayLike,
    *,
    teams: Sequence[int] | None = None,
    beta: float = 0.05,
    seed: int = 0,
    slack: float = 0.0,
) -> list[RankRange]:
    """Return a range of ranks for each team that contains its true rank, for all teams at once.

    Models are compared in pairs, example by example: models that err on the same examples are told
    apart by the others. The probability that any range is wrong is at most ``beta``, up to the
    error of the central limit theorem.

    Parameters
    ----------
    losses
        One row for each model, one column for each example (or group); lower is better. With
        weights, each loss times its weight over the mean weight. For a metric that is not a mean,
        its risk plus its influence values.
    teams
        The team of each model, 0, 1, ...; a team counts by its best model. One model each if None.
    beta
        The probability with which any range may be wrong.
    seed
        Of the simulation that finds the critical value.
    slack
        Make the critical value larger by this fraction, and so the ranges wider; a checker allows
        for the error of the simulation with it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.random((4, 2_000)) < np.array([[0.10], [0.11], [0.20], [0.30]])
    >>> [tuple(team) for team in rank_ranges(errors)]
    [(1, 2, 1), (1, 2, 1), (3, 3, 2), (4, 4, 3)]
    """
    return compare_teams(losses, teams=teams, beta=beta, seed=seed, slack=slack).ranges()


def compare_teams(
    losses: ArrayLike,
    *,
    teams: Sequence[int] | None = None,
    beta: float = 0.05,
    seed: int = 0,
    slack: float = 0.0,
) -> RankComparison:
    """Return the comparisons behind :func:`rank_ranges`, which has the same parameters."""
    matrix = np.asarray(losses)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise InvalidSetting("losses must be finite numbers, a row for each model.")
    owners = np.arange(len(matrix)) if teams is None else np.asarray(teams, dtype=np.int64)
    if owners.shape != (len(matrix),) or set(owners.tolist()) != set(range(owners.max() + 1)):
        raise InvalidSetting("teams must hold one of 0, 1, ... for each model.")
    beta = _settings.number("beta", beta, above=0, below=1)
    means = matrix.mean(axis=1, dtype=np.float64)
    better = _better_pairs(matrix, beta, seed, 1 + slack)
    ahead = _combine_models(better, owners)
    scores = np.full(len(ahead), np.inf)
    np.minimum.at(scores, owners, means)
    return RankComparison(ahead, scores)


def _better_pairs(matrix: NDArray[Any], beta: float, seed: int, factor: float) -> NDArray[np.bool_]:
    """Return for each two models whether the first is better, beyond doubt."""
    count, n = matrix.shape
    better = np.zeros((count, count), dtype=np.bool_)
    gram, shifts = np.zeros((count, count)), np.zeros(count)
    step = max(_CHUNK_NUMBERS // count, 1)
    for start in range(0, n, step):
        part = matrix[:, start : start + step].astype(np.float64)
        # Subtracting the mean model changes no difference, and keeps products small.
        part -= part.mean(axis=0)
        gram += part @ part.T / n
        shifts += part.sum(axis=1) / n
    first, second = np.triu_indices(count, k=1)
    total = gram[first, first] + gram[second, second]
    squares = total - 2 * gram[first, second]
    differ = squares > np.finfo(np.float64).eps * total
    first, second, squares = first[differ], second[differ], squares[differ]
    if not len(first):
        return better
    # A self-normalized sum: the second moment is that about 0, where a tie would have its mean.
    ratio = np.sqrt(n / squares) * (shifts[second] - shifts[first])
    covariance = gram - np.outer(shifts, shifts)
    critical = _critical_values(covariance, first, second, beta, seed) * factor
    better[first, second] = ratio > critical
    better[second, first] = ratio < -critical
    return better


def _critical_values(
    covariance: NDArray[np.float64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    beta: float,
    seed: int,
) -> NDArray[np.float64]:
    """Return for each pair how large its normalized difference must be.

    The quantile of the largest normalized difference of a Gaussian vector; for a difference that
    is the same on every example, which has no spread, a bound for random signs.
    """
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    diagonal = np.diag(covariance)
    total = diagonal[first] + diagonal[second]
    variance = total - 2 * covariance[first, second]
    spreads = variance > np.finfo(np.float64).eps * total
    critical = np.full(len(first), math.sqrt(2 * math.log(2 * len(first) / beta)))
    if not spreads.any():
        return critical
    first, second = first[spreads], second[spreads]
    scale = 1 / np.sqrt(variance[spreads])
    rng = np.random.default_rng(seed)
    draws = min(max(_MAX_NUMBERS // len(first), _MIN_DRAWS), _MAX_DRAWS)
    step = max(_CHUNK_NUMBERS // len(first), 1)
    largest = [
        np.abs((means[:, first] - means[:, second]) * scale).max(axis=1)
        for start in range(0, draws, step)
        for means in [rng.standard_normal((min(step, draws - start), len(root))) @ root.T]
    ]
    critical[spreads] = np.quantile(np.concatenate(largest), 1 - beta, method="higher")
    return critical


def _combine_models(better: NDArray[np.bool_], owners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each two teams whether a model of the first beats all models of the second."""
    teams = int(owners.max()) + 1
    if teams == len(owners):
        order = np.argsort(owners)
        return better[np.ix_(order, order)]
    beats_all = np.ones((len(owners), teams), dtype=np.bool_)
    for model, team in enumerate(owners.tolist()):
        beats_all[:, team] &= better[:, model]
    ahead = np.zeros((teams, teams), dtype=np.bool_)
    for model, team in enumerate(owners.tolist()):
        ahead[team] |= beats_all[model]
    return ahead


def _bands(scores: NDArray[np.float64], ahead: NDArray[np.bool_]) -> list[int]:
    """Number the bands: each begins with a team that is worse than the first of the one before."""
    bands = [0] * len(scores)
    leader, band = -1, 0
    for team in np.argsort(scores, kind="stable").tolist():
        if leader < 0 or ahead[leader, team]:
            leader, band = team, band + 1
        bands[team] = band
    return bands


def mean_ranks(risks: Sequence[Sequence[float]], teams: Sequence[str | None]) -> list[float]:
    """Return the mean over metrics of the rank of each submission, 1 being the best.

    ``risks`` has a row for each submission and a column for each metric; ``teams`` are theirs, None
    for a baseline. The rank is 1 plus the number of other teams with a lower risk in any of their
    submissions: a team counts once, however many it selected, and baselines do not count.

    >>> mean_ranks([[0.1, 0.3], [0.2, 0.1], [0.2, 0.2]], ["a", "b", None])
    [1.5, 1.5, 2.0]
    """
    ranks = []
    for column in zip(*risks, strict=True):
        best: dict[str, float] = {}
        for team, risk in zip(teams, column, strict=True):
            if team is not None:
                best[team] = min(risk, best.get(team, risk))
        lowest = sorted(best.values())
        # A team's own best is below its risk or equal to it: it is taken off where it is below.
        ranks.append(
            [
                1 + bisect_left(lowest, risk) - (team is not None and best[team] < risk)
                for team, risk in zip(teams, column, strict=True)
            ]
        )
    return [sum(row) / len(row) for row in zip(*ranks, strict=True)]
