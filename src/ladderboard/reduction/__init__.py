"""General queries answered through any mechanism.

:class:`GeneralEstimator` is the paper's Fig. 2 in its corrected form: a leaderboard that knows only
to compare models estimates the means of arbitrary functions, a few of them.
"""

from ladderboard.reduction._answer import Answer
from ladderboard.reduction._estimator import GeneralEstimator

__all__ = ["Answer", "GeneralEstimator"]
