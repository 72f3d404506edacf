"""General queries answered through any mechanism.

:class:`GeneralEstimator` is the paper's Fig. 2 in its corrected form: a leaderboard that knows only
to compare models estimates the means of a few arbitrary functions. :func:`accuracy_guarantee`
returns the smallest error that can be guaranteed for its answers; :func:`is_faithful` measures
whether the paper's lower bound applies to a mechanism.
"""

from ladderboard.reduction._estimator import (
    AccuracyGuarantee,
    GeneralEstimator,
    QueryAnswer,
    accuracy_guarantee,
)
from ladderboard.reduction._faithful import Faithfulness, ProbeResult, is_faithful

__all__ = [
    "AccuracyGuarantee",
    "Faithfulness",
    "GeneralEstimator",
    "ProbeResult",
    "QueryAnswer",
    "accuracy_guarantee",
    "is_faithful",
]
