"""Opens a file or an object of any supported format as a table."""

from __future__ import annotations

import ast
import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from ladderboard._formatting import format_count
from ladderboard.files._columns import MemoryTable, MixedColumn
from ladderboard.files._formats._csv import normalize_text, open_csv
from ladderboard.files._memory import array_to_table, read_memory
from ladderboard.files._source import (
    SHOWN,
    ErrorClass,
    Problems,
    decompress,
    detect_format,
    is_file_like,
    read_source,
    refuse,
    single_refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ladderboard.files._columns import FileTable
    from ladderboard.files._source import ErrorClass, Limits


def open_table(
    source: Any,
    *,
    file_format: str | None,
    limits: Limits,
    max_rows: int,
    error_class: ErrorClass,
    has_header: Callable[[list[str], Callable[[], int]], bool],
) -> FileTable:
    """Return a source as a table of at most ``max_rows`` rows.

    ``has_header`` decides whether the first line of a CSV file is a header; it gets the fields of
    the line and a function that counts the lines.
    """
    if not is_file_like(source):
        return _check_size(read_memory(source, error_class), limits, max_rows, error_class)
    data, name = read_source(source, limits, error_class)
    data, name = decompress(data, name, limits, error_class)
    file_format = detect_format(data, name, file_format)
    if file_format in {"csv", "tsv"}:
        separator = "\t" if file_format == "tsv" else None
        return open_csv(
            data, separator, limits, error_class, max_rows=max_rows, has_header=has_header
        )
    return _open_non_csv(data, file_format, limits, error_class, max_rows)


def _open_non_csv(
    data: bytes, file_format: str, limits: Limits, error_class: ErrorClass, max_rows: int
) -> FileTable:
    """Open any format but CSV."""
    if file_format == "jsonl":
        return read_json_lines(data, limits, max_rows, error_class)
    if file_format == "npy":
        return read_npy(data, limits, max_rows, error_class)
    from ladderboard.files._formats._columnar import ColumnarTable  # noqa: PLC0415 - slow start

    return ColumnarTable(data, file_format, limits, max_rows, error_class)


def _check_size(table: Any, limits: Limits, max_rows: int, error_class: ErrorClass) -> Any:
    rows = len(table.columns[0]) if table.columns else 0
    if rows > max_rows:
        refuse(
            error_class,
            "too_many_rows",
            f"There are {format_count(rows, 'row')}, more than {max_rows}.",
        )
    if table.width > limits.columns:
        message = f"There are {table.width} columns; the limit is {limits.columns}."
        refuse(error_class, "too_many_columns", message)
    return table


_LONGEST_HEADER = 10_000
_TRIES = 20


def read_npy(data: bytes, limits: Limits, max_rows: int, error_class: ErrorClass) -> MemoryTable:
    """Return a .npy file as a table: a vector, a matrix, or a structured array."""
    try:
        shape, fortran, dtype, start = _read_header(data)
    except Exception as error:  # parsing a Python literal may fail in any way
        rule = "The file could not be read as .npy: its header is damaged."
        raise single_refusal(error_class, "damaged", rule) from error
    if dtype.hasobject:
        message = "The array holds Python objects, which are not loaded; save numbers or text."
        refuse(error_class, "wrong_type", message)
    if len(shape) not in {1, 2}:
        message = f"The array must be a vector or a matrix; its shape is {shape}."
        refuse(error_class, "wrong_shape", message)
    if shape[0] > max_rows:
        refuse(
            error_class, "too_many_rows", f"The array holds {shape[0]} rows, more than {max_rows}."
        )
    if math.prod(shape[1:]) > limits.columns or len(dtype.names or ()) > limits.columns:
        message = f"There are more than {limits.columns} columns, which is the limit."
        refuse(error_class, "too_many_columns", message)
    count, remaining = math.prod(shape), len(data) - start
    if dtype.itemsize * count != remaining:
        message = (
            f"The header promises {dtype.itemsize * count} bytes of data; there are {remaining}."
        )
        refuse(error_class, "damaged", message)
    try:
        array = np.frombuffer(data, dtype, count, start) if remaining else np.empty(shape, dtype)
        table = array_to_table(array.reshape(shape, order="F" if fortran else "C"))
    except Exception as error:  # such as bytes that are not text
        raise single_refusal(error_class, "damaged", "The array could not be read.") from error
    if table is None:
        refuse(error_class, "damaged", "The array could not be read.")
    return table


def _read_header(data: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return the shape, whether the order is Fortran's, the dtype, and the start of the data.

    NumPy's own parser accepts headers written by Python 2 with a warning; here they are refused.
    """
    length_bytes = {1: 2, 2: 4, 3: 4}[data[6]]
    start = 8 + length_bytes + int.from_bytes(data[8 : 8 + length_bytes], "little")
    if not data.startswith(npy.MAGIC_PREFIX) or start > min(len(data), _LONGEST_HEADER):
        raise ValueError
    header = _parse_literal(
        data[8 + length_bytes : start].decode("utf-8" if data[6] == 3 else "latin1")
    )
    shape, fortran = header["shape"], header["fortran_order"]
    if (
        not all(type(length) is int and length >= 0 for length in shape)
        or type(fortran) is not bool
    ):
        raise ValueError
    return tuple(shape), fortran, npy.descr_to_dtype(header["descr"]), start


def _parse_literal(text: str) -> Any:
    """Return the value of a Python literal.

    The parser of Python 3.11 shares its recursion counter between threads, and may raise
    ``SystemError`` if two of them parse at once; a retry succeeds.
    """
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.literal_eval(text)
    return ast.literal_eval(text)


_LONGEST_LINE = 2**22


def read_json_lines(
    data: bytes, limits: Limits, max_rows: int, error_class: ErrorClass
) -> MemoryTable:
    """Return a JSON Lines file as a table."""
    values: dict[str, list[Any]] = {}
    wrong_lines: list[int] = []
    rows = 0
    for number, line in _iter_lines(normalize_text(data, error_class), error_class):
        row = _parse_row(line)
        if rows == 0 and not wrong_lines and row is not None:
            if len(row) > limits.columns:
                message = f"There are more than {limits.columns} columns, which is the limit."
                refuse(error_class, "too_many_columns", message)
            values = {key: [] for key in row}
        if row is None or row.keys() != values.keys():
            wrong_lines.append(number)
            continue
        rows += 1
        if rows > max_rows:
            refuse(
                error_class,
                "too_many_rows",
                f"The file holds more than {format_count(max_rows, 'row')}.",
            )
        for key, value in row.items():
            values[key].append(value if type(value) not in {list, dict} else _Nested)
    if wrong_lines:
        problems = Problems(error_class)
        shown = ", ".join(map(str, wrong_lines[:SHOWN])) + (
            ", ..." if len(wrong_lines) > SHOWN else ""
        )
        message = "Every line must be one JSON object with the same keys as the first; "
        message += f"{format_count(len(wrong_lines), 'line')} are not (line {shown})."
        ids = [f"line {line}" for line in wrong_lines[:SHOWN]]
        problems.add("ragged", message, count=len(wrong_lines), ids=ids)
        problems.refuse_if_any()
    return MemoryTable(list(values), [MixedColumn(column) for column in values.values()])


def _iter_lines(data: bytes, error_class: ErrorClass) -> Iterator[tuple[int, bytes]]:
    """Yield every non-blank line with its number."""
    position = number = 0
    while position < len(data):
        end = data.find(b"\n", position, position + _LONGEST_LINE)
        if end < 0:
            end = len(data)
            if end - position > _LONGEST_LINE:
                message = f"A line is longer than {_LONGEST_LINE} bytes; is the file JSON Lines?"
                refuse(error_class, "line_too_long", message)
        line = data[position:end]
        position, number = end + 1, number + 1
        if line.strip():
            yield number, line


class _Nested:
    """A placeholder for a list or an object, which columns do not support."""


def _parse_row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
