"""Which column holds the holdout's ids, where none is named id.

Such a column must not be read as a prediction, nor its rows be taken in the order of the file. Ids
and names are public, so nothing here depends on labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ladderboard.errors import InvalidPredictions
from ladderboard.files._choice import fits, is_index, known_name
from ladderboard.files._problems import listed, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ladderboard.files._columns import Column
    from ladderboard.files._roster import Roster
    from ladderboard.files._want import Want

__all__ = ["IdColumn", "names_ids"]

# How much of a column must be different ids; numbers may come near them by chance.
_TEXTS, _NUMBERS, _ALL = 0.5, 0.9, 1.0
_NAME = re.compile(r"(?:^|[^A-Za-z])(?:id|ID|Id)s?(?:$|[^A-Za-z])|[a-z](?:Id|ID)s?$")


def names_ids(name: str) -> bool:
    """Return whether a column's name says that it holds ids.

    >>> [names_ids(each) for each in ("image_id", "PassengerId", "ID_code", "valid", "grid")]
    [True, True, True, False, False]
    """
    return _NAME.search(name.strip()) is not None


@dataclass(frozen=True)
class IdColumn:
    """Looks for the column of ids among the columns of a file, None being one of another type."""

    names: list[str] | None
    columns: Sequence[Column | None]
    roster: Roster
    want: Want

    def find(self) -> int | None:
        """Return its place, None if there is none; refuse where that is not clear."""
        every = range(len(self.columns))
        plain = [at for at in every if self.names is None or not is_index(self.names[at])]
        shares = {at: self._share(at, plain) for at in plain}
        found = [at for at, share in shares.items() if share and share == max(shares.values())]
        if len(found) > 1:
            which = listed(self._name(at) or f"column {at + 1}" for at in found)
            self._refuse(
                found[0], f"Several columns hold the holdout's ids: {which}; name the right one id."
            )
        if found:
            self._check(found[0], plain)
            return found[0]
        for at in every:
            if at not in plain and self._is_index_of_ids(at):
                return at
        named = [at for at in plain if names_ids(self._name(at) or "")]
        return named[0] if len(named) == 1 and len(plain) > 1 else None

    def _share(self, at: int, plain: list[int]) -> float:
        """Return how much of a column are ids, 0 if that is too little to take it for ids."""
        column, name = self.columns[at], self._name(at) or ""
        if column is None:
            return 0.0
        least = _NUMBERS if self.roster.whole else _TEXTS
        if not names_ids(name):
            predicted = known_name(name, self.want)
            if self.roster.counted and (predicted or len(plain) == 1):
                return 0.0  # ranks, perhaps
            if self.roster.counted or predicted:
                least = _ALL
        share = self.roster.share(column)
        return share if share >= least else 0.0

    def _check(self, at: int, plain: list[int]) -> None:
        """Refuse ids without predictions, and ids that may as well be predictions."""
        name = self._name(at)
        if len(plain) == 1:
            which = "" if name is None else f", {listed([name])},"
            said = f"The only column{which} holds the holdout's ids; add a column of predictions."
            refuse(InvalidPredictions, "missing_column", said, column=name)
        if self.roster.counted and fits(len(plain), self.want) and not names_ids(name or ""):
            said = f"Column {at + 1 if name is None else listed([name])} holds the holdout's ids, "
            said += "but may hold predictions as well: name it id if it holds ids, "
            self._refuse(at, f"{said}otherwise add a column named id.")

    def _is_index_of_ids(self, at: int) -> bool:
        """Return whether an index that slipped into the file tells another order than the file."""
        column = self.columns[at]
        if column is None or self.roster.share(column) < _ALL:
            return False
        if np.array_equal(self.roster.place(column), np.arange(self.roster.n)):
            return False  # joined by position, the result is the same
        in_order = self.roster.whole and bool((np.diff(column.whole_ids()[0]) == 1).all())
        if self.roster.ids is None or in_order:
            said = f"Column {listed([self._name(at)])} may hold the holdout's ids or row numbers: "
            self._refuse(at, f"{said}name it id to join by it, or remove it.")
        return True

    def _name(self, at: int) -> str | None:
        return None if self.names is None else self.names[at]

    def _refuse(self, at: int, message: str) -> NoReturn:
        refuse(InvalidPredictions, "unclear_column", message, column=self._name(at))
