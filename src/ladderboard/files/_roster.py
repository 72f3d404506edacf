"""The roster: the holdout's ids in order, and joining rows to them. It contains no labels.

Ids are looked up among sorted keys: the top bits of a key select a short bucket, so a lookup takes
three gathers from small arrays. A hash join would rebuild its table for every file and take ten
times as long.

Most files hold ids 0..n-1 and a few classes. For these each class is stored in a single byte as
soon as its block of the file is read, so the full columns are never in memory.
"""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidLabels, InvalidSetting
from ladderboard.files._columns import MixedColumn, NumberColumn, TextColumn, load_polars
from ladderboard.files._memory import as_column
from ladderboard.files._source import format_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._declared import DeclaredColumns
    from ladderboard.files._holdout import HoldoutTable
    from ladderboard.files._source import Problems

# 2^64 divided by the golden ratio. It is odd, so different numbers have different products.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
KINDS = ("number", "text")
_SAMPLE = 20
_ZERO = 128  # the byte that stands for the value 0; a byte 0 means that no value was stored
_SMALLEST, _LARGEST = 1 - _ZERO, 255 - _ZERO


def hash_integers(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a distinct key for each distinct integer, with well-mixed top bits."""
    return numbers.view(np.uint64) * _FACTOR


_MAX_SHARED_IDS = 2**20


def share_ids(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the same ids; those that are 0, 1, ..., n - 1 from an array that holdouts share.

    >>> share_ids(np.arange(7)).base is share_ids(np.arange(8)).base
    True
    """
    n = len(ids)
    if not 0 < n <= _MAX_SHARED_IDS:
        return ids
    first = _first_integers(1 << (n - 1).bit_length())[:n]
    return first if np.array_equal(ids, first) else ids


@lru_cache(maxsize=32)
def _first_integers(count: int) -> NDArray[np.int64]:
    integers = np.arange(count)
    integers.flags.writeable = False
    return integers


class KeyIndex:
    """Finds the row of a 64-bit key. ``has_duplicates`` says that two rows have the same key."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        bits = len(keys).bit_length() + 1  # two to four buckets per key
        self._shift = np.uint64(64 - bits)
        order = np.argsort(keys, kind="stable")
        self._sorted = keys[order]
        self._order = order.astype(np.uint32 if len(keys) < 2**32 else np.int64)
        self.has_duplicates = bool((self._sorted[1:] == self._sorted[:-1]).any())
        sizes = np.bincount((self._sorted >> self._shift).astype(np.intp), minlength=2**bits)
        self._starts = np.append(0, np.cumsum(sizes)).astype(self._order.dtype)

    def lookup(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the row of each key, -1 for unknown keys."""
        rows = np.full(len(keys), -1, dtype=np.int64)
        if not len(self._sorted):
            return rows
        buckets = (keys >> self._shift).astype(np.intp)
        position = self._starts[buckets].astype(np.intp)
        last_position = len(self._sorted) - 1
        matches = self._sorted[np.minimum(position, last_position)] == keys
        matches &= position <= last_position
        if matches.all():
            return self._order[position].astype(np.int64)
        rows[matches] = self._order[position[matches]]
        # Keys that are not first in their bucket: step through it, with fewer keys each time.
        unresolved = np.flatnonzero(~matches)
        position = position[unresolved] + 1
        bucket_ends = self._starts[buckets[unresolved] + 1].astype(np.intp)
        while len(unresolved):
            in_bucket = position < bucket_ends
            unresolved, position = unresolved[in_bucket], position[in_bucket]
            bucket_ends = bucket_ends[in_bucket]
            matches = self._sorted[position] == keys[unresolved]
            rows[unresolved[matches]] = self._order[position[matches]]
            unresolved, position = unresolved[~matches], position[~matches] + 1
            bucket_ends = bucket_ends[~matches]
        return rows


Kind = Literal["number", "text"]


class Roster:
    """The rows to which predictions are joined: ids in the holdout's order, or just a row count.

    Made by :meth:`of`; it can be pickled. It holds the ids, the declared ``kind`` of a label,
    ``"number"`` or ``"text"``, and how many labels an example has. All of these are public, and a
    refusal reveals nothing else.

    Examples
    --------
    >>> Roster.of(["a", "b", "c"], kind="number")
    Roster(n=3, ids='a', 'b', 'c', kind='number')
    >>> Roster.of(1000, kind="text")
    Roster(n=1000, ids=None, kind='text')
    """

    noun = "id"

    def __init__(
        self,
        n: int,
        ids: Any = None,
        kind: str | None = None,
        width: int | None = None,
        columns: DeclaredColumns | None = None,
        *,
        may_be_labels: bool = True,
    ) -> None:
        self.n = n
        self.ids = ids
        self.kind = kind
        self.width = width
        self.columns = columns
        self.may_be_labels = may_be_labels
        """Whether predictions may be named like labels without being declared."""
        integers = isinstance(ids, np.ndarray)
        self.has_integer_ids = ids is None or integers
        """Whether ids are integers; rows without ids are numbered from 0."""
        self.is_sequential = ids is None or (integers and np.array_equal(ids, np.arange(n)))
        """Whether the ids are 0, 1, ..., n - 1, in this order."""
        self.is_consecutive = self.is_sequential or (integers and _are_consecutive(ids))
        """Whether the ids are 0 to n - 1 or 1 to n in any order, so that ranks look the same."""
        self._key_index: KeyIndex | None = None
        self._row_by_text: dict[str, int] | None = None

    @classmethod
    def of(
        cls,
        source: HoldoutTable | Any,
        *,
        kind: Kind | None = None,
        columns: DeclaredColumns | None = None,
    ) -> Roster:
        """Return the roster of a holdout's table, of ids, or of a number of rows.

        ``kind`` is needed for losses that compare labels without declared classes; a table has it.
        ``columns`` are the declared names of a submission's columns.
        """
        if kind is not None:
            _settings.choice("kind", kind, KINDS)
        if hasattr(source, "labels") and hasattr(source, "ids"):
            labels = source.labels
            width = labels.shape[1] if labels.ndim == 2 else None
            return cls(len(labels), source.ids, kind or source.kind, width, columns)
        if isinstance(source, int | np.integer | float):
            n = _settings.integer("n", source, at_least=1)
            return cls(n, None, kind, columns=columns)
        column = as_column(source)
        if column is None:
            raise InvalidSetting(
                f"A roster is made of a table, of ids or of a number of rows; "
                f"got {_settings.safe_repr(source)}."
            )
        return cls(len(column), read_ids(column), kind, columns=columns)

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(Roster, may_be_labels=self.may_be_labels)
        return make, (self.n, self.ids, self.kind, self.width, self.columns)

    def __repr__(self) -> str:
        ids = None if self.ids is None else format_names(self.names_of(np.arange(min(self.n, 11))))
        return f"Roster(n={self.n}, ids={ids}, kind={self.kind!r})"

    def names_of(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the ids of some rows, as integers or text."""
        if self.ids is None:
            return rows.tolist()
        if isinstance(self.ids, np.ndarray):
            return self.ids[rows].tolist()
        return [self.ids[row] for row in rows.tolist()]

    def sort_by_id(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the rows of a mask in the order of their ids.

        The holdout's own order may depend on labels, such as of rows that are sorted by class.
        """
        rows = np.flatnonzero(mask)
        if self.ids is None or not len(rows):
            return rows
        names = self.names_of(rows)
        return rows[sorted(range(len(rows)), key=names.__getitem__)]

    @cached_property
    def first_ids(self) -> list[Any]:
        """The first three ids in their own order."""
        return self.names_of(self.sort_by_id(np.ones(self.n, dtype=np.bool_))[:3])

    def describe_ids(self) -> str:
        """Return a sentence about the form of the ids, with examples: the first in their order."""
        if self.ids is None:
            return f"The holdout's rows are numbered from 0 to {self.n - 1}"
        examples = format_names(self.first_ids)
        kind = "whole numbers" if self.has_integer_ids else "text"
        return f"The holdout's ids are {kind}, such as {examples}"

    def contains(self, text: str) -> bool:
        """Return whether some text is one of the ids."""
        return bool(self.match_ids(MixedColumn([text.strip()]))[0] >= 0)

    def share_of_ids(self, column: Column) -> float:
        """Return the share of distinct ids in a column: 1 if it holds exactly the holdout's ids.

        >>> Roster.of(["a", "b", "c", "d"]).share_of_ids(MixedColumn(["a", "b", "b", "x"]))
        0.5
        """
        size = len(column)
        if not size:
            return 0.0
        sampled = np.linspace(0, size - 1, min(size, _SAMPLE)).astype(np.int64)
        if (self.match_ids(column.take(sampled)) < 0).all():  # most columns hold no ids at all
            return 0.0
        rows = self.match_ids(column)
        seen = np.zeros(self.n, np.bool_)
        seen[rows[rows >= 0]] = True
        return int(seen.sum()) / max(size, self.n)

    def match_ids(self, column: Column) -> NDArray[np.int64]:
        """Return the holdout row of each id in a column, -1 for unknown ids."""
        if self.has_integer_ids:
            numbers, valid = column.integer_ids()
            if self.is_sequential:
                if len(numbers) and numbers.min() >= 0 and numbers.max() < self.n and valid.all():
                    return numbers
                inside = valid & (numbers >= 0) & (numbers < self.n)
                return np.where(inside, numbers, -1)
            if self._key_index is None:
                self._key_index = KeyIndex(hash_integers(self.ids))
            rows = self._key_index.lookup(hash_integers(numbers))
            return rows if valid.all() else np.where(valid, rows, -1)
        keys = column.text_ids()
        if isinstance(keys, list):
            if self._row_by_text is None:
                self._row_by_text = {text: row for row, text in enumerate(self.ids)}
            return np.array([self._row_by_text.get(key, -1) for key in keys], dtype=np.int64)
        return self._find_series_rows(keys)

    def _find_series_rows(self, keys: Any) -> NDArray[np.int64]:
        """Look text up by its hash, then compare the text itself."""
        polars = load_polars()
        if isinstance(self.ids, list):
            self.ids = polars.Series(self.ids, dtype=polars.String)
        if len(keys) == self.n and not keys.null_count() and bool((keys == self.ids).all()):
            return np.arange(self.n)
        if self._key_index is None:
            self._key_index = KeyIndex(self.ids.hash().to_numpy())
        if self._key_index.has_duplicates:  # a hash collision is so rare that a slow path will do
            return self.match_ids(MixedColumn(keys.to_list()))
        rows = self._key_index.lookup(keys.hash().to_numpy())
        found_ids = self.ids.gather(np.maximum(rows, 0))
        same = (found_ids == keys).fill_null(value=False).to_numpy()
        return rows if same.all() else np.where(same, rows, -1)


def _are_consecutive(ids: NDArray[np.int64]) -> bool:
    """Return whether distinct ids are 0 to n - 1 or 1 to n."""
    low = int(ids.min())
    return low in {0, 1} and int(ids.max()) == low + len(ids) - 1


def read_ids(column: Column) -> Any:
    """Return the holdout's ids: an array if all are integers in plain notation, else text."""
    if not len(column):
        raise InvalidLabels("A holdout needs at least one row.")
    ids: Any
    if isinstance(column, TextColumn):
        polars = load_polars()
        numbers = column.series.cast(polars.Int64, strict=False)
        unchanged = numbers.cast(polars.String) == column.series  # 007 and +7 are text
        ids = numbers.to_numpy() if unchanged.fill_null(value=False).all() else column.text_ids()
        missing = (column.series.fill_null("") == "").to_numpy()
    elif (
        isinstance(column, MixedColumn)
        and not MixedColumn(column.values[:1]).integer_ids()[1].all()
    ):
        ids = column.text_ids()  # one id that is not a number makes all of them text
        missing = np.array([id_ in {None, ""} for id_ in ids])
    else:
        integers, valid = column.integer_ids()
        if isinstance(column, MixedColumn) and any(isinstance(x, str) for x in column.values):
            valid = valid & np.array(
                [str(x) == str(y) for x, y in zip(column.values, integers, strict=True)]
            )
        ids = integers if valid.all() else column.text_ids()
        missing = np.array([id_ in {None, ""} for id_ in ids]) if isinstance(ids, list) else ~valid
    if missing.any():
        raise InvalidLabels(
            f"Every row of the holdout needs an id; {int(missing.sum())} have none."
        )
    if isinstance(ids, list):
        seen: set[str] = set()
        duplicates = [id_ for id_ in ids if id_ in seen or seen.add(id_)]  # type: ignore[func-returns-value]
    elif isinstance(ids, np.ndarray):
        values, counts = np.unique(ids, return_counts=True)
        duplicates = values[counts > 1].tolist()
    else:
        duplicates = ids.filter(ids.is_duplicated()).unique(maintain_order=True).to_list()
    if duplicates:
        raise InvalidLabels(f"Duplicate ids in the holdout: {format_names(duplicates)}.")
    return ids


def find_empty_ids(column: Column) -> NDArray[np.bool_]:
    """Return a mask of the rows whose id is empty."""
    if isinstance(column, NumberColumn):
        return column.parse_numbers().bad_rows.get("missing_value", np.zeros(len(column), np.bool_))
    if isinstance(column, TextColumn):
        return (column.series.fill_null("").str.strip_chars() == "").to_numpy()
    empty = [value is None or value == "" or value != value for value in column.values]  # noqa: PLR0124 - NaN
    return np.array(empty, dtype=np.bool_)


class FileRows:
    """Names the rows of a file in messages: by id, or numbered from 1 if there are no ids."""

    def __init__(self, ids: Column | None = None) -> None:
        self.ids = ids
        self.noun = "row" if ids is None else "id"

    def names_of(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the names of some rows."""
        if self.ids is None:
            return [f"row {row + 1}" for row in rows.tolist()]
        return self.ids.values_at(rows)


def join_small_integers(
    rows: NDArray[np.int64], values: NDArray[Any], n: int
) -> NDArray[Any] | None:
    """Return integers within a range of 255 in the holdout's order; None if they are not such.

    They are stored in single bytes, which fit into a CPU cache; a remaining 0 shows that an id is
    missing. This takes one pass instead of two, over an eighth of the memory.
    """
    if values.ndim != 1 or values.dtype != np.int64 or len(rows) != n or rows.min() < 0:
        return None
    offset = int(values.min()) - 1
    if int(values.max()) - offset > 255 or offset < -(2**62):
        return None
    shifted = np.empty(n, np.uint8)
    np.subtract(values, offset, out=shifted, casting="unsafe")
    joined = np.zeros(n, np.uint8)
    joined[rows] = shifted
    return np.add(joined, offset, dtype=np.int64) if joined.all() else None


def check_rows(
    ids: Column | None,
    matched_rows: NDArray[np.int64] | None,
    row_count: int,
    roster: Roster,
    problems: Problems,
    *,
    column: str = "id",
) -> None:
    """Record ids that differ from the holdout's, or a wrong number of rows."""
    if ids is None or matched_rows is None:
        if row_count != roster.n:
            expected = format_count(roster.n, "row")
            message = f"The holdout has {expected}; the predictions have {row_count:,}. Without a "
            message += "column named id they are joined by position."
            problems.add("wrong_count", message, count=abs(row_count - roster.n))
        return
    seen = np.zeros(roster.n, np.bool_)
    if len(matched_rows) and matched_rows.min() >= 0:
        seen[matched_rows] = True
        if len(matched_rows) == roster.n and seen.all():
            return
    else:
        seen[matched_rows[matched_rows >= 0]] = True
    _add_id_problems(ids, matched_rows, seen, roster, problems, column=column)


def _add_id_problems(
    ids: Column,
    matched_rows: NDArray[np.int64],
    seen: NDArray[np.bool_],
    roster: Roster,
    problems: Problems,
    *,
    column: str,
) -> None:
    """Record empty, unknown, repeated and missing ids."""
    known = matched_rows >= 0
    empty = find_empty_ids(ids)
    problems.add_rows("empty_id", "The id is empty", empty, FileRows(), column=column)
    unknown = ~known & ~empty
    if len(unknown) and unknown.all():  # probably another kind of id, so show both
        shown = ids.values_at(np.arange(min(len(ids), 3)))
        message = f"None of the ids is in the holdout. {roster.describe_ids()}; "
        message += f"the file's are {format_names(shown)}."
        shown_ids = [str(value) for value in shown]
        problems.add("unknown_id", message, column=column, count=len(unknown), ids=shown_ids)
    else:
        problems.add_rows("unknown_id", "unknown", unknown, FileRows(ids), column=column)
    repeated = np.bincount(matched_rows[known], minlength=roster.n) > 1
    for code, rule, bad in (
        ("duplicate_id", "duplicate", repeated),
        ("missing_id", "missing", ~seen),
    ):
        problems.add_rows(code, rule, roster.sort_by_id(bad), roster, column=column)


class SmallIntegerJoin:
    """Collects predictions that are small integers, for the ids 0..n-1, from blocks of a file.

    Examples
    --------
    >>> join = SmallIntegerJoin(3)
    >>> join.add([np.array([2, 0]), np.array([7, -1])]), join.add([np.array([1]), np.array([5])])
    (True, True)
    >>> join.result(None)
    array([-1,  5,  7])
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._bytes = np.zeros(n, np.uint8)
        self._rows = 0

    def add(self, columns: Sequence[NDArray[Any]]) -> bool:
        """Store a block of ids and values; return False if an id or a value is out of range."""
        ids, values = columns
        if not len(ids):
            return True
        # As unsigned integers, negative ids are above n too.
        unsigned_ids = ids.view(np.uint64) if ids.dtype == np.int64 else ids
        if unsigned_ids.max() >= self._n or (unsigned_ids is ids and ids.min() < 0):
            return False
        if values.min() < _SMALLEST or values.max() > _LARGEST:
            return False
        shifted = values.astype(np.uint8)
        shifted += np.uint8(_ZERO)  # overflow wraps around, which is right for negative values
        self._bytes[ids] = shifted
        self._rows += len(ids)
        return True

    def result(self, classes: tuple[Any, ...] | None) -> NDArray[np.int64] | None:
        """Return the values; None if an id is repeated or missing, or a value is not a class."""
        if self._rows != self._n or not self._bytes.all():
            return None
        if classes is not None:
            known = np.zeros(256, np.bool_)
            known[[int(class_) + _ZERO for class_ in classes if _fits(class_)]] = True
            if not known[self._bytes].all():
                return None
        return np.subtract(self._bytes, _ZERO, dtype=np.int64)


def _fits(value: Any) -> bool:
    return bool(_SMALLEST <= value <= _LARGEST) and value == int(value)
