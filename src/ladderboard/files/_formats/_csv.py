"""CSV files: the dialect, the header, the rows.

Rows are read by the first method that applies: as digits only, as a small plain file in Python, as
numbers by polars, as text by polars, or line by line with the csv module, which is slower and
reports where a line is broken.

Polars splits lines at separators without handling quotes: a field may be wrapped in two quotes, and
must not contain others.

Importing polars takes longer than all other steps of one question asked from a shell. So, unless it
is imported already, a small and simple file is split in Python: no quotes, no spaces, only ASCII,
no empty fields, numbers in plain notation.
"""

from __future__ import annotations

import codecs
import csv
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard._formatting import format_count
from ladderboard.files._columns import (
    MixedColumn,
    NumberColumn,
    TextColumn,
    load_polars,
    refuse_polars_errors,
)
from ladderboard.files._source import SHOWN, ErrorClass, Problems, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._source import Limits

    Columns = list[NDArray[Any]]


_LONGEST_LINE = 2**22
_SEPARATORS = ("\t", ";", "|", ",")
_SNIFFED_LINES = 20
_SEP_LINE = rb"sep=(.)"
_MAX_BYTES_WITHOUT_POLARS = 2**20  # a larger file is worth the import
_PLAIN_SEPARATORS = (",", ";", "|")
_NOT_PLAIN = rb'[^\n!#-~]|"'
_PLAIN_INTEGER = r"-?[0-9]{1,18}"
_PLAIN_DECIMAL = r"-?[0-9]{1,300}\.[0-9]{1,300}"
_BLOCK_BYTES = 2**18  # fits into a CPU cache
_SNIFFED_BYTES = 2**12
_BATCH_ROWS = 50_000
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Prefixes that polars mistakes for compressed data, though text may begin like that.
_ZLIB_PREFIXES = (b"x\x01", b"x\x9c", b"x\xda", b"x\x5e")
# Characters that begin a formula in a spreadsheet.
_FORMULA_STARTS = tuple("=+-@\t\r\n|%＝＋－＠")


