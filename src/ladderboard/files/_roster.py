"""The roster: the holdout's ids in order, and joining rows to them. It knows no label.

Ids are looked up among sorted keys: the top bits of a key lead to its short bucket, so that a
lookup is three gathers from small arrays. A hash join builds its table anew for every file, and
takes ten times as long.

Most files hold ids 0..n-1 and a few classes. For these each class goes into a single byte, as soon
as a part of the file was read, so the columns never stand in memory as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidLabels, InvalidSetting
from ladderboard.files._columns import Mixed, Numbers, Text, load_polars
from ladderboard.files._memory import as_column
from ladderboard.files._problems import format_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._holdout import HoldoutTable
    from ladderboard.files._problems import Problems

# 2^64 over the golden ratio: an odd factor, so no two numbers share a product.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
KINDS = ("number", "text")
_SAMPLE = 20
_ZERO = 128  # the byte that stands for 0; the byte 0 is left where nothing was put
_LEAST, _MOST = 1 - _ZERO, 255 - _ZERO


def scrambled(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a key for each whole number: another one for each, with well-mixed top bits."""
    return numbers.view(np.uint64) * _FACTOR


class Places:
    """Where each of many 64-bit keys stands. ``clash`` says that two keys are the same."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        bits = len(keys).bit_length() + 1  # a key for every two to four buckets
        self._shift = np.uint64(64 - bits)
        order = np.argsort(keys, kind="stable")
        self._sorted = keys[order]
        self._order = order.astype(np.uint32 if len(keys) < 2**32 else np.int64)
        self.clash = bool((self._sorted[1:] == self._sorted[:-1]).any())
        sizes = np.bincount((self._sorted >> self._shift).astype(np.intp), minlength=2**bits)
        self._starts = np.append(0, np.cumsum(sizes)).astype(self._order.dtype)

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the place of each key, -1 for those that have none."""
        found = np.full(len(keys), -1, dtype=np.int64)
        if not len(self._sorted):
            return found
        buckets = (keys >> self._shift).astype(np.intp)
        at = self._starts[buckets].astype(np.intp)
        last = len(self._sorted) - 1
        hit = self._sorted[np.minimum(at, last)] == keys
        hit &= at <= last
        if hit.all():
            return self._order[at].astype(np.int64)
        found[hit] = self._order[at[hit]]
        # What is not first in its bucket is looked for further on, fewer every time.
        rest = np.flatnonzero(~hit)
        at, ends = at[rest] + 1, self._starts[buckets[rest] + 1].astype(np.intp)
        while len(rest):
            inside = at < ends
            rest, at, ends = rest[inside], at[inside], ends[inside]
            hit = self._sorted[at] == keys[rest]
            found[rest[hit]] = self._order[at[hit]]
            rest, at, ends = rest[~hit], at[~hit] + 1, ends[~hit]
        return found


Kind = Literal["number", "text"]


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
            _settings.choice("kind", kind, KINDS)
        if hasattr(source, "labels") and hasattr(source, "ids"):
            labels = source.labels
            width = labels.shape[1] if labels.ndim == 2 else None
            return cls(len(labels), source.ids, kind or source.kind, width)
        if isinstance(source, int | np.integer | float):
            return cls(_settings.integer("n", source, at_least=1), None, kind)
        column = as_column(source)
        if column is None:
            raise InvalidSetting(
                f"A roster is made of a table, of ids or of a number of rows; "
                f"got {_settings.safe_repr(source)}."
            )
        return cls(len(column), read_ids(column), kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return Roster, (self.n, self.ids, self.kind, self.width)

    def __repr__(self) -> str:
        ids = None if self.ids is None else format_names(self.name(np.arange(min(self.n, 11))))
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
        some = format_names(self.name(np.arange(min(3, self.n))))
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
        raise InvalidLabels(
            f"Ids of the holdout must differ; these come again: {format_names(again)}."
        )
    return ids


def empty_ids(column: Column) -> NDArray[np.bool_]:
    """Return where an id is not there at all."""
    if isinstance(column, Numbers):
        return column.numbers().bad.get("missing_value", np.zeros(len(column), np.bool_))
    if isinstance(column, Text):
        return (column.series.fill_null("").str.strip_chars() == "").to_numpy()
    gaps = [each is None or each == "" or each != each for each in column.values]  # noqa: PLR0124 - NaN
    return np.array(gaps, dtype=np.bool_)


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
            said = f"The holdout has {format_count(roster.n, 'row')}; the predictions have {rows}. "
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
        said = (
            f"No id is one of the holdout's. {roster.rule()}; the file's are {format_names(shown)}."
        )
        texts = [str(each) for each in shown]
        problems.add("unknown_id", said, column=column, count=len(unknown), ids=texts)
    else:
        rule = "Not among the holdout's ids"
        problems.add_rows("unknown_id", rule, unknown, Rows(ids), column=column)
    again = np.bincount(places[known], minlength=roster.n) > 1
    rule = "More than once in the file"
    problems.add_rows("duplicate_id", rule, again, roster, column=column)
    problems.add_rows("missing_id", "Missing from the file", ~seen, roster, column=column)


class Small:
    """Predictions for the ids 0..n-1.

    Examples
    --------
    >>> small = Small(3)
    >>> small.put([np.array([2, 0]), np.array([7, -1])]), small.put([np.array([1]), np.array([5])])
    (True, True)
    >>> small.all(None)
    array([-1,  5,  7])
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._bytes = np.zeros(n, np.uint8)
        self._rows = 0

    def put(self, columns: Sequence[NDArray[Any]]) -> bool:
        """Take a piece of ids and one of values; False if an id or a value is out of range."""
        ids, values = columns
        if not len(ids):
            return True
        # Read without a sign, what is below 0 is past n as well.
        whole = ids.view(np.uint64) if ids.dtype == np.int64 else ids
        if whole.max() >= self._n or (whole is ids and ids.min() < 0):
            return False
        if values.min() < _LEAST or values.max() > _MOST:
            return False
        small = values.astype(np.uint8)
        small += np.uint8(_ZERO)  # past 255 it goes on from 0, which is just right below 0
        self._bytes[ids] = small
        self._rows += len(ids)
        return True

    def all(self, classes: tuple[Any, ...] | None) -> NDArray[np.int64] | None:
        """Return the values, None if an id came twice or never, or a value is no class."""
        if self._rows != self._n or not self._bytes.all():
            return None
        if classes is not None:
            known = np.zeros(256, np.bool_)
            known[[int(each) + _ZERO for each in classes if _fits(each)]] = True
            if not known[self._bytes].all():
                return None
        return np.subtract(self._bytes, _ZERO, dtype=np.int64)


def _fits(value: Any) -> bool:
    return bool(_LEAST <= value <= _MOST) and value == int(value)
