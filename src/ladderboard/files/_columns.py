"""Columns and sheets: what every file, frame or list is read into.

:class:`Numbers` is a NumPy array, :class:`Text` a polars series, :class:`Mixed` a list of plain
Python values. Each can be read as numbers or as text; what does not fit is marked, not raised, so
that a refusal can list it all.

Polars is loaded only where a file needs it. It is given bytes or values, never a path or an
address, so it cannot look for patterns or go to a network. Whatever it raises, a panic included,
becomes a refusal.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ladderboard.errors import MissingDependency
from ladderboard.files._problems import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._problems import Refusal

    Mask = NDArray[np.bool_]

_EXACT = 2**53
_TEXT = np.dtypes.StringDType()
_TRUTH = {"true": 1.0, "false": 0.0}
# What people and programs write where a number is missing.
_GAPS = ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "nil", "?")


def load_polars() -> Any:
    """Return the module, or say what to install."""
    try:
        import polars as pl  # noqa: PLC0415 - optional, and slow to load
    except ImportError:
        raise MissingDependency(
            "Reading files needs polars: pip install 'ladderboard[files]'. "
            "Arrays, lists and .npy files are read without it."
        ) from None
    return pl


@contextmanager
def guarded(refusal: Refusal, what: str) -> Iterator[None]:
    """Turn whatever polars raises into a refusal; its own words may hold a file's contents."""
    polars = load_polars()
    try:
        yield
    except refusal:
        raise
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        name = type(error).__name__
    except (OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        name = type(error).__name__
    else:
        return
    refuse(refusal, "damaged", f"The file could not be read as {what} ({name}).")


@dataclass
class Reading:
    """Values, and by code which rows cannot be used."""

    values: NDArray[Any]
    bad: dict[str, Mask] = field(default_factory=dict)

    def mark(self, code: str, mask: Mask) -> None:
        """Note bad rows, if there are any."""
        if mask.any():
            self.bad[code] = mask


class Numbers:
    """A column of numbers or booleans. NaN is a gap, as pandas has it."""

    def __init__(self, array: NDArray[Any], missing: Mask | None = None) -> None:
        self.array = array
        self.missing = missing

    def __len__(self) -> int:
        return len(self.array)

    def numbers(self) -> Reading:
        """As they are, but for gaps and infinities."""
        reading = Reading(self.array)
        missing = np.zeros(len(self), np.bool_) if self.missing is None else self.missing
        if self.array.dtype.kind == "f":
            if not np.isfinite(self.array).all():
                missing = missing | np.isnan(self.array)
                reading.mark("not_finite", np.isinf(self.array) & ~missing)
            if self.array.dtype.itemsize != 8:
                reading.values = self.array.astype(np.float64)
        elif self.array.dtype.kind == "b":
            reading.values = self.array.astype(np.int64)
        elif self.array.dtype == np.uint64:
            fits = self.array < 2**63
            reading.values = self.array.astype(np.int64 if fits.all() else np.float64)
        elif self.array.dtype != np.int64:
            reading.values = self.array.astype(np.int64)
        reading.mark("missing_value", missing)
        return reading

    def texts(self) -> Reading:
        """Whole numbers as they are written; of others nobody knows how they were."""
        missing = np.zeros(len(self), np.bool_) if self.missing is None else self.missing
        whole = self.array.dtype.kind in "iu"
        empty = np.full(len(self), "", dtype=_TEXT)
        reading = Reading(self.array.astype(_TEXT) if whole else empty)
        if self.array.dtype.kind == "f":
            missing = missing | np.isnan(self.array)
        reading.mark("missing_value", missing)
        if not whole:
            reading.mark("not_text", ~missing)
        return reading

    def whole_ids(self) -> tuple[NDArray[np.int64], Mask]:
        """As 64-bit whole numbers, and where they are ones."""
        ok = np.ones(len(self), np.bool_) if self.missing is None else ~self.missing
        if self.array.dtype.kind == "f":
            real = self.array.astype(np.float64, copy=False)  # the bound is beyond half precision
            ok &= np.isfinite(real) & (np.abs(real) <= _EXACT)
            ok &= real == np.trunc(real)
            return np.where(ok, real, 0).astype(np.int64), ok
        if self.array.dtype == np.uint64:
            ok &= self.array < 2**63
        if self.array.dtype.kind == "b":
            ok &= False
        return self.array.astype(np.int64, copy=False), ok

    def text_ids(self) -> Any:
        """As a list of text, None where there is none."""
        values, ok = self.whole_ids()
        pairs = zip(values.tolist(), ok.tolist(), strict=True)
        return [str(each) if fine else None for each, fine in pairs]

    def take(self, rows: NDArray[np.int64]) -> Numbers:
        """Some rows."""
        return Numbers(self.array[rows], None if self.missing is None else self.missing[rows])

    def show(self, rows: NDArray[np.int64]) -> list[Any]:
        """The values of some rows, as they were."""
        gap = np.zeros(len(rows), np.bool_) if self.missing is None else self.missing[rows]
        pairs = zip(self.array[rows].tolist(), gap.tolist(), strict=True)
        return [None if missing else each for each, missing in pairs]


class Text:
    """A column of text, a polars series without or with gaps.

    ``written`` is text of a CSV file, where numbers are text too; ``comma`` allows a decimal comma.
    """

    def __init__(self, series: Any, *, written: bool = False, comma: bool = False) -> None:
        self.series = series
        self.written = written
        self.comma = comma

    def __len__(self) -> int:
        return len(self.series)

    def numbers(self) -> Reading:
        """Numbers as they are written; text of a typed file is no number, whatever it spells."""
        polars = load_polars()
        if not self.written:
            missing = self.series.is_null().to_numpy()
            reading = Reading(np.zeros(len(self)))
            reading.mark("missing_value", missing)
            reading.mark("not_a_number", ~missing)
            return reading
        whole = self.series.cast(polars.Int64, strict=False)
        if not whole.null_count():
            return Reading(whole.to_numpy())
        plain = self.series.fill_null("").str.strip_chars().str.to_lowercase()
        read = plain.cast(polars.Float64, strict=False)
        if self.comma and not plain.str.contains(".", literal=True).any():
            spelled = plain.str.contains(r"^[+-]?\d*,\d+(e[+-]?\d+)?$")
            swapped = plain.str.replace(",", ".", literal=True).cast(polars.Float64, strict=False)
            read = read.zip_with(~spelled, swapped)
        truth = plain.replace_strict(_TRUTH, default=None, return_dtype=polars.Float64)
        values = read.fill_null(truth).to_numpy()
        reading = Reading(np.where(np.isfinite(values), values, 0))
        missing = plain.is_in(_GAPS).to_numpy()
        reading.mark("missing_value", missing)
        reading.mark("not_finite", np.isinf(values))
        reading.mark("not_a_number", np.isnan(values) & ~missing)
        return reading

    def texts(self) -> Reading:
        """As it is; an empty field is a gap, and "NA" may be a class."""
        filled = self.series.fill_null("")
        reading = Reading(filled.to_numpy().astype(_TEXT))
        reading.mark("missing_value", (filled == "").to_numpy())
        return reading

    def whole_ids(self) -> tuple[NDArray[np.int64], Mask]:
        """As 64-bit whole numbers, and where they are ones; 7.0 is 7."""
        polars = load_polars()
        whole = self.series.cast(polars.Int64, strict=False)
        if not whole.null_count():
            return whole.to_numpy(), np.ones(len(self), np.bool_)
        plain = self.series.str.strip_chars()
        whole = plain.cast(polars.Int64, strict=False)
        real = plain.cast(polars.Float64, strict=False).fill_null(math.nan).to_numpy()
        values, ok = Numbers(real).whole_ids()
        exact = whole.is_not_null().to_numpy()
        return np.where(exact, whole.fill_null(0).to_numpy(), values), exact | ok

    def text_ids(self) -> Any:
        """The series itself, an empty text being a gap."""
        return self.series

    def take(self, rows: NDArray[np.int64]) -> Text:
        """Some rows."""
        return Text(self.series.gather(rows), written=self.written, comma=self.comma)

    def show(self, rows: NDArray[np.int64]) -> list[Any]:
        """The values of some rows."""
        return self.series.gather(rows).to_list()


class Mixed:
    """A column of Python values; those that are not plain count as of the wrong type."""

    def __init__(self, values: list[Any]) -> None:
        self.values = [_plain(each) for each in values]

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> Reading:
        """Numbers and booleans."""
        missing = self._where(_is_gap)
        wrong = self._where(lambda each: not isinstance(each, bool | int | float)) & ~missing
        fine = [
            0 if skip else each for each, skip in zip(self.values, missing | wrong, strict=True)
        ]
        big = any(isinstance(each, int) and abs(each) >= 2**63 for each in fine)
        real = big or any(isinstance(each, float) for each in fine)
        try:
            reading = Reading(np.array(fine, dtype=np.float64 if real else np.int64))
        except OverflowError:  # a whole number beyond all doubles
            reading = Reading(np.array([_double(each) for each in fine]))
        reading.mark("missing_value", missing)
        reading.mark("not_finite", np.isinf(reading.values))
        reading.mark("not_a_number", wrong)
        return reading

    def texts(self) -> Reading:
        """Text, and whole numbers as they are written."""
        missing = self._where(lambda each: _is_gap(each) or each == "")
        wrong = ~self._where(_is_id) & ~missing
        skip = (missing | wrong).tolist()
        pairs = zip(self.values, skip, strict=True)
        reading = Reading(np.array(["" if no else str(each) for each, no in pairs], dtype=_TEXT))
        reading.mark("missing_value", missing)
        reading.mark("not_text", wrong)
        return reading

    def whole_ids(self) -> tuple[NDArray[np.int64], Mask]:
        """As 64-bit whole numbers, and where they are ones."""
        read = [_whole(each) for each in self.values]
        ok = np.array([each is not None for each in read], dtype=np.bool_)
        return np.array([each or 0 for each in read], dtype=np.int64), ok

    def text_ids(self) -> Any:
        """As a list of text, None where there is none."""
        return [_id_text(each) for each in self.values]

    def take(self, rows: NDArray[np.int64]) -> Mixed:
        """Some rows."""
        return Mixed(self.show(rows))

    def show(self, rows: NDArray[np.int64]) -> list[Any]:
        """The values of some rows."""
        return [self.values[row] for row in rows.tolist()]

    def _where(self, rule: Any) -> Mask:
        return np.array([bool(rule(each)) for each in self.values], dtype=np.bool_)


Column = Numbers | Text | Mixed


def _plain(value: Any) -> Any:
    """Return a NumPy scalar or a subclass as the plain value behind it; others by their type."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in {bool, int, float}:
        return value
    if isinstance(value, str):
        return _encodable(str.__str__(value))
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if type(value).__name__ in {"NAType", "NaTType"}:  # pandas' gaps, without loading pandas
        return None
    return type(value)


def _encodable(text: str) -> Any:
    """Return text that is some; half a character, as JSON can spell it, is none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return UnicodeEncodeError
    return text


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_id(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and -(2**63) <= value < 2**63
    return isinstance(value, str)


def _id_text(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        value = int(value)
    return str(value) if _is_id(value) else None


def _whole(value: Any) -> int | None:
    """Return a 64-bit whole number, also where text or a float spells it."""
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
        value = int(value) if value.is_integer() and abs(value) <= _EXACT else None
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class Table(Protocol):
    """What every format is brought to. ``names`` is None where columns have none."""

    @property
    def names(self) -> list[str] | None:
        """The columns' names."""

    @property
    def width(self) -> int:
        """How many columns there are."""

    def load(self, which: Sequence[int], number: Sequence[bool]) -> list[Column]:
        """Load some columns; ``number`` says of which numbers are wanted."""

    def load_without_polars(
        self, which: Sequence[int], number: Sequence[bool]
    ) -> list[Column] | None:
        """Load columns in a light way, None if there is none."""

    def load_all(self, *, number: bool) -> list[Column | None]:
        """Load every column; None for one that holds neither numbers nor text nor booleans."""

    def stream_integers(
        self, which: Sequence[int], use: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
        """Hand whole numbers of some columns to ``use``, piece by piece.

        False if there is anything unusual or ``use`` says so: then the columns are to be loaded.
        """


class MemoryTable:
    """A sheet that is in memory already."""

    def __init__(self, names: list[str] | None, columns: list[Column]) -> None:
        self.names = names
        self.columns = columns
        self.width = len(columns)

    def load(self, which: Sequence[int], number: Sequence[bool]) -> list[Column]:
        """Return some columns."""
        return [self.columns[each] for each in which]

    def load_without_polars(
        self, which: Sequence[int], number: Sequence[bool]
    ) -> list[Column] | None:
        """There is no lighter way."""

    def load_all(self, *, number: bool) -> list[Column | None]:
        """Return every column."""
        return list(self.columns)

    def stream_integers(
        self, which: Sequence[int], use: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
        """Nothing is gained where columns are in memory."""
        return False