def normalize_text(data: bytes, error_class: ErrorClass) -> bytes:
    """Return text as UTF-8 without a byte-order mark, with a line feed after each line."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeError:
            refuse(
                error_class, "encoding", "The file begins as UTF-16 text but is not valid UTF-16."
            )
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.isascii():
        _check_utf8(data, error_class)
    position = data.find(b"\0")
    if position >= 0:
        message = f"The file is not text: byte {position} is zero. Send UTF-8 text, or name the "
        message += "format."
        refuse(error_class, "encoding", message)
    if b"\r" in data:
        unix = data.replace(b"\r\n", b"\n")
        # A lone carriage return ends a line only if there are no line feeds.
        data = unix if b"\n" in unix else unix.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b" ", b"\t\n", b" \n")) or data.startswith(b"\n"):
        data = data.rstrip(b" \n").lstrip(b"\n")
    if not data or data.isspace():
        refuse(error_class, "empty", "The file is empty.")
    return data


def _check_utf8(data: bytes, error_class: ErrorClass) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    step = 2**24
    for position in range(0, len(data), step):
        try:
            decoder.decode(data[position : position + step], final=position + step >= len(data))
        except UnicodeDecodeError as error:
            # A chunk may begin with the rest of a character from the previous chunk.
            byte_position = (
                position + error.start - (len(error.object) - len(data[position : position + step]))
            )
            message = (
                f"The text must be UTF-8; byte {byte_position} is not. Save the file as UTF-8."
            )
            refuse(error_class, "encoding", message)


def open_csv(
    data: bytes,
    separator: str | None,
    limits: Limits,
    error_class: ErrorClass,
    *,
    max_rows: int,
    has_header: Callable[[list[str], Callable[[], int]], bool],
) -> CsvTable:
    """Return a CSV file as a table: its separator and its header are recognised."""
    data = normalize_text(data, error_class)
    separator, fields, start = detect_separator(data, separator, limits, error_class)
    header = has_header(fields, lambda: data.count(b"\n", start) + (not data.endswith(b"\n")))
    if header:
        end = data.find(b"\n", start)
        start = len(data) if end < 0 else end + 1
    names = fields if header else None
    return CsvTable(
        data, separator, names, len(fields), start=start, max_rows=max_rows, error_class=error_class
    )


def detect_separator(
    data: bytes, separator: str | None, limits: Limits, error_class: ErrorClass
) -> tuple[str, list[str], int]:
    """Return the separator, the fields of the first line, and where that line begins."""
    start = 0
    line = _read_line(data, 0, error_class)
    declared = re.fullmatch(_SEP_LINE, line.strip()) if line.lstrip().startswith(b"sep=") else None
    if declared and separator is None:  # a line that Excel writes
        separator, start = declared[1].decode(errors="replace"), len(line) + 1
        line = _read_line(data, start, error_class)
        if not separator.isascii() or not separator.isprintable() or separator in "\"'":
            refuse(error_class, "separator", "The sep= line names an invalid separator.")
    text = line.decode()
    if separator is None:
        separator = _sniff_separator(text, data[start : start + 2**16])
    if text.count(separator) >= limits.columns:
        message = f"There are more than {limits.columns} columns, which is the limit."
        refuse(error_class, "too_many_columns", message)
    fields = _split_line(text, separator)
    if fields is None:
        message = "A quote in the first line is not closed on that line."
        if text.lstrip().startswith(("[", "{")):
            message = "This looks like JSON. Save it as CSV, or as JSON Lines: an object per row."
        refuse(error_class, "quotes", message)
    return separator, fields, start


def _split_line(line: str, separator: str) -> list[str] | None:
    """Return the fields of one line, None if a quote is not closed."""
    try:
        (fields,) = csv.reader([line], delimiter=separator, strict=True, skipinitialspace=True)
    except (csv.Error, ValueError):
        return None
    return fields


def _read_line(data: bytes, start: int, error_class: ErrorClass) -> bytes:
    end = data.find(b"\n", start, start + _LONGEST_LINE)
    if end < 0:
        if len(data) - start > _LONGEST_LINE:
            message = f"The first line is longer than {_LONGEST_LINE} bytes; is the file CSV?"
            refuse(error_class, "line_too_long", message)
        end = len(data)
    return data[start:end]


def _sniff_separator(first: str, head: bytes) -> str:
    """Return the separator that occurs in the first line, and equally often in the next few."""
    unquoted = re.sub(r'"[^"]*"', "", first) if '"' in first else first
    candidates = [separator for separator in _SEPARATORS if separator in unquoted]
    if len(candidates) == 1:
        return candidates[0]
    lines = head.decode(errors="replace").split("\n")[:_SNIFFED_LINES]
    lines = [re.sub(r'"[^"]*"', "", line) for line in lines[: max(1, len(lines) - 1)] if line]
    for separator in candidates:
        if len({line.count(separator) for line in lines}) == 1:
            return separator
    return candidates[0] if candidates else ","


def polars_is_loaded() -> bool:
    """Return whether some code has imported polars already."""
    return "polars" in sys.modules


def read_simple_csv(lines: bytes, separator: str, kinds: Sequence[str]) -> list[Column] | None:
    r"""Return the columns of simple lines; None if any line is not simple.

    ``kinds`` has ``"integer"``, ``"decimal"`` or ``"text"`` for each column.

    >>> columns = read_simple_csv(b"a,1\nb,2\n", ",", ["text", "integer"])
    >>> [column.values_at(np.array([0, 1])) for column in columns]
    [['a', 'b'], [1, 2]]
    """
    if separator not in _PLAIN_SEPARATORS or re.search(_NOT_PLAIN, lines):
        return None
    rows = [line.split(separator) for line in lines.decode().removesuffix("\n").split("\n")]
    if any(len(row) != len(kinds) for row in rows):
        return None
    fields = zip(zip(*rows, strict=True), kinds, strict=True)
    parsed = [_plain_column(list(values), kind) for values, kind in fields]
    columns = [column for column in parsed if column is not None]
    return columns if len(columns) == len(parsed) else None


def _plain_column(values: list[str], kind: str) -> Column | None:
    if kind == "text":
        return MixedColumn(values) if all(values) else None
    joined = "\n".join(values)
    pattern = _PLAIN_INTEGER if kind == "integer" else _PLAIN_DECIMAL
    if not re.fullmatch(rf"(?:{pattern}\n)*{pattern}", joined):
        return None
    if kind == "integer":
        return NumberColumn(np.array(list(map(int, values)), dtype=np.int64))
    return NumberColumn(np.array(list(map(float, values))))


class CsvTable:
    """A CSV file with a known separator; its rows begin at byte ``start``."""

    def __init__(
        self,
        data: bytes,
        separator: str,
        names: list[str] | None,
        width: int,
        *,
        start: int,
        max_rows: int,
        error_class: ErrorClass,
    ) -> None:
        self.names = names
        self.width = width
        self._data = data
        self._separator = separator
        self._start = start
        self._skipped = data.count(b"\n", 0, start)
        self._error_class = error_class
        open_end = start < len(data) and not data.endswith(b"\n")
        self._lines = self._count_character("\n") + open_end
        if self._lines > max_rows:
            message = f"The file holds {format_count(self._lines, 'row')}, more than {max_rows}."
            refuse(error_class, "too_many_rows", message)

    @property
    def lines(self) -> int:
        """The number of lines after the header."""
        return self._lines

    def line_of(self, row: int) -> int | None:
        """Return the line of a row in the file, from 1; None if a value may hold line breaks."""
        return None if b'"' in self._data else self._skipped + row + 1

    def load_columns(self, positions: Sequence[int], as_numbers: Sequence[bool]) -> list[Column]:
        """Load the columns at some positions; ``as_numbers`` says which should be numbers."""
        if not self._lines:
            return [self._text_column([]) for _ in positions]
        numbers = {
            position for position, is_number in zip(positions, as_numbers, strict=True) if is_number
        }
        quoted = b'"' in self._data
        columns = None
        if numbers and not quoted:
            columns = self._read_as_numbers(numbers)
        if columns is None:
            columns = self._read_as_text(quoted=quoted)
        if columns is None:
            columns = self._read_with_csv_module()
        return [columns[position] for position in positions]

    def load_without_polars(
        self, positions: Sequence[int], as_numbers: Sequence[bool]
    ) -> list[Column] | None:
        """Load columns of a small and simple file without polars, unless it is imported."""
        if polars_is_loaded() or not self._lines or len(self._data) > _MAX_BYTES_WITHOUT_POLARS:
            return None
        numbers = {
            position for position, is_number in zip(positions, as_numbers, strict=True) if is_number
        }
        kinds = self._guess_kinds(numbers)
        columns = kinds and read_simple_csv(self._data[self._start :], self._separator, kinds)
        return [columns[position] for position in positions] if columns else None

    def load_all(self, *, as_numbers: bool) -> list[Column | None]:
        """Load every column."""
        positions, flags = range(self.width), [as_numbers] * self.width
        return list(
            self.load_without_polars(positions, flags) or self.load_columns(positions, flags)
        )

    def stream_integers(
        self, positions: Sequence[int], consume: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
        """Pass the integers of some columns to ``consume``, if the file holds only digits."""
        for block in iter_digit_blocks(self._data, self._start, self._separator, self.width):
            if block is None or not consume([block[position] for position in positions]):
                return False
        return True

    def _count_character(self, character: str) -> int:
        """Count a character after the header."""
        count = 0
        for position in range(self._start, len(self._data), _BLOCK_BYTES):
            block = np.frombuffer(
                self._data, np.uint8, min(_BLOCK_BYTES, len(self._data) - position), position
            )
            count += int(np.count_nonzero(block == ord(character)))
        return count

    def _read_frame(self, schema: dict[str, Any]) -> Any:
        """Return a frame made by polars; None if it fails or rows have different lengths."""
        polars = load_polars()
        # Polars allocates as many columns as the first line has.
        if next(self._iter_lines()).count(self._separator) != self.width - 1:
            return None
        data, skipped = self._data, self._skipped
        if data.startswith(_ZLIB_PREFIXES):
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
        # Longer rows raise an error, so the number of separators shows whether some are shorter.
        is_rectangular = self._count_character(self._separator) == (self.width - 1) * self._lines
        return frame if is_rectangular and frame.height == self._lines else None

    def _read_as_numbers(self, numbers: set[int]) -> list[Column] | None:
        """Read numbers directly, if the first lines look like numbers and all others are."""
        kinds = self._guess_kinds(numbers)
        if kinds is None:
            return None
        if set(kinds) == {"integer"}:
            arrays = read_digits(self._data, self._start, self._separator, self.width)
            if arrays is not None:
                return [NumberColumn(array) for array in arrays]
        has_whitespace = b" " in self._data or b"\t" in self._data
        if has_whitespace and "text" in kinds:
            return None  # whitespace around text must be stripped
        polars = load_polars()
        types = {"integer": polars.Int64, "decimal": polars.Float64, "text": polars.String}
        frame = self._read_frame(
            {f"c{position}": types[kind] for position, kind in enumerate(kinds)}
        )
        return None if frame is None else self._finite_columns(frame)

    def _finite_columns(self, frame: Any) -> list[Column] | None:
        """Return the columns of a frame, None if a number is missing or not finite."""
        columns: list[Column] = []
        for series in frame.get_columns():
            if not series.dtype.is_numeric():
                columns.append(self._text_column(series))
                continue
            array = series.to_numpy()
            if series.null_count() or not np.isfinite(array).all():
                return None
            columns.append(NumberColumn(array))
        return columns

    def _guess_kinds(self, numbers: set[int]) -> list[str] | None:
        """Guess the kinds of columns from the first lines; None if they are not as expected."""
        head = self._data[self._start : self._start + _SNIFFED_BYTES].decode(errors="replace")
        rows = [line.split(self._separator) for line in head.split("\n")]
        rows = [row for row in rows[: max(1, len(rows) - 1)] if len(row) == self.width]
        kinds = ["text"] * self.width
        for position in numbers:
            values = {row[position] for row in rows}  # often few distinct ones
            if all(map(_INTEGER.fullmatch, values)):
                kinds[position] = "integer"
            elif all(map(_DECIMAL.fullmatch, values)):
                kinds[position] = "decimal"
            else:
                return None
        return kinds

    def _read_as_text(self, *, quoted: bool) -> list[Column] | None:
        """Read text, without surrounding whitespace and quotes."""
        polars = load_polars()
        schema = {f"c{position}": polars.String for position in range(self.width)}
        frame = self._read_frame(schema)
        if frame is None:
            return None
        with refuse_polars_errors(self._error_class, "CSV"):
            has_whitespace = b" " in self._data or b"\t" in self._data
            columns = []
            for series in frame.get_columns():
                text = series.str.strip_chars(" \t") if has_whitespace else series
                if quoted:
                    quotes = text.str.count_matches('"', literal=True)
                    wrapped = text.str.contains(r'^"[^"]*"$')
                    if not ((quotes == 0) | ((quotes == 2) & wrapped)).all():
                        return None
                    text = text.str.strip_chars('"')
                    text = text.str.strip_chars(" \t") if has_whitespace else text
                columns.append(self._text_column(text))
            return list(columns)

    def _text_column(self, values: Any) -> TextColumn:
        polars = load_polars()
        series = polars.Series(values, dtype=polars.String) if isinstance(values, list) else values
        return TextColumn(series, from_csv=True, decimal_comma=self._separator != ",")

    def _read_with_csv_module(self) -> list[Column]:
        """Read line by line; refuse rows of a wrong length and quotes that are not closed."""
        polars = load_polars()
        reader = csv.reader(
            self._iter_lines(), delimiter=self._separator, strict=True, skipinitialspace=True
        )
        column_parts: list[list[Any]] = [[] for _ in range(self.width)]
        batch: list[list[str]] = []
        ragged_lines: list[int] = []
        ragged_count = 0
        try:
            for fields in reader:
                blank = not fields or (len(fields) == 1 and not fields[0].strip())
                if blank and self.width > 1:
                    continue
                row = fields or [""]  # an empty line of one column is an empty field
                if len(row) != self.width:
                    ragged_count += 1
                    ragged_lines += (
                        [self._skipped + reader.line_num] if ragged_count <= SHOWN else []
                    )
                    continue
                batch.append(row)
                if len(batch) >= _BATCH_ROWS:
                    _flush_batch(batch, column_parts, polars)
        except csv.Error:
            line_number = self._skipped + reader.line_num
            message = f"Quotes do not match, or a field is too long, at line {line_number}."
            refuse(self._error_class, "quotes", message)
        if ragged_count:
            problems = Problems(self._error_class)
            lines = ", ".join(map(str, ragged_lines)) + (", ..." if ragged_count > SHOWN else "")
            message = (
                f"Every row must have {format_count(self.width, 'field')}, like the first line; "
            )
            verb = "has" if ragged_count == 1 else "have"
            where = "line" if ragged_count == 1 else "lines"
            rows = format_count(ragged_count, "row")
            message += f"{rows} {verb} more or fewer ({where} {lines})."
            ids = [f"line {line}" for line in ragged_lines]
            problems.add("ragged", message, count=ragged_count, ids=ids)
            problems.refuse_if_any()
        _flush_batch(batch, column_parts, polars)
        return [
            self._text_column(polars.concat(column_part) if column_part else [])
            for column_part in column_parts
        ]

    def _iter_lines(self) -> Iterator[str]:
        position = self._start
        while position < len(self._data):
            end = self._data.find(b"\n", position, position + _LONGEST_LINE)
            if end < 0:
                end = len(self._data)
                if end - position > _LONGEST_LINE:
                    message = f"A line is longer than {_LONGEST_LINE} bytes; is the file CSV?"
                    refuse(self._error_class, "line_too_long", message)
            yield self._data[position : end + 1].decode()
            position = end + 1


def _flush_batch(batch: list[list[str]], column_parts: list[list[Any]], polars: Any) -> None:
    """Move rows of text from a list into series, which take much less memory."""
    for column_part, values in zip(column_parts, zip(*batch, strict=True), strict=bool(batch)):
        stripped = [value.strip(" \t\n") for value in values]
        column_part.append(polars.Series(stripped, dtype=polars.String))
    batch.clear()


def escape_formula(text: str | None) -> str:
    """Return text that a spreadsheet does not read as a formula.

    >>> escape_formula("=cmd|' /C calc'!A0"), escape_formula("Team 1")
    ("'=cmd|' /C calc'!A0", 'Team 1')
    """
    if text is None:
        return ""
    return f"'{text}" if text.lstrip().startswith(_FORMULA_STARTS) else text


_DIGIT_BLOCK_BYTES = 2**19  # a block and its intermediate results fit into a CPU cache
_MAX_LINE = 2**17  # bytes that are still parsed line by line
_WORD = np.uint64
# Indexed by the number of digits plus one: keeps the low four bits of that many last bytes.
_MASKS = np.array([0, *(0x0F0F0F0F0F0F0F0F >> 8 * (8 - n) << 8 * (8 - n) for n in range(9))], _WORD)
_PAIRS = _WORD(0x000000FF000000FF)
_HUNDREDS, _MILLIONS = _WORD(0x0000271000000001), _WORD(0x000F424000000064)


def read_digits(
    data: bytes, start: int, separator: str, width: int
) -> list[NDArray[np.int64]] | None:
    r"""Return the columns of lines that hold only digits; None if they hold anything else.

    >>> [column.tolist() for column in read_digits(b"a header,b\n12,0\n7,1\n", 11, ",", 2)]
    [[12, 7], [0, 1]]
    """
    blocks: list[Columns] = []
    for block in iter_digit_blocks(data, start, separator, width):
        if block is None:
            return None
        blocks.append(block)
    return [np.concatenate(column, dtype=np.int64) for column in zip(*blocks, strict=True)] or None


def iter_digit_blocks(
    data: bytes, start: int, separator: str, width: int
) -> Iterator[Columns | None]:
    """Yield the columns of such lines in blocks of some thousand rows; None for anything else."""
    if separator >= "0" or sys.byteorder != "little":
        yield None
        return
    separator_bytes = [ord(separator)] * (width - 1) + [ord("\n")]
    # The fast path needs complete words, and one before the first line. The few lines at either
    # end are parsed one by one.
    head = start if start >= 8 else data.find(b"\n", 7) + 1 or len(data)
    tail = max(head, data.rfind(b"\n", head, len(data) // 8 * 8) + 1)
    if start < head:
        yield _read_lines(data[start:head], separator, width)
    while head < tail:
        end = data.rfind(b"\n", head, min(head + _DIGIT_BLOCK_BYTES, tail)) + 1
        if not end:  # the line is too long
            yield None
            return
        yield _read_block(data, separator_bytes, (head, end))
        head = end
    if tail < len(data):
        yield _read_lines(data[tail:], separator, width)


def _read_lines(lines: bytes, separator: str, width: int) -> Columns | None:
    """Parse a few lines, one by one."""
    if len(lines) > _MAX_LINE:
        return None
    rows = [line.split(separator.encode()) for line in lines.removesuffix(b"\n").split(b"\n")]
    if any(len(row) != width for row in rows):
        return None
    if not all(re.fullmatch(rb"[0-9]{1,8}", field) for row in rows for field in row):
        return None
    return list(np.array([[int(field) for field in row] for row in rows], dtype=np.int64).T)


def _read_block(data: bytes, separators: list[int], block: tuple[int, int]) -> Columns | None:
    """Parse the columns of complete lines; ``separators`` has the byte after each column."""
    start, end = block
    width = len(separators)
    characters = np.frombuffer(data, np.uint8)
    words = np.frombuffer(data, _WORD, len(data) // 8)
    characters_read = characters[start:end]
    if characters_read.max() > ord("9"):
        return None
    ends = np.flatnonzero(characters_read < ord("0"))
    if len(ends) % width:
        return None
    ends += start
    previous_ends = np.append(start - 1, ends[width - 1 : -1 : width])  # ends of previous lines
    columns = []
    for column_index, separator_byte in enumerate(separators):
        column_ends = ends[column_index::width]
        steps = column_ends - previous_ends
        longest = steps.max()
        if longest > 9 or steps.min() < 2:
            return None
        column: NDArray[Any]
        if longest == 2:  # all have one digit, as classes often do
            column = characters.take(column_ends - 1)
            column &= np.uint8(0x0F)
        else:
            column = _parse_numbers(words, column_ends, steps)
        if (characters.take(column_ends) != separator_byte).any():
            return None
        columns.append(column)
        previous_ends = column_ends
    return columns


def _parse_numbers(
    words: NDArray[np.uint64], ends: NDArray[np.int64], steps: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the numbers that end at ``ends``; ``steps`` are distances to the previous separator.

    The eight bytes before each end are combined from two aligned words, which takes a quarter of
    the time of unaligned reads.
    """
    start = ends - 8
    bits = (start & 7).view(_WORD)
    bits <<= _WORD(3)
    start >>= 3
    word, high = words.take(start), words[1:].take(start)
    word >>= bits
    np.subtract(_WORD(64), bits, out=bits)
    high <<= bits  # a shift by all 64 bits gives 0
    word |= high
    word &= _MASKS.take(steps, out=bits, mode="clip")
    np.right_shift(word, _WORD(8), out=high)
    word *= _WORD(10)
    word += high
    np.right_shift(word, _WORD(16), out=high)
    word &= _PAIRS
    word *= _MILLIONS
    high &= _PAIRS
    high *= _HUNDREDS
    word += high
    word >>= _WORD(32)
    return word.view(np.int64)
