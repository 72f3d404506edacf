"""An answer to a general query, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer:
    """What was said about the mean of a query.

    Parameters
    ----------
    value
        The estimate. While the mechanism's leaderboard error is below alpha/4 it is within
        3 alpha/4 of the true mean; it may leave [0, 1] by less than alpha/2.
    query
        Its number, from 1.
    remaining
        How many queries are left, at most.
    classifiers
        How many classifiers were given to the mechanism for it.
    before, after
        The threshold, in [0, 1/2], before and after it. What a query lowers it by is gone.
    crossed
        Whether a classifier crossed the threshold; if none did, the mean is known to be above
        1 - 3 alpha/2, and the value is 1 - 3 alpha/4.
    consistent
        False once what the mechanism said cannot be within alpha/4 of the truth throughout: from
        then on nothing is promised, about earlier answers neither. True proves nothing: an error
        above alpha/4 need not show.
    """

    value: float
    query: int
    remaining: int
    classifiers: int
    before: float
    after: float
    crossed: bool
    consistent: bool

    def __float__(self) -> float:
        return self.value
