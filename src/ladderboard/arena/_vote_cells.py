"""Cells of votes: the games of one mechanism at one size, summed up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.arena._moments import majority_attack_moments
from ladderboard.arena._vote import alpha_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ladderboard.arena._vote import Vote

__all__ = ["VoteCell", "line_of", "vote_cells"]


@dataclass(frozen=True)
class VoteCell:
    """One mechanism at one n and k.

    ``line`` is ``line_of(n, k)``, ``exact_mean`` the mean bias if all k answers were exact,
    ``spent`` in how many games the threshold was spent before k answers, ``voted`` in how many the
    vote was answered too; ``last_error_mean`` is over these, and None if there are none.
    """

    n: int
    k: int
    mechanism: str
    games: int
    alpha: float
    bias_mean: float
    bias_std: float
    bias_units: float
    line: float
    exact_mean: float
    answered_mean: float
    spent: int
    voted: int
    last_error_mean: float | None
    farthest: float


def line_of(n: int, k: float) -> float:
    """Return sqrt(k/n)/pi, the mean bias for exact answers to first order in k/n.

    An exactly answered guess is right on a label with probability p = 1/2 + 1/sqrt(2 pi n), nearly;
    the vote is where Bin(k, p) is above k/2, half of the ties counted.
    """
    return math.sqrt(k / n) / math.pi


def vote_cells(votes: Iterable[Vote]) -> list[VoteCell]:
    """Sum votes up, in their order."""
    groups: dict[tuple[int, int, str], list[Vote]] = {}
    for vote in votes:
        groups.setdefault((vote.n, vote.k, vote.mechanism), []).append(vote)
    return [_cell(*key, group) for key, group in groups.items()]


def _cell(n: int, k: int, mechanism: str, votes: list[Vote]) -> VoteCell:
    biases = np.array([vote.bias for vote in votes])
    errors = [vote.last_error for vote in votes if vote.last_error is not None]
    return VoteCell(
        n,
        k,
        mechanism,
        games=len(votes),
        alpha=float(alpha_of(k)),
        bias_mean=float(biases.mean()),
        bias_std=float(biases.std(ddof=1)) if len(votes) > 1 else 0.0,
        bias_units=float(biases.mean()) * math.sqrt(n),
        line=line_of(n, k),
        exact_mean=0.5 - majority_attack_moments(n, k).mean,
        answered_mean=float(np.mean([vote.answered for vote in votes])),
        spent=sum(vote.answered < k for vote in votes),
        voted=len(errors),
        last_error_mean=float(np.mean(errors)) if errors else None,
        farthest=max(vote.farthest for vote in votes),
    )
