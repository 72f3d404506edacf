"""What a general estimator can promise before the data, with a Ladder under it.

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
        The probability with which the promise may be broken.
    alpha
        How far off answers may be.
    queries
        How many there are.
    classifiers
        How many questions that may take.
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
    """Return the least alpha of three digits that can be promised for a sample of n examples.

    Whatever an analyst asks, as long as the sample is seen through the answers only.

    Examples
    --------
    >>> import ladderboard as lb
    >>> found = lb.reduction.accuracy_guarantee(n=1_000_000)
    >>> found.alpha, found.queries
    (0.0371, 8)
    >>> estimator = lb.GeneralEstimator(found.mechanism, n=found.n, alpha=found.alpha)
    """
    n = _settings.integer("n", n, at_least=1, at_most=_MAX_N)
    beta = _settings.number("beta", beta, above=0, below=1)
    found = _smallest_alpha(n, beta)
    if found is not None:
        return found
    low, high = n, 2 * n
    while _smallest_alpha(high, beta) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _smallest_alpha(middle, beta) is None else (low, middle)
    raise OutsideTheorem(
        f"No alpha up to 1/3 can be promised for n = {n}; n = {high} would do.", least_n=high
    )


@lru_cache(maxsize=256)
def _smallest_alpha(n: int, beta: float) -> AccuracyGuarantee | None:
    """Search by halving, then among numbers of three digits; what is returned was checked."""
    if _guarantee_for(n, beta, float(LARGEST_ALPHA)) is None:
        return None
    low, high = 0.0, float(LARGEST_ALPHA)
    while high - low > high / 100:
        middle = (low + high) / 2
        low, high = (middle, high) if _guarantee_for(n, beta, middle) is None else (low, middle)
    scale = 10 ** (_DIGITS - 1 - math.floor(math.log10(low)))
    # The number of queries goes in jumps, and what can be promised with it: look on both sides.
    candidates = range(math.floor(low * 0.98 * scale), math.ceil(high * scale) + 1)
    tried = (
        _guarantee_for(n, beta, each / scale)
        for each in candidates
        if each / scale <= LARGEST_ALPHA
    )
    return next((found for found in tried if found), None) or _guarantee_for(n, beta, high)


def _guarantee_for(n: int, beta: float, alpha: float) -> AccuracyGuarantee | None:
    """Return the promise of this alpha with the Ladder that errs least, if it is kept."""
    sizes = QueryAccuracy.read(alpha)
    best = None
    for part in _STEPS:
        for cells in _CELLS:
            step = float(f"{part * alpha / 4:.2g}")
            ladder = Ladder(step=step, grid=float(f"{cells * step:.2g}"))
            error = _error_bound(n, beta, sizes.classifiers, ladder)
            if error < alpha / 4 and (best is None or error < best.error):
                best = AccuracyGuarantee(
                    n, beta, alpha, sizes.queries, sizes.classifiers, ladder, error
                )
    return best


def _error_bound(n: int, beta: float, questions: int, ladder: Ladder) -> float:
    """Bound the leaderboard error on classifiers whose values spread over 1/2."""
    found = certificate(
        n=n, questions=questions, changes=None, mechanism=ladder, beta=beta, risk_range=RISK_RANGE
    )
    assert found.nats is not None  # noqa: S101 - a Ladder's transcripts can be counted
    return max(map(abs, found.sample)) + math.sqrt(found.nats / (2 * n)) / 2
