"""CSV files: the dialect, the header, the rows.

Rows are read in the first way that fits: as digits only, as a small plain file in Python, as
numbers by polars, as text by polars, or line by line with the standard library's reader, which is
slower and says where a line is broken.

Polars splits lines at separators and knows nothing of quotes here: where a field has any, it must
be wrapped in two and hold no other.

Loading polars takes longer than all the rest of one question asked from a shell. So as long as
nobody has loaded it, a small file that leaves no doubt is split in Python: no quotes, no blanks,
nothing but ASCII, no empty fields, numbers written as everybody writes them.
"""

from __future__ import annotations

import codecs
import csv
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard._formatting import format_count
from ladderboard.files._columns import Mixed, Numbers, Text, guarded, load_polars
from ladderboard.files._formats._digits import pieces, read_digits
from ladderboard.files._problems import SHOWN, Problems, Refusal, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._source import Limits

_LONGEST_LINE = 2**22
_SEPARATORS = ("\t", ";", "|", ",")
_SNIFFED_LINES = 20
_SEP_LINE = rb"sep=(.)"
FEW = 2**20  # bytes; past them loading polars is worth it
_PLAIN_SEPARATORS = (",", ";", "|")
_NOT_PLAIN = rb'[^\n!#-~]|"'
_PLAIN_WHOLE = r"-?[0-9]{1,18}"
_PLAIN_REAL = r"-?[0-9]{1,300}\.[0-9]{1,300}"
_STEP = 2**18  # what is looked at stays in a cache
_SNIFFED_BYTES = 2**12
_BATCH = 50_000
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# What polars takes for packed bytes, though it may begin a text.
_MISTAKEN = (b"x\x01", b"x\x9c", b"x\xda", b"x\x5e")
# What spreadsheets take for the beginning of a formula.
_FORMULA = tuple("=+-@\t\r\n|%＝＋－＠")


