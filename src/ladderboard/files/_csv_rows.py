"""The rows of a CSV file, in three tries: as numbers, as text, with care.

Polars splits lines at separators and knows nothing of quotes here: where a field has any, it must
be wrapped in two and hold no other, or the file goes to the standard library's careful reader,
which is slower and says where a line is broken.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.files._columns import Numbers, Text
from ladderboard.files._digits import pieces, read_digits
from ladderboard.files._few import FEW, cold, read_few
from ladderboard.files._polars import guarded, load_polars
from ladderboard.files._problems import SHOWN, Problems, many, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._problems import Refusal

__all__ = ["CsvSheet"]

_LONGEST_LINE = 2**22
_STEP = 2**18  # what is looked at stays in a cache
_LOOKED_AT = 2**12
_BATCH = 50_000
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# What polars takes for packed bytes, though it may begin a text.
_MISTAKEN = (b"x\x01", b"x\x9c", b"x\xda", b"x\x5e")


class CsvSheet:
    """A CSV file whose dialect is known: what follows ``skipped`` lines, from ``start`` on."""

    def __init__(
        self,
        data: bytes,
        separator: str,
        names: list[str] | None,
        width: int,
        *,
        start: int,
        most: int,
        refusal: Refusal,
    ) -> None:
        self.names = names
        self.width = width
        self._data = data
        self._separator = separator
        self._start = start
        self._skipped = data.count(b"\n", 0, start)
        self._refusal = refusal
        open_end = start < len(data) and not data.endswith(b"\n")
        self._lines = self._count("\n") + open_end
        if self._lines > most:
            said = f"The file holds {many(self._lines, 'row')}, more than {most}."
            refuse(refusal, "too_many_rows", said)

    @property
    def lines(self) -> int:
        """How many lines follow the header."""
        return self._lines

    def load(self, which: Sequence[int], number: Sequence[bool]) -> list[Column]:
        """Load some columns; ``number`` says of which numbers are wanted."""
        if not self._lines:
            return [self._text([]) for _ in which]
        numbers = {at for at, flag in zip(which, number, strict=True) if flag}
        quoted = b'"' in self._data
        every = None
        if numbers and not quoted:
            every = self._as_numbers(numbers)
        if every is None:
            every = self._as_text(quoted=quoted)
        if every is None:
            every = self._with_care()
        return [every[at] for at in which]

    def few(self, which: Sequence[int], number: Sequence[bool]) -> list[Column] | None:
        """Load columns without polars, if it is not loaded, the file small and nothing unusual."""
        if not cold() or not self._lines or len(self._data) > FEW:
            return None
        kinds = self._guess({at for at, flag in zip(which, number, strict=True) if flag})
        every = kinds and read_few(self._data[self._start :], self._separator, kinds)
        return [every[at] for at in which] if every else None

    def load_all(self, *, number: bool) -> list[Column | None]:
        """Load every column."""
        which, flags = range(self.width), [number] * self.width
        return list(self.few(which, flags) or self.load(which, flags))

    def pour(self, which: Sequence[int], use: Callable[[list[NDArray[Any]]], bool]) -> bool:
        """Hand whole numbers of some columns to ``use``, if there is nothing but digits."""
        for piece in pieces(self._data, self._start, self._separator, self.width):
            if piece is None or not use([piece[at] for at in which]):
                return False
        return True

    def _count(self, character: str) -> int:
        """Return how often a character comes after the header."""
        found = 0
        for at in range(self._start, len(self._data), _STEP):
            part = np.frombuffer(self._data, np.uint8, min(_STEP, len(self._data) - at), at)
            found += int(np.count_nonzero(part == ord(character)))
        return found

    def _frame(self, schema: dict[str, Any]) -> Any:
        """Let polars split lines; None if it will not, or if a row is too long or too short."""
        polars = load_polars()
        # It makes room for as many columns as the first line has.
        if next(self._each_line()).count(self._separator) != self.width - 1:
            return None
        data, skipped = self._data, self._skipped
        if data.startswith(_MISTAKEN):
            data, skipped = b"\n" + data, skipped + 1
        try:
            frame = polars.read_csv(
                data,
                has_header=False,
                schema=schema,
                separator=self._separator,
                quote_char=None,
                skip_lines=skipped,
                empty_string_is_null=False,
                glob=False,
            )
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError):
            return None
        # Longer rows raise, so the number of separators tells whether some are shorter.
        whole = self._count(self._separator) == (self.width - 1) * self._lines
        return frame if whole and frame.height == self._lines else None

    def _as_numbers(self, numbers: set[int]) -> list[Column] | None:
        """Read numbers as such, if the first lines look so and all the others are so."""
        kinds = self._guess(numbers)
        if kinds is None:
            return None
        if set(kinds) == {"whole"}:
            arrays = read_digits(self._data, self._start, self._separator, self.width)
            if arrays is not None:
                return [Numbers(each) for each in arrays]
        blank = b" " in self._data or b"\t" in self._data
        if blank and "text" in kinds:
            return None  # blanks around text are to be stripped
        polars = load_polars()
        types = {"whole": polars.Int64, "real": polars.Float64, "text": polars.String}
        frame = self._frame({f"c{at}": types[kind] for at, kind in enumerate(kinds)})
        return None if frame is None else self._finite(frame)

    def _finite(self, frame: Any) -> list[Column] | None:
        """Return the columns of a frame, None if a number is missing or not finite."""
        columns: list[Column] = []
        for series in frame.get_columns():
            if not series.dtype.is_numeric():
                columns.append(self._text(series))
                continue
            array = series.to_numpy()
            if series.null_count() or not np.isfinite(array).all():
                return None
            columns.append(Numbers(array))
        return columns

    def _guess(self, numbers: set[int]) -> list[str] | None:
        """Return the kinds of columns from the first lines, None if numbers are not written so."""
        head = self._data[self._start : self._start + _LOOKED_AT].decode(errors="replace")
        rows = [line.split(self._separator) for line in head.split("\n")]
        rows = [row for row in rows[: max(1, len(rows) - 1)] if len(row) == self.width]
        kinds = ["text"] * self.width
        for at in numbers:
            values = {row[at] for row in rows}  # often few
            if all(map(_WHOLE.fullmatch, values)):
                kinds[at] = "whole"
            elif all(map(_REAL.fullmatch, values)):
                kinds[at] = "real"
            else:
                return None
        return kinds

    def _as_text(self, *, quoted: bool) -> list[Column] | None:
        """Read text, without blanks around it and without the quotes around that."""
        polars = load_polars()
        schema = {f"c{at}": polars.String for at in range(self.width)}
        frame = self._frame(schema)
        if frame is None:
            return None
        with guarded(self._refusal, "CSV"):
            blank = b" " in self._data or b"\t" in self._data
            columns = []
            for series in frame.get_columns():
                text = series.str.strip_chars(" \t") if blank else series
                if quoted:
                    marks = text.str.count_matches('"', literal=True)
                    wrapped = text.str.contains(r'^"[^"]*"$')
                    if not ((marks == 0) | ((marks == 2) & wrapped)).all():
                        return None
                    text = text.str.strip_chars('"')
                    text = text.str.strip_chars(" \t") if blank else text
                columns.append(self._text(text))
            return list(columns)

    def _text(self, values: Any) -> Text:
        polars = load_polars()
        series = polars.Series(values, dtype=polars.String) if isinstance(values, list) else values
        return Text(series, written=True, comma=self._separator != ",")

    def _with_care(self) -> list[Column]:
        """Read line by line, and refuse lines that are too short, too long or never end."""
        polars = load_polars()
        reader = csv.reader(
            self._each_line(), delimiter=self._separator, strict=True, skipinitialspace=True
        )
        parts: list[list[Any]] = [[] for _ in range(self.width)]
        batch: list[list[str]] = []
        ragged: list[int] = []
        broken = 0
        try:
            for row in reader:
                if not row or (self.width > 1 and len(row) == 1 and not row[0].strip()):
                    if self.width > 1:
                        continue
                    row = [""]  # noqa: PLW2901 - an empty line of one column is an empty field
                if len(row) != self.width:
                    broken += 1
                    ragged += [self._skipped + reader.line_num] if broken <= SHOWN else []
                    continue
                batch.append(row)
                if len(batch) >= _BATCH:
                    _flush(batch, parts, polars)
        except csv.Error:
            at = self._skipped + reader.line_num
            said = f"Quotes do not match, or a field is too long, at line {at}."
            refuse(self._refusal, "quotes", said)
        if broken:
            problems = Problems(self._refusal)
            lines = ", ".join(map(str, ragged)) + (", ..." if broken > SHOWN else "")
            said = f"Every row must have {many(self.width, 'field')}, as the first line has; "
            said += f"{many(broken, 'row')} have more or fewer (line {lines})."
            problems.add("ragged", said, count=broken, ids=[f"line {each}" for each in ragged])
            problems.refuse_if_any()
        _flush(batch, parts, polars)
        return [self._text(polars.concat(part) if part else []) for part in parts]

    def _each_line(self) -> Iterator[str]:
        at = self._start
        while at < len(self._data):
            end = self._data.find(b"\n", at, at + _LONGEST_LINE)
            if end < 0:
                end = len(self._data)
                if end - at > _LONGEST_LINE:
                    said = f"A line is longer than {_LONGEST_LINE} bytes; is the file CSV?"
                    refuse(self._refusal, "line_too_long", said)
            yield self._data[at : end + 1].decode()
            at = end + 1


def _flush(batch: list[list[str]], parts: list[list[Any]], polars: Any) -> None:
    """Pack some rows of text, which take much more room in a list."""
    for part, values in zip(parts, zip(*batch, strict=True), strict=bool(batch)):
        stripped = [each.strip(" \t\n") for each in values]
        part.append(polars.Series(stripped, dtype=polars.String))
    batch.clear()
