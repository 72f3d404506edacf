"""JSON Lines: an object on every line, all with the same keys.

Read by the standard library, line by line: numbers keep their type and text its characters, which
a reader that guesses a schema from the first lines does not promise.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.files._columns import MemoryTable, Mixed
from ladderboard.files._formats._csv import clean
from ladderboard.files._problems import SHOWN, Problems, Refusal, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.files._source import Limits

_LONGEST_LINE = 2**22


def read_json_lines(data: bytes, limits: Limits, most: int, refusal: Refusal) -> MemoryTable:
    """Return the sheet of a JSON Lines file."""
    values: dict[str, list[Any]] = {}
    wrong: list[int] = []
    rows = 0
    for number, line in _lines(clean(data, refusal), refusal):
        row = _row(line)
        if rows == 0 and not wrong and row is not None:
            if len(row) > limits.columns:
                said = f"There are more than {limits.columns} columns, which is the limit."
                refuse(refusal, "too_many_columns", said)
            values = {each: [] for each in row}
        if row is None or row.keys() != values.keys():
            wrong.append(number)
            continue
        rows += 1
        if rows > most:
            refuse(
                refusal, "too_many_rows", f"The file holds more than {format_count(most, 'row')}."
            )
        for key, value in row.items():
            values[key].append(value if type(value) not in {list, dict} else _Nested)
    if wrong:
        problems = Problems(refusal)
        shown = ", ".join(map(str, wrong[:SHOWN])) + (", ..." if len(wrong) > SHOWN else "")
        said = "Every line must be one JSON object with the same keys as the first; "
        said += f"{format_count(len(wrong), 'line')} are not (line {shown})."
        ids = [f"line {each}" for each in wrong[:SHOWN]]
        problems.add("ragged", said, count=len(wrong), ids=ids)
        problems.refuse_if_any()
    return MemoryTable(list(values), [Mixed(each) for each in values.values()])


def _lines(data: bytes, refusal: Refusal) -> Iterator[tuple[int, bytes]]:
    """Yield every line that is not blank, with its number."""
    at = number = 0
    while at < len(data):
        end = data.find(b"\n", at, at + _LONGEST_LINE)
        if end < 0:
            end = len(data)
            if end - at > _LONGEST_LINE:
                said = f"A line is longer than {_LONGEST_LINE} bytes; is the file JSON Lines?"
                refuse(refusal, "line_too_long", said)
        line = data[at:end]
        at, number = end + 1, number + 1
        if line.strip():
            yield number, line


class _Nested:
    """Stands for a list or an object, which no column takes."""


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
