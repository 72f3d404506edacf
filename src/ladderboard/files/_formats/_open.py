"""Open a source as a sheet, whatever its format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.files._formats._csv import CsvSheet, clean, first_line
from ladderboard.files._memory import read_memory
from ladderboard.files._problems import refuse
from ladderboard.files._source import detect_format, is_file_like, open_source, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.files._columns import Table
    from ladderboard.files._problems import Refusal
    from ladderboard.files._source import Limits


def open_sheet(
    source: Any,
    *,
    file_format: str | None,
    limits: Limits,
    most: int,
    refusal: Refusal,
    has_header: Callable[[list[str], Callable[[], int]], bool],
) -> Table:
    """Return a source as a sheet of at most ``most`` rows.

    ``has_header`` is asked about the first line of a CSV file; it gets the fields and a function
    that counts the lines.
    """
    if not is_file_like(source):
        return _checked(read_memory(source, refusal), limits, most, refusal)
    data, name = open_source(source, limits, refusal)
    data, name = unpacked(data, name, limits, refusal)
    form = detect_format(data, name, file_format)
    if form in {"csv", "tsv"}:
        told = "\t" if form == "tsv" else None
        return _open_csv(data, told, limits, refusal, most=most, has_header=has_header)
    return _open_other(data, form, limits, refusal, most)


def _open_other(data: bytes, form: str, limits: Limits, refusal: Refusal, most: int) -> Table:
    """Open what is no CSV; a reader is loaded when a file wants it, for a cold start is short."""
    if form == "jsonl":
        from ladderboard.files._formats._json_lines import read_json_lines  # noqa: PLC0415

        return read_json_lines(data, limits, most, refusal)
    if form == "npy":
        from ladderboard.files._formats._npy import read_npy  # noqa: PLC0415

        return read_npy(data, limits, most, refusal)
    from ladderboard.files._formats._columnar import ColumnarSheet  # noqa: PLC0415

    return ColumnarSheet(data, form, limits, most, refusal)


def _open_csv(
    data: bytes,
    told: str | None,
    limits: Limits,
    refusal: Refusal,
    *,
    most: int,
    has_header: Callable[[list[str], Callable[[], int]], bool],
) -> CsvSheet:
    data = clean(data, refusal)
    separator, fields, start = first_line(data, told, limits, refusal)
    header = has_header(fields, lambda: data.count(b"\n", start) + (not data.endswith(b"\n")))
    if header:
        end = data.find(b"\n", start)
        start = len(data) if end < 0 else end + 1
    names = fields if header else None
    return CsvSheet(data, separator, names, len(fields), start=start, most=most, refusal=refusal)


def _checked(sheet: Any, limits: Limits, most: int, refusal: Refusal) -> Any:
    rows = len(sheet.columns[0]) if sheet.columns else 0
    if rows > most:
        refuse(
            refusal, "too_many_rows", f"There are {format_count(rows, 'row')}, more than {most}."
        )
    if sheet.width > limits.columns:
        said = f"There are {sheet.width} columns; the limit is {limits.columns}."
        refuse(refusal, "too_many_columns", said)
    return sheet
