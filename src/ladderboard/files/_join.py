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

__all__ = ["Rows", "join"]


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


def join(
    ids: Column | None, rows: int, roster: Roster, problems: Problems
) -> NDArray[np.int64] | None:
    """Return the place of every row, None where they are in order; note what does not fit."""
    if ids is None:
        if rows != roster.n:
            said = f"The holdout has {many(roster.n, 'row')}; the predictions have {rows}. "
            said += "Without a column named id they are joined by position."
            problems.add("wrong_count", said, count=abs(rows - roster.n))
        return None
    places = roster.place(ids)
    seen = np.zeros(roster.n, np.bool_)
    if len(places) and places.min() >= 0:
        seen[places] = True
        if len(places) == roster.n and seen.all():
            return places
    else:
        seen[places[places >= 0]] = True
    _note(ids, places, seen, roster, problems)
    return places


def _note(
    ids: Column,
    places: NDArray[np.int64],
    seen: NDArray[np.bool_],
    roster: Roster,
    problems: Problems,
) -> None:
    """Note empty, unknown, repeated and missing ids."""
    known = places >= 0
    empty = empty_ids(ids)
    problems.add_rows("empty_id", "The id is empty", empty, Rows(), column="id")
    unknown = ~known & ~empty
    if len(unknown) and unknown.all():  # most likely ids of another kind, so both are shown
        shown = ids.show(np.arange(min(len(ids), 3)))
        said = f"No id is one of the holdout's. {roster.rule()}; the file's are {listed(shown)}."
        texts = [str(each) for each in shown]
        problems.add("unknown_id", said, column="id", count=len(unknown), ids=texts)
    else:
        rule = "Not among the holdout's ids"
        problems.add_rows("unknown_id", rule, unknown, Rows(ids), column="id")
    again = np.bincount(places[known], minlength=roster.n) > 1
    rule = "More than once in the file"
    problems.add_rows("duplicate_id", rule, again, roster, column="id")
    problems.add_rows("missing_id", "Missing from the file", ~seen, roster, column="id")
