"""Reads predictions, joins them to the roster, and checks everything that needs no labels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidPredictions, InvalidSetting, Problem
from ladderboard.files._column_matching import (
    LABEL_NAMES,
    ColumnSelection,
    IdColumnFinder,
    find_id_column,
    is_expected_count,
    is_known_header,
    is_numbered_label,
    normalize_name,
    select_columns,
    select_unnamed_columns,
)
from ladderboard.files._declared import combine_ids, find_columns
from ladderboard.files._formats import CsvTable, open_table
from ladderboard.files._memory import as_column, read_class_bytes, read_vector
from ladderboard.files._roster import (
    FileRows,
    Roster,
    SmallIntegerJoin,
    check_rows,
    join_small_integers,
)
from ladderboard.files._source import Limits, Problems, format_names, refuse
from ladderboard.losses import Loss, format_unknown_classes, is_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column, FileTable, ParsedColumn
    from ladderboard.losses import ExpectedColumns

_DEFAULT = Limits()
_NUMBER = r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*"
_MAX_ROWS_SEARCHED, _MAX_VALUES_SHOWN = 100, 2
_TWO_COLUMNS = (
    "A matrix with two columns is read as id and prediction; for class probabilities pass "
    "argmax(axis=1), or use a metric that takes probabilities."
)
_TWO_SCORES = (
    "A matrix with two columns whose rows do not sum to 1 is read as id and prediction; pass the "
    "scores of the second class only, as in scores[:, 1]."
)
_SUM_TOLERANCE = 0.01  # rounded probabilities may miss 1 by this much
VALUE_RULES = {
    "missing_value": "is missing",
    "not_finite": "is infinite",
    "not_a_number": "is not a number",
    "not_text": "is not text, which is needed",
    "unknown_class": "must be one of the classes",
}


def read_predictions(
    source: Any,
    roster: Roster,
    loss: Loss,
    *,
    format: str | None = None,  # noqa: A002 - the word people use
    limits: Limits = _DEFAULT,
    notes: list[str] | None = None,
) -> NDArray[Any]:
    r"""Return predictions in the holdout's order, fit for ``loss.score``.

    Parameters
    ----------
    source
        A path, bytes, an open binary file, or an object in memory: arrays, lists, dicts of columns,
        pandas and polars frames and series.
    roster
        The rows to join to: by id, or by position if there are no ids.
    loss
        The loss that will score them; it decides which columns are expected, and of what kind.
    format
        One of csv, tsv, parquet, arrow, jsonl, npy; detected if not given.
    limits
        The maximum size of a file.
    notes
        Sentences on which columns were taken are appended to this list, if it is given.

    Raises
    ------
    InvalidPredictions
        Its ``problems`` list everything that is wrong. It never depends on labels.

    Examples
    --------
    >>> import ladderboard as lb
    >>> roster = Roster.of(["a", "b", "c"], kind="number")
    >>> read_predictions(b"id,prediction\nc,3\na,1\nb,2\n", roster, lb.loss("zero_one"))
    array([1, 2, 3])
    >>> notes = []
    >>> read_predictions(b"score\n1\n2\n3\n", roster, lb.loss("zero_one"), notes=notes)
    array([1, 2, 3])
    >>> notes[0]
    'The file has no ids, so its rows were matched by position.'
    """
    if not isinstance(roster, Roster) or not isinstance(loss, Loss):
        raise InvalidSetting("Predictions are read for a Roster and a loss; try Roster.of(ids).")
    expected = loss.columns(kind=roster.kind, width=roster.width)
    if expected.complete and roster.n <= limits.rows and not isinstance(source, bytes):
        joined = read_vector(source, roster.n, expected)
        if joined is not None and not _starts_with_id(source, roster):
            return joined
    table = open_table(
        source,
        file_format=format,
        limits=limits,
        # With that many surplus rows, listing their ids would not help.
        max_rows=min(limits.rows, 2 * roster.n + 1000),
        error_class=InvalidPredictions,
        has_header=lambda fields, lines: _has_header(fields, lines, roster, expected),
    )
    declared = roster.columns
    if declared is not None and declared.id and table.names is not None:
        wanted = {"ids": declared.id, "predictions": declared.submitted}
        ids, values = find_columns(table.names, wanted, InvalidPredictions)
        selection = _select_declared(table.names, ids, values, expected)
        _check_names(table, selection, roster)
        _note_columns(table, selection, notes, ids)
        if len(ids) > 1:
            return _join_several_ids(
                table, ids, selection, roster=roster, loss=loss, expected=expected
            )
    else:
        id_position = find_id_column(table.names)
        if id_position is None:
            return _read_without_id(table, roster, loss, expected, notes)
        selection = select_columns(table.names or [], expected, InvalidPredictions, id_position)
        _check_names(table, selection, roster)
        _note_columns(table, selection, notes)
    positions = [position for position in (selection.id, *selection.values) if position is not None]
    as_numbers = [roster.has_integer_ids] + [expected.number] * len(selection.values)
    joined = _join_small_integers(table, positions, roster, expected)
    if joined is not None:
        return joined
    columns = None
    if isinstance(table, CsvTable):
        columns = table.load_without_polars(positions, as_numbers)
    columns = columns or table.load_columns(positions, as_numbers)
    return _join_columns(table, selection, columns, roster=roster, loss=loss, expected=expected)


def read_small_classes(
    source: Any, roster: Roster, loss: Loss, limits: Limits = _DEFAULT
) -> NDArray[np.int8] | None:
    """Return what ``read_predictions`` would, as signed bytes, for a vector of whole numbers.

    None for anything else. All classes of the loss must fit into signed bytes.
    """
    expected = loss.columns(kind=roster.kind, width=roster.width)
    if not expected.complete or roster.n > limits.rows:
        return None
    joined = read_class_bytes(source, roster.n, expected)
    return None if joined is None or _starts_with_id(source, roster) else joined


def _select_declared(
    names: list[str], ids: list[int], values: list[int], expected: ExpectedColumns
) -> ColumnSelection:
    """Return the declared columns of predictions, or those that the loss expects among the rest."""
    if not values:
        others = [position for position in range(len(names)) if position not in ids]
        selected = select_columns(
            [names[position] for position in others], expected, InvalidPredictions
        )
        return ColumnSelection(ids[0], tuple(others[position] for position in selected.values))
    if not is_expected_count(len(values), expected):
        raise InvalidSetting(
            f"This metric needs {expected.width} columns of predictions; "
            f"{len(values)} are declared."
        )
    return ColumnSelection(ids[0], tuple(values))


def _join_several_ids(
    table: FileTable,
    ids: list[int],
    selection: ColumnSelection,
    *,
    roster: Roster,
    loss: Loss,
    expected: ExpectedColumns,
) -> NDArray[Any]:
    """Join by an id that is made of several columns."""
    as_numbers = [False] * len(ids) + [expected.number] * len(selection.values)
    columns = table.load_columns([*ids, *selection.values], as_numbers)
    combined = [combine_ids(columns[: len(ids)]), *columns[len(ids) :]]
    return _join_columns(table, selection, combined, roster=roster, loss=loss, expected=expected)


def _check_names(table: FileTable, selection: ColumnSelection, roster: Roster) -> None:
    """Refuse predictions of which every column is named like labels, if they must not be."""
    if roster.may_be_labels:
        return
    declared = roster.columns
    label, submitted = ((), ()) if declared is None else (declared.label, declared.submitted)
    named_labels = {*LABEL_NAMES, *map(normalize_name, label)} - set(map(normalize_name, submitted))
    names = [] if table.names is None else [table.names[column] for column in selection.values]
    normalized = [normalize_name(name) for name in names]
    if not names or not all(
        name in named_labels or (not submitted and is_numbered_label(name)) for name in normalized
    ):
        return
    one = len(names) == 1
    message = f"This file's column{'' if one else 's'} {format_names(names)} "
    message += f"{'is' if one else 'are'} named like the labels. If these are predictions, name "
    message += "it 'prediction'." if one else "them 'prediction_1', 'prediction_2' and so on."
    refuse(InvalidPredictions, "named_like_labels", message, column=names[0])


def _note_columns(
    table: FileTable,
    selection: ColumnSelection,
    notes: list[str] | None,
    ids: Sequence[int] = (),
) -> None:
    """Say that rows were matched by position, and which of several columns were taken."""
    if notes is None:
        return
    if selection.id is None:
        # Which id is first is not said: the holdout's own order may depend on labels.
        notes.append("The file has no ids, so its rows were matched by position.")
    names = table.names or []
    known = {*ids, *selection.values, *([] if selection.id is None else [selection.id])}
    unused = [name for position, name in enumerate(names) if position not in known]
    if unused:
        taken = format_names(names[position] for position in selection.values)
        columns = "columns" if len(selection.values) > 1 else "column"
        notes.append(
            f"The predictions are in the {columns} {taken}; not used: {format_names(unused)}."
        )


def _read_without_id(
    table: FileTable,
    roster: Roster,
    loss: Loss,
    expected: ExpectedColumns,
    notes: list[str] | None,
) -> NDArray[Any]:
    """Read a file without a column named id; another column may hold the ids."""
    all_columns = table.load_all(as_numbers=expected.number)
    id_position = IdColumnFinder(table.names, all_columns, roster, expected).find()
    if id_position is None and expected.pair and _is_probability_pair(table, all_columns):
        selection = ColumnSelection(None, (1,))
    else:
        selection = _select_columns(table, expected, id_position)
    _check_names(table, selection, roster)
    _note_columns(table, selection, notes)
    positions = [*([] if selection.id is None else [selection.id]), *selection.values]
    selected = [all_columns[position] for position in positions]
    columns = [column for column in selected if column is not None]
    if len(columns) < len(selected):
        columns = table.load_columns(positions, [expected.number] * len(positions))  # refuses
    return _join_columns(table, selection, columns, roster=roster, loss=loss, expected=expected)


def _join_columns(
    table: FileTable,
    selection: ColumnSelection,
    columns: list[Column],
    *,
    roster: Roster,
    loss: Loss,
    expected: ExpectedColumns,
) -> NDArray[Any]:
    """Join columns, of which the ids are first, to the roster; refuse invalid ones."""
    ids = None if selection.id is None else columns.pop(0)
    rows = FileRows(ids)
    matched_rows = None if ids is None else roster.match_ids(ids)
    parsed_columns = [_parse_column(column, expected) for column in columns]
    is_simple = expected.form == "one" and expected.classes is None and not expected.strict
    if matched_rows is not None and is_simple and not parsed_columns[0].bad_rows:
        joined = join_small_integers(matched_rows, parsed_columns[0].values, roster.n)
        if joined is not None:
            return joined
    problems = Problems(InvalidPredictions)
    id_name = "id" if selection.id is None or table.names is None else table.names[selection.id]
    check_rows(ids, matched_rows, len(columns[0]), roster, problems, column=id_name)
    if problems.items and ids is not None and _may_be_probabilities(table, expected):
        hint = _TWO_SCORES if expected.pair else _TWO_COLUMNS
        problems.items.insert(0, Problem("wrong_shape", None, 1, (), hint))
    names = _column_names(table, selection)
    for name, column, parsed in zip(names, columns, parsed_columns, strict=True):
        if expected.form == "one" and expected.classes is not None:
            _check_classes(parsed, expected.classes)
        for code, bad_rows in parsed.bad_rows.items():
            rule = f"The value of {format_names([name])} {VALUE_RULES[code]}"
            rule += _describe_values(code, column, parsed, expected)
            problems.add_rows(code, rule, bad_rows, rows, column=name)
    is_matrix = expected.form != "one" and not (
        len(columns) == 1 and (expected.single or expected.width is None)
    )
    values = (
        np.column_stack([parsed.values for parsed in parsed_columns])
        if is_matrix
        else parsed_columns[0].values
    )
    if not expected.complete:
        valid_rows = _find_valid_rows(parsed_columns)
        shape = (len(valid_rows),) if roster.width is None else (len(valid_rows), roster.width)
        _check_with_loss(
            loss,
            values if len(valid_rows) == len(values) else values[valid_rows],
            shape,
            _RowSubset(rows, valid_rows),
            problems,
        )
    problems.refuse_if_any()
    if matched_rows is None:
        return values.copy()  # it may be the caller's own array
    ordered = np.empty_like(values)
    ordered[matched_rows] = values
    return ordered


def _describe_values(
    code: str, column: Column, parsed: ParsedColumn, expected: ExpectedColumns
) -> str:
    """Return the values that break a rule about classes or numbers, and the classes."""
    bad_rows, classes = parsed.bad_rows[code], expected.classes
    if code == "unknown_class" and classes is not None:
        unknown = format_unknown_classes(parsed.values[bad_rows], classes)
        return f" {format_names(classes)}; got {unknown}"
    if code != "not_a_number":
        return ""
    values = column.values_at(np.flatnonzero(bad_rows)[:_MAX_ROWS_SEARCHED])
    examples = format_names(list(dict.fromkeys(map(str, values)))[:_MAX_VALUES_SHOWN])
    choice = "" if classes is None else f"; choose from {format_names(classes)}"
    return f", such as {examples}{choice}"


def _may_be_probabilities(table: FileTable, expected: ExpectedColumns) -> bool:
    """Return whether an array may hold the probabilities of two classes, not ids and classes."""
    is_array = table.names is None and not isinstance(table, CsvTable)
    return is_array and expected.form == "one" and (expected.classes is not None or expected.pair)


def _is_probability_pair(table: FileTable, columns: Sequence[Column | None]) -> bool:
    """Return whether an array holds the probabilities of two classes, as from predict_proba."""
    if table.names is not None or isinstance(table, CsvTable) or len(columns) != 2:
        return False
    parsed = [column.parse_numbers() for column in columns if column is not None]
    if len(parsed) < 2 or any(column.bad_rows for column in parsed):
        return False
    first, second = (column.values for column in parsed)
    smallest = min(first.min(initial=0), second.min(initial=0))
    return bool(smallest >= 0 and (np.abs(first + second - 1) <= _SUM_TOLERANCE).all())


def _parse_column(column: Column, expected: ExpectedColumns) -> ParsedColumn:
    """Return the parsed values; an empty value is no problem if it means something."""
    parsed = column.parse_numbers() if expected.number else column.parse_text()
    if expected.empty:
        parsed.bad_rows.pop("missing_value", None)
    return parsed


def _join_small_integers(
    table: FileTable, positions: list[int], roster: Roster, expected: ExpectedColumns
) -> NDArray[np.int64] | None:
    """Return predictions that are small integers for the ids 0..n-1; None if they are not."""
    is_simple = expected.form == "one" and expected.number and not expected.strict
    if not roster.is_sequential or not is_simple:
        return None
    join = SmallIntegerJoin(roster.n)
    if not table.stream_integers(positions, join.add):
        return None
    return join.result(expected.classes)


def _starts_with_id(vector: Any, roster: Roster) -> bool:
    """Return whether a vector begins with an id, and so may be a column of ids."""
    if roster.is_consecutive:
        return False
    first = as_column(vector[:1])
    return first is not None and bool(roster.match_ids(first)[0] >= 0)


def _has_header(
    fields: list[str], lines: Callable[[], int], roster: Roster, expected: ExpectedColumns
) -> bool:
    """Return whether the first line is a header; refuse if that is unclear."""
    if any(is_known_header(field, expected) for field in fields) or _is_declared(fields, roster):
        return True
    if select_unnamed_columns(len(fields), expected, 0) and roster.contains(fields[0]):
        return False
    numbers = all(re.fullmatch(_NUMBER, field) for field in fields)
    if expected.number and numbers:
        if select_unnamed_columns(len(fields), expected):
            return False
        message = "The file has no header, and its columns are not clear; begin it with "
        message += (
            f"id,{expected.column or 'prediction'}. The first line is {format_names(fields)}."
        )
        refuse(InvalidPredictions, "header", message)
    if len(fields) == 1 and not expected.number:
        return lines() != roster.n  # with one row more there is a header; other counts are refused
    return True


def _is_declared(fields: list[str], roster: Roster) -> bool:
    """Return whether a field of the first line is the name of a declared column."""
    if roster.columns is None:
        return False
    names = {normalize_name(name) for name in (*roster.columns.id, *roster.columns.submitted)}
    return any(normalize_name(field) in names for field in fields)


def _select_columns(
    table: FileTable, expected: ExpectedColumns, id_position: int | None
) -> ColumnSelection:
    if table.names is not None:
        return select_columns(table.names, expected, InvalidPredictions, id_position)
    selected = select_unnamed_columns(table.width, expected, id_position)
    if id_position is None:
        # The first column may hold ids that are all unknown.
        selected = selected or select_unnamed_columns(table.width, expected, 0)
    if selected is not None:
        return selected
    values_per_row = "one value" if expected.width == 1 else f"{expected.width} values"
    message = f"Predictions need {values_per_row} per row; got {table.width} columns."
    return refuse(InvalidPredictions, "wrong_shape", message)


def _column_names(table: FileTable, selection: ColumnSelection) -> list[str]:
    if table.names is not None:
        return [table.names[position] for position in selection.values]
    if len(selection.values) == 1:
        return ["prediction"]
    return [f"column {position + 1}" for position in selection.values]


def _check_classes(parsed: ParsedColumn, classes: tuple[Any, ...]) -> None:
    """Mark values that are not a declared class and have no other problem."""
    valid = is_class(parsed.values, classes)
    for bad_rows in parsed.bad_rows.values():
        valid |= bad_rows
    parsed.mark("unknown_class", ~valid)


def _find_valid_rows(parsed_columns: list[ParsedColumn]) -> NDArray[np.int64]:
    """Return the positions of the rows without problems."""
    bad = np.zeros(len(parsed_columns[0].values), np.bool_)
    for parsed in parsed_columns:
        for mask in parsed.bad_rows.values():
            bad |= mask
    return np.flatnonzero(~bad)


class _RowSubset(FileRows):
    """Names the rows of a subset of a file."""

    def __init__(self, rows: FileRows, subset: NDArray[np.int64]) -> None:
        super().__init__(rows.ids)
        self._subset = subset

    def names_of(self, rows: NDArray[np.int64]) -> list[Any]:
        return super().names_of(self._subset[rows])


def _check_with_loss(
    loss: Loss, values: NDArray[Any], shape: tuple[int, ...], rows: FileRows, problems: Problems
) -> None:
    """Let the loss check the predictions, and add the names of the rows that it refuses."""
    if not len(values):
        return
    try:
        loss.read_predictions(values, shape)
    except InvalidPredictions as error:
        row_problems = [problem for problem in error.problems if problem.code == "rows"]
        for problem in row_problems:
            rule = f"{problem.message[0].upper()}{problem.message[1:]}"
            positions = np.array(error.positions, dtype=np.int64)
            problems.add_rows("loss", rule, positions, rows, count=problem.count)
        if not row_problems:
            problems.add("loss", str(error))