def clean(data: bytes, refusal: Refusal) -> bytes:
    """Return text as UTF-8 without a byte-order mark, lines ended by a line feed."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeError:
            refuse(refusal, "encoding", "The file begins as UTF-16 text but does not go on so.")
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.isascii():
        _check_utf8(data, refusal)
    at = data.find(b"\0")
    if at >= 0:
        said = f"The file is no text: byte {at} is zero. Send UTF-8 text, or name the format."
        refuse(refusal, "encoding", said)
    if b"\r" in data:
        unix = data.replace(b"\r\n", b"\n")
        # Line ends of old Macs are clear only where there are no others.
        data = unix if b"\n" in unix else unix.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b" ", b"\t\n", b" \n")) or data.startswith(b"\n"):
        data = data.rstrip(b" \n").lstrip(b"\n")
    if not data or data.isspace():
        refuse(refusal, "empty", "The file is empty.")
    return data


def _check_utf8(data: bytes, refusal: Refusal) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    step = 2**24
    for at in range(0, len(data), step):
        try:
            decoder.decode(data[at : at + step], final=at + step >= len(data))
        except UnicodeDecodeError as error:
            # What a chunk begins with may be the end of a character that was held over.
            where = at + error.start - (len(error.object) - len(data[at : at + step]))
            said = f"The text must be UTF-8; byte {where} is not. Save the file as UTF-8."
            refuse(refusal, "encoding", said)


def first_line(
    data: bytes, separator: str | None, limits: Limits, refusal: Refusal
) -> tuple[str, list[str], int]:
    """Return the separator, the fields of the first line, and where that line begins."""
    start = 0
    line = _line(data, 0, refusal)
    told = re.fullmatch(_SEP_LINE, line.strip()) if line.lstrip().startswith(b"sep=") else None
    if told and separator is None:  # as Excel writes it
        separator, start = told[1].decode(errors="replace"), len(line) + 1
        line = _line(data, start, refusal)
        if not separator.isascii() or not separator.isprintable() or separator in "\"'":
            refuse(refusal, "separator", "The file names a separator that cannot be one.")
    text = line.decode()
    if separator is None:
        separator = _sniff(text, data[start : start + 2**16])
    if text.count(separator) >= limits.columns:
        said = f"There are more than {limits.columns} columns, which is the limit."
        refuse(refusal, "too_many_columns", said)
    fields = _split(text, separator)
    if fields is None:
        refuse(refusal, "quotes", "The first line holds a quote that is not closed on it.")
    return separator, fields, start


def _split(line: str, separator: str) -> list[str] | None:
    """Return the fields of one line, None if its quotes are odd."""
    try:
        (fields,) = csv.reader([line], delimiter=separator, strict=True, skipinitialspace=True)
    except (csv.Error, ValueError):
        return None
    return fields


def _line(data: bytes, start: int, refusal: Refusal) -> bytes:
    end = data.find(b"\n", start, start + _LONGEST_LINE)
    if end < 0:
        if len(data) - start > _LONGEST_LINE:
            said = f"The first line is longer than {_LONGEST_LINE} bytes; is the file CSV?"
            refuse(refusal, "line_too_long", said)
        end = len(data)
    return data[start:end]


def _sniff(first: str, head: bytes) -> str:
    """Return the separator: one that is in the first line, as often in the next few."""
    bare = re.sub(r'"[^"]*"', "", first) if '"' in first else first
    there = [each for each in _SEPARATORS if each in bare]
    if len(there) == 1:
        return there[0]
    lines = head.decode(errors="replace").split("\n")[:_SNIFFED_LINES]
    lines = [re.sub(r'"[^"]*"', "", each) for each in lines[: max(1, len(lines) - 1)] if each]
    for each in there:
        if len({line.count(each) for line in lines}) == 1:
            return each
    return there[0] if there else ","


def cold() -> bool:
    """Return whether polars is not loaded yet."""
    return "polars" not in sys.modules


def read_few(lines: bytes, separator: str, kinds: Sequence[str]) -> list[Column] | None:
    r"""Return the columns of some lines, None if anything is unusual.

    ``kinds`` says of each column whether it is of ``"whole"`` or ``"real"`` numbers or ``"text"``.

    >>> [each.show(np.array([0, 1])) for each in read_few(b"a,1\nb,2\n", ",", ["text", "whole"])]
    [['a', 'b'], [1, 2]]
    """
    if separator not in _PLAIN_SEPARATORS or re.search(_NOT_PLAIN, lines):
        return None
    rows = [line.split(separator) for line in lines.decode().removesuffix("\n").split("\n")]
    if any(len(row) != len(kinds) for row in rows):
        return None
    fields = zip(zip(*rows, strict=True), kinds, strict=True)
    found = [_plain_column(list(values), kind) for values, kind in fields]
    columns = [each for each in found if each is not None]
    return columns if len(columns) == len(found) else None


def _plain_column(values: list[str], kind: str) -> Column | None:
    if kind == "text":
        return Mixed(values) if all(values) else None
    joined = "\n".join(values)
    pattern = _PLAIN_WHOLE if kind == "whole" else _PLAIN_REAL
    if not re.fullmatch(rf"(?:{pattern}\n)*{pattern}", joined):
        return None
    if kind == "whole":
        return Numbers(np.array(list(map(int, values)), dtype=np.int64))
    return Numbers(np.array(list(map(float, values))))


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
            said = f"The file holds {format_count(self._lines, 'row')}, more than {most}."
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

    def load_without_polars(
        self, which: Sequence[int], number: Sequence[bool]
    ) -> list[Column] | None:
        """Load columns without polars, if it is not loaded, the file small and nothing unusual."""
        if not cold() or not self._lines or len(self._data) > FEW:
            return None
        kinds = self._guess({at for at, flag in zip(which, number, strict=True) if flag})
        every = kinds and read_few(self._data[self._start :], self._separator, kinds)
        return [every[at] for at in which] if every else None

    def load_all(self, *, number: bool) -> list[Column | None]:
        """Load every column."""
        which, flags = range(self.width), [number] * self.width
        return list(self.load_without_polars(which, flags) or self.load(which, flags))

    def stream_integers(
        self, which: Sequence[int], use: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
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
        head = self._data[self._start : self._start + _SNIFFED_BYTES].decode(errors="replace")
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
            for fields in reader:
                blank = not fields or (len(fields) == 1 and not fields[0].strip())
                if blank and self.width > 1:
                    continue
                row = fields or [""]  # an empty line of one column is an empty field
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
            said = (
                f"Every row must have {format_count(self.width, 'field')}, as the first line has; "
            )
            said += f"{format_count(broken, 'row')} have more or fewer (line {lines})."
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


def escape_formula(text: str | None) -> str:
    """Return text that no spreadsheet takes for a formula.

    >>> escape_formula("=cmd|' /C calc'!A0"), escape_formula("Team 1")
    ("'=cmd|' /C calc'!A0", 'Team 1')
    """
    if text is None:
        return ""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
