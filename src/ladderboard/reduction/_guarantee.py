"""The accuracy that a general estimator over a Ladder can guarantee before seeing data.

Proof: docs/explanation/reduction.md, "What can be promised".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ladderboard import _settings
from ladderboard.bounds import certificate
from ladderboard.errors import OutsideTheorem
from ladderboard.mechanisms import Ladder
from ladderboard.reduction._estimator import LARGEST_ALPHA, RISK_RANGE, QueryAccuracy

_DIGITS = 3
_STEPS = (0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.57)  # of alpha/4
_CELLS = (0.5, 1.0, 2.0)  # of the step
_MAX_N = 10**15


@dataclass(frozen=True)
class AccuracyGuarantee:
    """With probability 1 - beta all answers are within alpha of the true means.

    Parameters
    ----------
    n
        Examples in the sample, drawn independently.
    beta
        The probability that the guarantee fails.
    alpha
        The largest error of an answer.
    queries
        How many queries it allows.
    classifiers
        How many questions to the mechanism they may need.
    mechanism
        The Ladder to give to ``GeneralEstimator``.
    error
        The bound on its leaderboard error, below alpha/4.
    """

    n: int
    beta: float
    alpha: float
    queries: int
    classifiers: int
    mechanism: Ladder
    error: float


def accuracy_guarantee(n: int, beta: float = 0.05) -> AccuracyGuarantee:
    """Return the smallest alpha, to three digits, that n examples can guarantee.

    It holds for every analyst that sees the sample only through the answers.

    Examples
    --------
    >>> import ladderboard as lb
    >>> guarantee = lb.reduction.accuracy_guarantee(n=1_000_000)
    >>> guarantee.alpha, guarantee.queries
    (0.0371, 8)
    >>> ladder, alpha = guarantee.mechanism, guarantee.alpha
    >>> estimator = lb.GeneralEstimator(ladder, n=guarantee.n, alpha=alpha)
    """
    n = _settings.integer("n", n, at_least=1, at_most=_MAX_N)
    beta = _settings.number("beta", beta, above=0, below=1)
    guarantee = _smallest_alpha(n, beta)
    if guarantee is not None:
        return guarantee
    low, high = n, 2 * n
    while _smallest_alpha(high, beta) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _smallest_alpha(middle, beta) is None else (low, middle)
    raise OutsideTheorem(
        f"No alpha up to 1/3 can be guaranteed for n = {n}; use at least n = {high}.", least_n=high
    )


@lru_cache(maxsize=256)
def _smallest_alpha(n: int, beta: float) -> AccuracyGuarantee | None:
    """Return the guarantee with the smallest alpha, by bisection, then over three-digit values."""
    if _guarantee_for(n, beta, float(LARGEST_ALPHA)) is None:
        return None
    low, high = 0.0, float(LARGEST_ALPHA)
    while high - low > high / 100:
        middle = (low + high) / 2
        low, high = (middle, high) if _guarantee_for(n, beta, middle) is None else (low, middle)
    scale = 10 ** (_DIGITS - 1 - math.floor(math.log10(low)))
    # The number of queries jumps with alpha, and the guarantee with it: search on both sides.
    candidates = range(math.floor(low * 0.98 * scale), math.ceil(high * scale) + 1)
    tried = (
        _guarantee_for(n, beta, candidate / scale)
        for candidate in candidates
        if candidate / scale <= LARGEST_ALPHA
    )
    return next((guarantee for guarantee in tried if guarantee), None) or _guarantee_for(
        n, beta, high
    )


def _guarantee_for(n: int, beta: float, alpha: float) -> AccuracyGuarantee | None:
    """Return the guarantee for this alpha with the most accurate Ladder, or None."""
    accuracy = QueryAccuracy.parse(alpha)
    best = None
    for part in _STEPS:
        for cells in _CELLS:
            step = float(f"{part * alpha / 4:.2g}")
            ladder = Ladder(step=step, grid=float(f"{cells * step:.2g}"))
            error = _error_bound(n, beta, accuracy.max_classifiers, ladder)
            if error < alpha / 4 and (best is None or error < best.error):
                best = AccuracyGuarantee(
                    n, beta, alpha, accuracy.queries, accuracy.max_classifiers, ladder, error
                )
    return best


def _error_bound(n: int, beta: float, questions: int, ladder: Ladder) -> float:
    """Bound the leaderboard error on classifiers whose values spread over 1/2."""
    bound = certificate(
        n=n, questions=questions, changes=None, mechanism=ladder, beta=beta, risk_range=RISK_RANGE
    )
    if bound.nats is None:
        raise ValueError("the transcripts of this Ladder cannot be counted")
    return max(map(abs, bound.sample)) + math.sqrt(bound.nats / (2 * n)) / 2
