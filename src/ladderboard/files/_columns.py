"""Columns and tables: the types that every file, frame or list is converted to.

:class:`NumberColumn` is a NumPy array, :class:`TextColumn` a polars series, :class:`MixedColumn` a
list of plain Python values. Each can be parsed as numbers or as text; values that do not fit are
marked instead of raised, so that one refusal can list all of them.

Polars is imported only when a file needs it. It gets bytes or values, never a path or a URL, so it
cannot expand glob patterns or access the network. Every exception of polars, panics included,
becomes a refusal.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ladderboard.errors import MissingDependency
from ladderboard.files._source import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._source import ErrorClass

    Mask = NDArray[np.bool_]

_MAX_EXACT_INTEGER = 2**53
_TEXT = np.dtypes.StringDType()
_TRUTH = {"true": 1.0, "false": 0.0}
# How people and programs write a missing number.
_MISSING_WORDS = ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "nil", "?")


def load_polars() -> Any:
    """Return the polars module; raise ``MissingDependency`` if it is not installed."""
    try:
        import polars as pl  # noqa: PLC0415 - optional, and slow to load
    except ImportError:
        raise MissingDependency(
            "Reading files needs polars: pip install 'ladderboard[files]'. "
            "Arrays, lists and .npy files are read without it."
        ) from None
    return pl


@contextmanager
def refuse_polars_errors(error_class: ErrorClass, format_name: str) -> Iterator[None]:
    """Turn any error of polars into a refusal without its message, which may quote the file."""
    polars = load_polars()
    try:
        yield
    except error_class:
        raise
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        name = type(error).__name__
    except (OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        name = type(error).__name__
    else:
        return
    refuse(error_class, "damaged", f"The file could not be read as {format_name} ({name}).")


@dataclass
class ParsedColumn:
    """The parsed values of a column, and the rows that cannot be used, by problem code."""

    values: NDArray[Any]
    bad_rows: dict[str, Mask] = field(default_factory=dict)

    def mark(self, code: str, mask: Mask) -> None:
        """Record unusable rows, if there are any."""
        if mask.any():
            self.bad_rows[code] = mask


class NumberColumn:
    """A column of numbers or booleans. NaN counts as missing, as in pandas."""

    def __init__(self, array: NDArray[Any], missing: Mask | None = None) -> None:
        self.array = array
        self.missing = missing

    def __len__(self) -> int:
        return len(self.array)

    def parse_numbers(self) -> ParsedColumn:
        """Return the numbers; missing and infinite values are marked."""
        parsed = ParsedColumn(self.array)
        missing = np.zeros(len(self), np.bool_) if self.missing is None else self.missing
        if self.array.dtype.kind == "f":
            if not np.isfinite(self.array).all():
                missing = missing | np.isnan(self.array)
                parsed.mark("not_finite", np.isinf(self.array) & ~missing)
            if self.array.dtype.itemsize != 8:
                parsed.values = self.array.astype(np.float64)
        elif self.array.dtype.kind == "b":
            parsed.values = self.array.astype(np.int64)
        elif self.array.dtype == np.uint64:
            fits_int64 = self.array < 2**63
            parsed.values = self.array.astype(np.int64 if fits_int64.all() else np.float64)
        elif self.array.dtype != np.int64:
            parsed.values = self.array.astype(np.int64)
        parsed.mark("missing_value", missing)
        return parsed

    def parse_text(self) -> ParsedColumn:
        """Return integers as text; for other numbers the original spelling is unknown."""
        missing = np.zeros(len(self), np.bool_) if self.missing is None else self.missing
        is_integer = self.array.dtype.kind in "iu"
        empty = np.full(len(self), "", dtype=_TEXT)
        parsed = ParsedColumn(self.array.astype(_TEXT) if is_integer else empty)
        if self.array.dtype.kind == "f":
            missing = missing | np.isnan(self.array)
        parsed.mark("missing_value", missing)
        if not is_integer:
            parsed.mark("not_text", ~missing)
        return parsed

    def integer_ids(self) -> tuple[NDArray[np.int64], Mask]:
        """Return the ids as 64-bit integers, and a mask of the valid ones."""
        valid = np.ones(len(self), np.bool_) if self.missing is None else ~self.missing
        if self.array.dtype.kind == "f":
            floats = self.array.astype(
                np.float64, copy=False
            )  # half precision cannot represent the bound
            valid &= np.isfinite(floats) & (np.abs(floats) <= _MAX_EXACT_INTEGER)
            valid &= floats == np.trunc(floats)
            return np.where(valid, floats, 0).astype(np.int64), valid
        if self.array.dtype == np.uint64:
            valid &= self.array < 2**63
        if self.array.dtype.kind == "b":
            valid &= False
        return self.array.astype(np.int64, copy=False), valid

    def text_ids(self) -> Any:
        """Return the ids as a list of text, None for invalid ones."""
        values, valid = self.integer_ids()
        pairs = zip(values.tolist(), valid.tolist(), strict=True)
        return [str(value) if is_valid else None for value, is_valid in pairs]

    def take(self, rows: NDArray[np.int64]) -> NumberColumn:
        """Return a column of some rows."""
        return NumberColumn(self.array[rows], None if self.missing is None else self.missing[rows])

    def values_at(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the original values of some rows."""
        missing = np.zeros(len(rows), np.bool_) if self.missing is None else self.missing[rows]
        pairs = zip(self.array[rows].tolist(), missing.tolist(), strict=True)
        return [None if missing else value for value, missing in pairs]


