"""JSON Lines: an object on every line, all with the same keys.

Read by the json module, line by line, so that numbers keep their type and text its characters; a
reader that guesses a schema from the first lines does not guarantee that.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.files._columns import MemoryTable, MixedColumn
from ladderboard.files._formats._csv import normalize_text
from ladderboard.files._source import SHOWN, ErrorClass, Problems, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.files._source import Limits

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
