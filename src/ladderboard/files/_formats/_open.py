"""Opens a file or an object of any supported format as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.files._formats._csv import CsvTable, normalize_text, read_first_line
from ladderboard.files._memory import read_memory
from ladderboard.files._source import decompress, detect_format, is_file_like, read_source, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.files._columns import Table
    from ladderboard.files._source import ErrorClass, Limits


def open_table(
    source: Any,
    *,
    file_format: str | None,
    limits: Limits,
    max_rows: int,
    error_class: ErrorClass,
    has_header: Callable[[list[str], Callable[[], int]], bool],
) -> Table:
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
        return _open_csv(
            data, separator, limits, error_class, max_rows=max_rows, has_header=has_header
        )
    return _open_non_csv(data, file_format, limits, error_class, max_rows)


def _open_non_csv(
    data: bytes, file_format: str, limits: Limits, error_class: ErrorClass, max_rows: int
) -> Table:
    """Open any format but CSV; readers are imported on demand, which keeps start-up fast."""
    if file_format == "jsonl":
        from ladderboard.files._formats._json_lines import read_json_lines  # noqa: PLC0415

        return read_json_lines(data, limits, max_rows, error_class)
    if file_format == "npy":
        from ladderboard.files._formats._npy import read_npy  # noqa: PLC0415

        return read_npy(data, limits, max_rows, error_class)
    from ladderboard.files._formats._columnar import ColumnarTable  # noqa: PLC0415

    return ColumnarTable(data, file_format, limits, max_rows, error_class)


def _open_csv(
    data: bytes,
    separator: str | None,
    limits: Limits,
    error_class: ErrorClass,
    *,
    max_rows: int,
    has_header: Callable[[list[str], Callable[[], int]], bool],
) -> CsvTable:
    data = normalize_text(data, error_class)
    separator, fields, start = read_first_line(data, separator, limits, error_class)
    header = has_header(fields, lambda: data.count(b"\n", start) + (not data.endswith(b"\n")))
    if header:
        end = data.find(b"\n", start)
        start = len(data) if end < 0 else end + 1
    names = fields if header else None
    return CsvTable(
        data, separator, names, len(fields), start=start, max_rows=max_rows, error_class=error_class
    )


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
