"""The roster: the holdout's ids in order, which predictions are joined to. It knows no label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidLabels, InvalidSetting
from ladderboard.files._columns import Mixed, Numbers, Text
from ladderboard.files._memory import as_column
from ladderboard.files._places import Places, scrambled
from ladderboard.files._polars import load_polars
from ladderboard.files._problems import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._holdout import HoldoutTable

__all__ = ["KINDS", "Kind", "Roster"]

Kind = Literal["number", "text"]
KINDS = ("number", "text")
_SAMPLE = 20


class Roster:
    """What predictions are joined to: ids, or just a number of rows, in the holdout's order.

    Made once by :meth:`of` and kept; it can be pickled. It holds the ids, the declared ``kind`` of
    a label, ``"number"`` or ``"text"``, and how many labels an example has. These are public, and
    no refusal can tell more.

    Examples
    --------
    >>> Roster.of(["a", "b", "c"], kind="number")
    Roster(n=3, ids='a', 'b', 'c', kind='number')
    >>> Roster.of(1000, kind="text")
    Roster(n=1000, ids=None, kind='text')
    """

    noun = "id"

    def __init__(
        self, n: int, ids: Any = None, kind: str | None = None, width: int | None = None
    ) -> None:
        self.n = n
        self.ids = ids
        self.kind = kind
        self.width = width
        whole = isinstance(ids, np.ndarray)
        self.whole = ids is None or whole
        """Whether ids are whole numbers; rows without ids are numbered from 0."""
        self.ordinal = ids is None or (whole and np.array_equal(ids, np.arange(n)))
        """Whether ids are 0, 1, ..., n - 1, in this order."""
        self.counted = self.ordinal or (whole and _counts(ids))
        """Whether ids are 0 to n - 1 or 1 to n in any order, as ranks and classes may be."""
        self._places: Places | None = None
        self._words: dict[str, int] | None = None

    @classmethod
    def of(cls, source: HoldoutTable | Any, *, kind: Kind | None = None) -> Roster:
        """Return the roster of a holdout's table, of ids, or of so many rows.

        ``kind`` is needed for losses that compare labels and declare no classes; a table knows it.
        """
        if kind is not None:
            _settings.one_of("kind", kind, KINDS)
        if hasattr(source, "labels") and hasattr(source, "ids"):
            labels = source.labels
            width = labels.shape[1] if labels.ndim == 2 else None
            return cls(len(labels), source.ids, kind or source.kind, width)
        if isinstance(source, int | np.integer | float):
            return cls(_settings.whole("n", source, at_least=1), None, kind)
        column = as_column(source)
        if column is None:
            raise InvalidSetting(
                f"A roster is made of a table, of ids or of a number of rows; "
                f"got {_settings.shown(source)}."
            )
        return cls(len(column), read_ids(column), kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return Roster, (self.n, self.ids, self.kind, self.width)

    def __repr__(self) -> str:
        ids = None if self.ids is None else listed(self.name(np.arange(min(self.n, 11))))
        return f"Roster(n={self.n}, ids={ids}, kind={self.kind!r})"

    def name(self, places: NDArray[np.int64]) -> list[Any]:
        """Return the ids at some places: whole numbers or text."""
        if self.ids is None:
            return places.tolist()
        if isinstance(self.ids, np.ndarray):
            return self.ids[places].tolist()
        return [self.ids[each] for each in places.tolist()]

    def rule(self) -> str:
        """Return what ids look like, in words."""
        some = listed(self.name(np.arange(min(3, self.n))))
        if self.ids is None:
            return f"The holdout's rows are numbered from 0 to {self.n - 1}"
        return f"The holdout's ids are {'whole numbers' if self.whole else 'text'}, such as {some}"

    def knows(self, text: str) -> bool:
        """Return whether a text is one of the ids."""
        return bool(self.place(Mixed([text.strip()]))[0] >= 0)

    def share(self, column: Column) -> float:
        """Return how much of a column are different ids: 1 if it is just the holdout's ids.

        >>> Roster.of(["a", "b", "c", "d"]).share(Mixed(["a", "b", "b", "x"]))
        0.5
        """
        rows = len(column)
        if not rows:
            return 0.0
        some = np.linspace(0, rows - 1, min(rows, _SAMPLE)).astype(np.int64)
        if (self.place(column.take(some)) < 0).all():  # most columns are not ids at all
            return 0.0
        places = self.place(column)
        seen = np.zeros(self.n, np.bool_)
        seen[places[places >= 0]] = True
        return int(seen.sum()) / max(rows, self.n)

    def place(self, column: Column) -> NDArray[np.int64]:
        """Return where each id of a column stands, -1 for one that is unknown."""
        if self.whole:
            numbers, ok = column.whole_ids()
            if self.ordinal:
                if len(numbers) and numbers.min() >= 0 and numbers.max() < self.n and ok.all():
                    return numbers
                inside = ok & (numbers >= 0) & (numbers < self.n)
                return np.where(inside, numbers, -1)
            if self._places is None:
                self._places = Places(scrambled(self.ids))
            found = self._places.find(scrambled(numbers))
            return found if ok.all() else np.where(ok, found, -1)
        keys = column.text_ids()
        if isinstance(keys, list):
            if self._words is None:
                self._words = {each: at for at, each in enumerate(self.ids)}
            return np.array([self._words.get(each, -1) for each in keys], dtype=np.int64)
        return self._place_series(keys)

    def _place_series(self, keys: Any) -> NDArray[np.int64]:
        """Look text up by its hash, and compare the text itself before believing it."""
        polars = load_polars()
        if isinstance(self.ids, list):
            self.ids = polars.Series(self.ids, dtype=polars.String)
        if len(keys) == self.n and not keys.null_count() and bool((keys == self.ids).all()):
            return np.arange(self.n)
        if self._places is None:
            self._places = Places(self.ids.hash().to_numpy())
        if self._places.clash:  # two ids with one hash: never seen, so slow is good enough
            return self.place(Mixed(keys.to_list()))
        found = self._places.find(keys.hash().to_numpy())
        there = self.ids.gather(np.maximum(found, 0))
        same = (there == keys).fill_null(value=False).to_numpy()
        return found if same.all() else np.where(same, found, -1)


def _counts(ids: NDArray[np.int64]) -> bool:
    """Return whether ids, which differ, are 0 to n - 1 or 1 to n."""
    low = int(ids.min())
    return low in {0, 1} and int(ids.max()) == low + len(ids) - 1


def read_ids(column: Column) -> Any:
    """Return the owner's ids: an array if all are whole numbers as people write them, else text."""
    if not len(column):
        raise InvalidLabels("A holdout needs at least one row.")
    ids: Any
    if isinstance(column, Text):
        polars = load_polars()
        numbers = column.series.cast(polars.Int64, strict=False)
        plain = numbers.cast(polars.String) == column.series  # 007 and +7 are text
        ids = numbers.to_numpy() if plain.fill_null(value=False).all() else column.text_ids()
        gaps = (column.series.fill_null("") == "").to_numpy()
    elif isinstance(column, Mixed) and not Mixed(column.values[:1]).whole_ids()[1].all():
        ids = column.text_ids()  # one that is no number will do
        gaps = np.array([each in {None, ""} for each in ids])
    else:
        whole, ok = column.whole_ids()
        if isinstance(column, Mixed) and any(isinstance(x, str) for x in column.values):
            ok = ok & np.array(
                [str(x) == str(y) for x, y in zip(column.values, whole, strict=True)]
            )
        ids = whole if ok.all() else column.text_ids()
        gaps = np.array([each in {None, ""} for each in ids]) if isinstance(ids, list) else ~ok
    if gaps.any():
        raise InvalidLabels(f"Every row of the holdout needs an id; {int(gaps.sum())} have none.")
    if isinstance(ids, list):
        seen: set[str] = set()
        again = [each for each in ids if each in seen or seen.add(each)]  # type: ignore[func-returns-value]
    elif isinstance(ids, np.ndarray):
        values, counts = np.unique(ids, return_counts=True)
        again = values[counts > 1].tolist()
    else:
        again = ids.filter(ids.is_duplicated()).unique(maintain_order=True).to_list()
    if again:
        raise InvalidLabels(f"Ids of the holdout must differ; these come again: {listed(again)}.")
    return ids


def empty_ids(column: Column) -> NDArray[np.bool_]:
    """Return where an id is not there at all."""
    if isinstance(column, Numbers):
        return column.numbers().bad.get("missing_value", np.zeros(len(column), np.bool_))
    if isinstance(column, Text):
        return (column.series.fill_null("").str.strip_chars() == "").to_numpy()
    gaps = [each is None or each == "" or each != each for each in column.values]  # noqa: PLR0124 - NaN
    return np.array(gaps, dtype=np.bool_)