class TextColumn:
    """A column of text: a polars series, possibly with nulls.

    ``from_csv`` says that the text comes from a CSV file, in which numbers are text too;
    ``decimal_comma`` allows a comma as the decimal separator.
    """

    def __init__(self, series: Any, *, from_csv: bool = False, decimal_comma: bool = False) -> None:
        self.series = series
        self.from_csv = from_csv
        self.decimal_comma = decimal_comma

    def __len__(self) -> int:
        return len(self.series)

    def parse_numbers(self) -> ParsedColumn:
        """Parse numbers of a CSV file; text in a typed file never counts as a number."""
        polars = load_polars()
        if not self.from_csv:
            missing = self.series.is_null().to_numpy()
            parsed = ParsedColumn(np.zeros(len(self)))
            parsed.mark("missing_value", missing)
            parsed.mark("not_a_number", ~missing)
            return parsed
        integers = self.series.cast(polars.Int64, strict=False)
        if not integers.null_count():
            return ParsedColumn(integers.to_numpy())
        lowercase = self.series.fill_null("").str.strip_chars().str.to_lowercase()
        numbers = lowercase.cast(polars.Float64, strict=False)
        if self.decimal_comma and not lowercase.str.contains(".", literal=True).any():
            has_comma = lowercase.str.contains(r"^[+-]?\d*,\d+(e[+-]?\d+)?$")
            with_point = lowercase.str.replace(",", ".", literal=True).cast(
                polars.Float64, strict=False
            )
            numbers = numbers.zip_with(~has_comma, with_point)
        booleans = lowercase.replace_strict(_TRUTH, default=None, return_dtype=polars.Float64)
        values = numbers.fill_null(booleans).to_numpy()
        parsed = ParsedColumn(np.where(np.isfinite(values), values, 0))
        missing = lowercase.is_in(_MISSING_WORDS).to_numpy()
        parsed.mark("missing_value", missing)
        parsed.mark("not_finite", np.isinf(values))
        parsed.mark("not_a_number", np.isnan(values) & ~missing)
        return parsed

    def parse_text(self) -> ParsedColumn:
        """Return the text; an empty field is missing, while "NA" may be a class."""
        filled = self.series.fill_null("")
        parsed = ParsedColumn(filled.to_numpy().astype(_TEXT))
        parsed.mark("missing_value", (filled == "").to_numpy())
        return parsed

    def integer_ids(self) -> tuple[NDArray[np.int64], Mask]:
        """Return the ids as 64-bit integers, and a mask of the valid ones; 7.0 is 7."""
        polars = load_polars()
        integers = self.series.cast(polars.Int64, strict=False)
        if not integers.null_count():
            return integers.to_numpy(), np.ones(len(self), np.bool_)
        stripped = self.series.str.strip_chars()
        integers = stripped.cast(polars.Int64, strict=False)
        floats = stripped.cast(polars.Float64, strict=False).fill_null(math.nan).to_numpy()
        values, valid = NumberColumn(floats).integer_ids()
        is_integer = integers.is_not_null().to_numpy()
        return np.where(is_integer, integers.fill_null(0).to_numpy(), values), is_integer | valid

    def text_ids(self) -> Any:
        """Return the series itself; empty text counts as missing."""
        return self.series

    def take(self, rows: NDArray[np.int64]) -> TextColumn:
        """Return a column of some rows."""
        return TextColumn(
            self.series.gather(rows), from_csv=self.from_csv, decimal_comma=self.decimal_comma
        )

    def values_at(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the values of some rows."""
        return self.series.gather(rows).to_list()


class MixedColumn:
    """A column of Python values; other types than str, int, float and bool are marked as wrong."""

    def __init__(self, values: list[Any]) -> None:
        self.values = [_to_plain_value(value) for value in values]

    def __len__(self) -> int:
        return len(self.values)

    def parse_numbers(self) -> ParsedColumn:
        """Return numbers, and booleans as 0 and 1."""
        missing = self._mask(_is_missing)
        wrong = self._mask(lambda value: not isinstance(value, bool | int | float)) & ~missing
        numbers = [
            0 if skip else value for value, skip in zip(self.values, missing | wrong, strict=True)
        ]
        too_large = any(isinstance(value, int) and abs(value) >= 2**63 for value in numbers)
        as_floats = too_large or any(isinstance(value, float) for value in numbers)
        try:
            parsed = ParsedColumn(np.array(numbers, dtype=np.float64 if as_floats else np.int64))
        except OverflowError:  # an integer too large for a float
            parsed = ParsedColumn(np.array([_to_float(value) for value in numbers]))
        parsed.mark("missing_value", missing)
        parsed.mark("not_finite", np.isinf(parsed.values))
        parsed.mark("not_a_number", wrong)
        return parsed

    def parse_text(self) -> ParsedColumn:
        """Return text, and integers as text."""
        missing = self._mask(lambda value: _is_missing(value) or value == "")
        wrong = ~self._mask(_is_id) & ~missing
        skip = (missing | wrong).tolist()
        pairs = zip(self.values, skip, strict=True)
        parsed = ParsedColumn(
            np.array(["" if skipped else str(value) for value, skipped in pairs], dtype=_TEXT)
        )
        parsed.mark("missing_value", missing)
        parsed.mark("not_text", wrong)
        return parsed

    def integer_ids(self) -> tuple[NDArray[np.int64], Mask]:
        """Return the ids as 64-bit integers, and a mask of the valid ones."""
        integers = [_to_integer(value) for value in self.values]
        valid = np.array([integer is not None for integer in integers], dtype=np.bool_)
        return np.array([integer or 0 for integer in integers], dtype=np.int64), valid

    def text_ids(self) -> Any:
        """Return the ids as a list of text, None for invalid ones."""
        return [_id_text(value) for value in self.values]

    def take(self, rows: NDArray[np.int64]) -> MixedColumn:
        """Return a column of some rows."""
        return MixedColumn(self.values_at(rows))

    def values_at(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the values of some rows."""
        return [self.values[row] for row in rows.tolist()]

    def _mask(self, condition: Any) -> Mask:
        return np.array([bool(condition(value)) for value in self.values], dtype=np.bool_)


Column = NumberColumn | TextColumn | MixedColumn


def _to_plain_value(value: Any) -> Any:
    """Return the plain value of a NumPy scalar or a subclass; of any other object its type."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in {bool, int, float}:
        return value
    if isinstance(value, str):
        return _check_encodable(str.__str__(value))
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    # Missing values of pandas, recognised without importing it.
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    return type(value)


def _check_encodable(text: str) -> Any:
    """Return the text, or an exception type if it has a lone surrogate, as JSON allows."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return UnicodeEncodeError
    return text


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_id(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and -(2**63) <= value < 2**63
    return isinstance(value, str)


def _id_text(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_INTEGER:
        value = int(value)
    return str(value) if _is_id(value) else None


def _to_integer(value: Any) -> int | None:
    """Return a 64-bit integer, also from text or a float with an integer value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = value.strip()
        if len(value) > 30 or not value.isascii() or "_" in value:
            return None
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    if isinstance(value, float):
        value = int(value) if value.is_integer() and abs(value) <= _MAX_EXACT_INTEGER else None
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class FileTable(Protocol):
    """The interface of every file format. ``names`` is None if the columns have no names."""

    @property
    def names(self) -> list[str] | None:
        """The names of the columns."""

    @property
    def width(self) -> int:
        """The number of columns."""

    def load_columns(self, positions: Sequence[int], as_numbers: Sequence[bool]) -> list[Column]:
        """Load the columns at some positions; ``as_numbers`` says which should be numbers."""

    def load_all(self, *, as_numbers: bool) -> list[Column | None]:
        """Load every column; None for one of another type than numbers, text or booleans."""

    def stream_integers(
        self, positions: Sequence[int], consume: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
        """Pass the integers of some columns to ``consume``, block by block.

        Return False if a value is not an integer or ``consume`` returned False: then the caller
        loads the columns instead.
        """


class MemoryTable:
    """A table whose columns are in memory already."""

    def __init__(self, names: list[str] | None, columns: list[Column]) -> None:
        self.names = names
        self.columns = columns
        self.width = len(columns)

    def load_columns(self, positions: Sequence[int], as_numbers: Sequence[bool]) -> list[Column]:
        """Return the columns at some positions."""
        return [self.columns[position] for position in positions]

    def load_all(self, *, as_numbers: bool) -> list[Column | None]:
        """Return every column."""
        return list(self.columns)

    def stream_integers(
        self, positions: Sequence[int], consume: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
        """Return False: the columns are in memory already."""
        return False
