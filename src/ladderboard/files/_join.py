"""Joining: from the rows of a file to the holdout's, and how rows are named in a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.files._problems import listed, many
from ladderboard.files._roster import empty_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._problems import Problems
    from ladderboard.files._roster import Roster

__all__ = ["Rows", "join", "put_small"]


class Rows:
    """How the rows of a file are named: by their ids, or counted from 1 if they have none."""

    def __init__(self, ids: Column | None = None) -> None:
        self.ids = ids
        self.noun = "row" if ids is None else "id"

    def name(self, places: NDArray[np.int64]) -> list[Any]:
        """Return the names of some rows."""
        if self.ids is None:
            return [f"row {each + 1}" for each in places.tolist()]
        return self.ids.show(places)


def put_small(places: NDArray[np.int64], values: NDArray[Any], n: int) -> NDArray[Any] | None:
    """Put whole numbers of few values in their places; None if this is not possible.

    They go into single bytes, which a cache can hold, and 0 is left where nothing was put: one
    pass where there would be two, over an eighth of the memory.
    """
    if values.ndim != 1 or values.dtype != np.int64 or len(places) != n or places.min() < 0:
        return None
    low = int(values.min()) - 1
    if int(values.max()) - low > 255 or low < -(2**62):
        return None
    small = np.empty(n, np.uint8)
    np.subtract(values, low, out=small, casting="unsafe")
    put = np.zeros(n, np.uint8)
    put[places] = small
    return np.add(put, low, dtype=np.int64) if put.all() else None


def join(
    ids: Column | None,
    places: NDArray[np.int64] | None,
    rows: int,
    roster: Roster,
    problems: Problems,
    *,
    column: str = "id",
) -> None:
    """Note what does not fit: ids that are not just the holdout's, or the number of rows."""
    if ids is None or places is None:
        if rows != roster.n:
            said = f"The holdout has {many(roster.n, 'row')}; the predictions have {rows}. "
            said += "Without a column named id they are joined by position."
            problems.add("wrong_count", said, count=abs(rows - roster.n))
        return
    seen = np.zeros(roster.n, np.bool_)
    if len(places) and places.min() >= 0:
        seen[places] = True
        if len(places) == roster.n and seen.all():
            return
    else:
        seen[places[places >= 0]] = True
    _note(ids, places, seen, roster, problems, column=column)


def _note(
    ids: Column,
    places: NDArray[np.int64],
    seen: NDArray[np.bool_],
    roster: Roster,
    problems: Problems,
    *,
    column: str,
) -> None:
    """Note empty, unknown, repeated and missing ids."""
    known = places >= 0
    empty = empty_ids(ids)
    problems.add_rows("empty_id", "The id is empty", empty, Rows(), column=column)
    unknown = ~known & ~empty
    if len(unknown) and unknown.all():  # most likely ids of another kind, so both are shown
        shown = ids.show(np.arange(min(len(ids), 3)))
        said = f"No id is one of the holdout's. {roster.rule()}; the file's are {listed(shown)}."
        texts = [str(each) for each in shown]
        problems.add("unknown_id", said, column=column, count=len(unknown), ids=texts)
    else:
        rule = "Not among the holdout's ids"
        problems.add_rows("unknown_id", rule, unknown, Rows(ids), column=column)
    again = np.bincount(places[known], minlength=roster.n) > 1
    rule = "More than once in the file"
    problems.add_rows("duplicate_id", rule, again, roster, column=column)
    problems.add_rows("missing_id", "Missing from the file", ~seen, roster, column=column)
