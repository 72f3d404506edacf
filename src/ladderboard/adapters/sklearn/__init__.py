"""scikit-learn: the candidates of a search, judged by the guard.

:func:`judge_search` asks about those candidates of a fitted search that set a record of its own
cross-validated score: a few questions. :class:`GuardScorer` asks about every candidate, for when
there are no data left to validate on: one question for each candidate, not for each fold.
"""

from ladderboard.adapters.sklearn._scorer import (
    GuardScorer,
    JudgedSearch,
    SearchStopped,
    judge_search,
)

__all__ = ["GuardScorer", "JudgedSearch", "SearchStopped", "judge_search"]
