"""General queries answered through any mechanism.

:class:`GeneralEstimator` is the paper's Fig. 2 in its corrected form: a leaderboard that knows only
to compare models estimates the means of arbitrary functions, a few of them. :func:`promise`
finds how accurate its answers can be promised to be; :func:`is_faithful`
measures whether a mechanism is of the kind for which the paper's lower bound holds.
"""

from ladderboard.reduction._estimator import Answer, GeneralEstimator
from ladderboard.reduction._faithful import Faithfulness, Probed, is_faithful
from ladderboard.reduction._promise import Promise, promise

__all__ = [
    "Answer",
    "Faithfulness",
    "GeneralEstimator",
    "Probed",
    "Promise",
    "is_faithful",
    "promise",
]
