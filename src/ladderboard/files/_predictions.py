"""Predictions: read, joined to the roster, checked as far as they can be without labels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files._column_matching import (
    ColumnSelection,
    ExpectedColumns,
    IdColumn,
    expected_columns,
    known_name,
    named_id,
    select_columns,
    unnamed,
)
from ladderboard.files._formats import open_sheet
from ladderboard.files._memory import as_column, read_vector
from ladderboard.files._problems import Problems, format_names, refuse
from ladderboard.files._roster import Roster, Rows, Small, join, put_small
from ladderboard.files._source import Limits
from ladderboard.losses import Loss, ZeroOne, format_unknown_classes, is_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column, Reading, Table

_DEFAULT = Limits()
_NUMBER = r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*"
VALUE_RULES = {
    "missing_value": "is missing",
    "not_finite": "is infinite",
    "not_a_number": "is not a number",
    "not_text": "is not text, which is needed",
    "unknown_class": "is none of the declared classes",
}


def read_predictions(
    source: Any,
    roster: Roster,
    loss: Loss,
    *,
    format: str | None = None,  # noqa: A002 - the word people use
    limits: Limits = _DEFAULT,
) -> NDArray[Any]:
    r"""Return predictions in the holdout's order, fit for ``loss.score``.

    Parameters
    ----------
    source
        A path, bytes, an open binary file, or an object in memory: arrays, lists, dicts of columns,
        pandas and polars frames and series.
    roster
        What to join to: by id, or by position where there are no ids.
    loss
        The loss that will score them; it says which columns, and of what kind, are wanted.
    format
        One of csv, tsv, parquet, arrow, jsonl, npy; found out if not given.
    limits
        How large a file may be.

    Raises
    ------
    InvalidPredictions
        With everything that is wrong in ``problems``. It never depends on labels.

    Examples
    --------
    >>> import ladderboard as lb
    >>> roster = Roster.of(["a", "b", "c"], kind="number")
    >>> read_predictions(b"id,prediction\nc,3\na,1\nb,2\n", roster, lb.loss("zero_one"))
    array([1, 2, 3])
    """
    if not isinstance(roster, Roster) or not isinstance(loss, Loss):
        raise InvalidSetting("Predictions are read for a Roster and a loss; try Roster.of(ids).")
    expected = expected_columns(loss, roster)
    if isinstance(loss, ZeroOne) and roster.n <= limits.rows:  # it has no rule of its own
        quick = read_vector(source, roster.n, expected)
        if quick is not None and not _may_be_ids(source, roster):
            return quick
    sheet = open_sheet(
        source,
        file_format=format,
        limits=limits,
        # With so many rows more than the holdout has, naming the surplus ones helps nobody.
        most=min(limits.rows, 2 * roster.n + 1000),
        refusal=InvalidPredictions,
        has_header=lambda fields, lines: _has_header(fields, lines, roster, expected),
    )
    at = named_id(sheet.names)
    if at is None:
        return _without_id(sheet, roster, loss, expected)
    choice = select_columns(sheet.names or [], expected, InvalidPredictions, at)
    quick = _put_small(sheet, choice, roster, expected)
    if quick is not None:
        return quick
    which = [at, *choice.values]
    number = [roster.whole] + [expected.number] * len(choice.values)
    columns = sheet.load_without_polars(which, number) or sheet.load(which, number)
    return _joined(sheet, choice, columns, roster=roster, loss=loss, expected=expected)


def _without_id(
    sheet: Table, roster: Roster, loss: Loss, expected: ExpectedColumns
) -> NDArray[Any]:
    """Read a file without a column named id: another one may hold the ids."""
    seen = sheet.load_all(number=expected.number)
    ids = IdColumn(sheet.names, seen, roster, expected).find()
    choice = _choice(sheet, expected, ids)
    which = [*([] if choice.id is None else [choice.id]), *choice.values]
    loaded = [seen[at] for at in which]
    columns = [each for each in loaded if each is not None]
    if len(columns) < len(loaded):
        columns = sheet.load(which, [expected.number] * len(which))  # refuses
    return _joined(sheet, choice, columns, roster=roster, loss=loss, expected=expected)


def _joined(
    sheet: Table,
    choice: ColumnSelection,
    columns: list[Column],
    *,
    roster: Roster,
    loss: Loss,
    expected: ExpectedColumns,
) -> NDArray[Any]:
    """Join columns, ids first, to the roster, and refuse whatever is wrong with them."""
    ids = None if choice.id is None else columns.pop(0)
    rows = Rows(ids)
    places = None if ids is None else roster.place(ids)
    readings = [each.numbers() if expected.number else each.texts() for each in columns]
    plain = expected.form == "one" and expected.classes is None and not expected.strict
    if places is not None and plain and not readings[0].bad:
        done = put_small(places, readings[0].values, roster.n)
        if done is not None:
            return done
    problems = Problems(InvalidPredictions)
    called = "id" if choice.id is None or sheet.names is None else sheet.names[choice.id]
    join(ids, places, len(columns[0]), roster, problems, column=called)
    for column, reading in zip(_names(sheet, choice), readings, strict=True):
        if expected.form == "one" and expected.classes is not None:
            _check_classes(reading, expected.classes)
        for code, bad in reading.bad.items():
            rule = f"The value of {format_names([column])} {VALUE_RULES[code]}"
            if code == "unknown_class" and expected.classes is not None:
                there = format_unknown_classes(reading.values[bad], expected.classes)
                rule += f" ({format_names(expected.classes)}); there is {there}"
            problems.add_rows(code, rule, bad, rows, column=column)
    several = expected.form != "one" and not (
        len(columns) == 1 and (expected.single or expected.width is None)
    )
    values = np.column_stack([each.values for each in readings]) if several else readings[0].values
    if not isinstance(loss, ZeroOne):  # it has no rule of its own
        good = _good(readings)
        shape = (len(good),) if roster.width is None else (len(good), roster.width)
        _ask(
            loss,
            values if len(good) == len(values) else values[good],
            shape,
            _At(rows, good),
            problems,
        )
    problems.refuse_if_any()
    if places is None:
        return values.copy()  # it may be the caller's own array
    out = np.empty_like(values)
    out[places] = values
    return out


def _put_small(
    sheet: Table, choice: ColumnSelection, roster: Roster, expected: ExpectedColumns
) -> NDArray[np.int64] | None:
    """Return small whole numbers of the ids 0..n-1, None if that is not just what there is."""
    small = expected.form == "one" and expected.number and not expected.strict
    if choice.id is None or not roster.ordinal or not small:
        return None
    found = Small(roster.n)
    if not sheet.stream_integers([choice.id, *choice.values], found.put):
        return None
    return found.all(expected.classes)


def _may_be_ids(vector: Any, roster: Roster) -> bool:
    """Return whether a vector begins with an id, so that it must be looked at."""
    first = as_column(vector[:1])
    return not roster.counted and first is not None and bool(roster.place(first)[0] >= 0)


def _has_header(
    fields: list[str], lines: Callable[[], int], roster: Roster, expected: ExpectedColumns
) -> bool:
    """Return whether a first line is a header; refuse where that is not clear."""
    if any(known_name(each, expected) for each in fields):
        return True
    if unnamed(len(fields), expected, 0) and roster.knows(fields[0]):
        return False
    numbers = all(re.fullmatch(_NUMBER, each) for each in fields)
    if expected.number and numbers:
        if unnamed(len(fields), expected):
            return False
        said = "The file has no header, and its columns are not clear; begin it with "
        said += f"id,{expected.column or 'prediction'}. The first line is {format_names(fields)}."
        refuse(InvalidPredictions, "header", said)
    if len(fields) == 1 and not expected.number:
        return lines() != roster.n  # one more is a header, any other number is refused
    return True


def _choice(sheet: Table, expected: ExpectedColumns, ids: int | None) -> ColumnSelection:
    if sheet.names is not None:
        return select_columns(sheet.names, expected, InvalidPredictions, ids)
    found = unnamed(sheet.width, expected, ids)
    if ids is None:
        found = found or unnamed(sheet.width, expected, 0)  # ids of which none is the holdout's
    if found is not None:
        return found
    wide = "one value" if expected.width == 1 else f"{expected.width} values"
    said = f"Predictions must hold {wide} a row; got {sheet.width} columns."
    return refuse(InvalidPredictions, "wrong_shape", said)


def _names(sheet: Table, choice: ColumnSelection) -> list[str]:
    if sheet.names is not None:
        return [sheet.names[at] for at in choice.values]
    if len(choice.values) == 1:
        return ["prediction"]
    return [f"column {at + 1}" for at in choice.values]


def _check_classes(reading: Reading, classes: tuple[Any, ...]) -> None:
    """Mark what is no declared class and is not marked yet."""
    fine = is_class(reading.values, classes)
    for bad in reading.bad.values():
        fine |= bad
    reading.mark("unknown_class", ~fine)


def _good(readings: list[Reading]) -> NDArray[np.int64]:
    """Return the places of rows in which nothing is wrong so far."""
    bad = np.zeros(len(readings[0].values), np.bool_)
    for reading in readings:
        for mask in reading.bad.values():
            bad |= mask
    return np.flatnonzero(~bad)


class _At(Rows):
    """Names for the rows that are fine so far."""

    def __init__(self, rows: Rows, places: NDArray[np.int64]) -> None:
        super().__init__(rows.ids)
        self._places = places

    def name(self, places: NDArray[np.int64]) -> list[Any]:
        return super().name(self._places[places])


def _ask(
    loss: Loss, values: NDArray[Any], shape: tuple[int, ...], rows: Rows, problems: Problems
) -> None:
    """Let the loss refuse what it would, and name its rows."""
    if not len(values):
        return
    try:
        loss.read_predictions(values, shape)
    except InvalidPredictions as error:
        found = [each for each in error.problems if each.code == "rows"]
        for each in found:
            rule = f"{each.message[0].upper()}{each.message[1:]}"
            places = np.array(error.positions, dtype=np.int64)
            problems.add_rows("loss", rule, places, rows, count=each.count)
        if not found:
            problems.add("loss", str(error))
