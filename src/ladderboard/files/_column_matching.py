"""Which columns of a file are those that a loss expects.

Ids in a column that is not named id must not be read as predictions, and the rows must still be
joined by id. Ids and names are public, so nothing here depends on labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ladderboard._formatting import format_count
from ladderboard.errors import InvalidPredictions
from ladderboard.files._source import Problems, format_names, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ladderboard.files._columns import Column
    from ladderboard.files._roster import Roster
    from ladderboard.files._source import ErrorClass
    from ladderboard.losses import ExpectedColumns

# A column with the first name wins; otherwise exactly one of the others must be present.
PREDICTION_NAMES = (
    "prediction", "predictions", "predicted", "pred", "preds", "y_pred", "ypred", "y_hat", "yhat",
    "y", "label", "labels", "target", "targets", "class", "category", "answer", "output", "value",
    "probability", "prob", "proba", "p", "score",
)  # fmt: skip
LABEL_NAMES = ("label", "labels", "target", "y", "class")
"""How a file of labels may name them, the first one that is present."""
_PREFIXES = ("p_", "prob_", "proba_", "score_", "")
# Names that pandas and its readers give to an index that was written into a file.
_INDEX_NAME = r"(index|unnamed: \d+|__index_level_\d+__|level_0|)"
_NUMBERED_NAME = r"(.*?)(\d+)"
# The share of distinct ids that makes a column the id column; integers may match by chance.
_TEXT_SHARE, _INTEGER_SHARE, _FULL_SHARE = 0.5, 0.9, 1.0
_ID_NAME = re.compile(r"(?:^|[^A-Za-z])(?:id|ID|Id)s?(?:$|[^A-Za-z])|[a-z](?:Id|ID)s?$")


@dataclass(frozen=True)
class ColumnSelection:
    """Positions of the id column, if there is one, and of the prediction columns."""

    id: int | None
    values: tuple[int, ...]


def normalize_name(name: str) -> str:
    """Return a column name without surrounding whitespace, in lower case."""
    return name.strip().casefold()


def is_numbered_label(name: str) -> bool:
    """Return whether a normalized name is that of one of several labels, as label_1 is."""
    number = name.removeprefix("label_")
    return number != name and number.isascii() and number.isdigit() and len(number) < 9


def is_index_name(name: str) -> bool:
    """Return whether a column name is that of an index that was written into the file."""
    return re.fullmatch(_INDEX_NAME, normalize_name(name)) is not None


def is_known_header(name: str, expected: ExpectedColumns | None = None) -> bool:
    """Return whether a field of the first line is a typical column name."""
    normalized = normalize_name(name)
    if normalized == "id" or normalized in PREDICTION_NAMES:
        return True
    if expected is None or expected.form != "classes" or expected.classes is None:
        return False
    spellings = {
        normalize_name(spelling) for class_ in expected.classes for spelling in _spellings(class_)
    }
    return any(
        normalized == prefix + spelling for prefix in _PREFIXES[:-1] for spelling in spellings
    )


def select_columns(
    names: list[str], expected: ExpectedColumns, error_class: ErrorClass, ids: int | None = None
) -> ColumnSelection:
    """Find the predictions among named columns, or refuse and list the columns.

    ``ids`` is the position of the id column, None if there is none.
    """
    problems = Problems(error_class)
    normalized = [normalize_name(name) for name in names]
    repeated = sorted({name for name in normalized if name and normalized.count(name) > 1}) if (
        len(set(normalized)) < len(normalized)
    ) else []  # fmt: skip
    if repeated:
        message = f"Every column needs its own name; repeated: {format_names(repeated)}."
        problems.add("duplicate_column", message, column=repeated[0], count=len(repeated))
        problems.refuse_if_any()
    others = [position for position in range(len(names)) if position != ids]
    select = {"one": _select_one, "classes": _select_class_columns, "several": _select_several}[
        expected.form
    ]
    values = select(names, others, expected, problems)
    problems.refuse_if_any()
    extra = [
        position
        for position in others
        if position not in set(values) and not is_index_name(names[position])
    ]
    if extra:
        shown_names = format_names(names[position] for position in extra)
        message = f"{format_count(len(extra), 'unexpected column')}: {shown_names}. "
        message += "Remove it." if len(extra) == 1 else "Remove them."
        problems.add("extra_column", message, column=names[extra[0]], count=len(extra))
    problems.refuse_if_any()
    return ColumnSelection(ids, tuple(values))


def find_id_column(names: list[str] | None) -> int | None:
    """Return the position of the column named id, None if there is none."""
    normalized = [normalize_name(name) for name in names or ()]
    return normalized.index("id") if "id" in normalized else None


def _select_one(
    names: list[str], others: list[int], expected: ExpectedColumns, problems: Problems
) -> list[int]:
    """Return the one column of predictions."""
    if expected.column is not None:
        exact = [
            position for position in others if normalize_name(names[position]) == expected.column
        ]
        if not exact:
            message = f"The column must be named {expected.column}; "
            message += f"the columns are {format_names(names)}."
            problems.add("missing_column", message, column=expected.column)
        return exact
    known = [position for position in others if normalize_name(names[position]) in PREDICTION_NAMES]
    preferred = [
        position for position in known if normalize_name(names[position]) == PREDICTION_NAMES[0]
    ]
    for candidates in (preferred, known):
        if len(candidates) == 1:
            return candidates
    without_index = [position for position in others if not is_index_name(names[position])]
    if len(without_index) == 1:
        return without_index
    if known:
        shown_names = format_names(names[position] for position in known)
        message = (
            f"Several columns may be the prediction: {shown_names}; name the right one prediction."
        )
        problems.add("unclear_column", message, column=names[known[0]], count=len(known))
    else:
        columns = f"the columns are {format_names(names)}" if names else "there is none"
        problems.add("missing_column", f"There is no column named prediction; {columns}.")
    return []


def _select_class_columns(
    names: list[str], others: list[int], expected: ExpectedColumns, problems: Problems
) -> list[int]:
    """Return the columns of the declared classes, in the classes' order."""
    classes = expected.classes or ()
    best_match: tuple[int, str, list[Any]] | None = None
    for normalize in (str.strip, normalize_name):
        position_by_name = {normalize(names[position]): position for position in others}
        for prefix in _PREFIXES:
            positions = [
                _find_class_column(position_by_name, prefix, class_, normalize)
                for class_ in classes
            ]
            missing = [
                class_
                for class_, position in zip(classes, positions, strict=True)
                if position is None
            ]
            if not missing:
                return [position for position in positions if position is not None]
            if expected.single and len(others) <= 1 and positions[1] is not None and prefix:
                return [positions[1]]
            if len(missing) < len(classes) and (best_match is None or len(missing) < best_match[0]):
                best_match = (len(missing), prefix, missing)
    if best_match is None and expected.single:
        return _select_one(names, others, expected, problems)
    count, prefix, missing = best_match or (len(classes), "p_", list(classes))
    missing_names = format_names(f"{prefix}{_spellings(class_)[0]}" for class_ in missing)
    message = f"A column is needed for each class; {count} of {len(classes)} are missing: "
    message += f"{missing_names}. The columns are {format_names(names)}."
    problems.add(
        "missing_column", message, column=f"{prefix}{_spellings(missing[0])[0]}", count=count
    )
    return []


def _find_class_column(
    position_by_name: dict[str, int], prefix: str, class_: Any, normalize: Any
) -> int | None:
    for spelling in _spellings(class_):
        if normalize(prefix + spelling) in position_by_name:
            return position_by_name[normalize(prefix + spelling)]
    return None


def _spellings(class_: Any) -> list[str]:
    """Return how a class may be written in a column's name."""
    if isinstance(class_, str):
        return [class_]
    if float(class_).is_integer():
        return [str(int(class_)), f"{int(class_)}.0"]
    return [repr(class_)]


def _select_several(
    names: list[str], others: list[int], expected: ExpectedColumns, problems: Problems
) -> list[int]:
    """Return all columns but the ids, sorted by the numbers in their names if they have some."""
    values = [position for position in others if not is_index_name(names[position])]
    if expected.width is None and not values:
        problems.add(
            "missing_column", f"There is no prediction; the columns are {format_names(names)}."
        )
    elif expected.width is not None and len(values) != expected.width:
        example_names = format_names(
            f"{expected.stem}_{number}" for number in range(1, expected.width + 1)
        )
        message = f"{format_count(expected.width, 'column')} of predictions are needed, "
        message += f"such as {example_names}; there are {len(values)}"
        code = "missing_column" if len(values) < expected.width else "extra_column"
        shown_names = f": {format_names(names[position] for position in values)}" if values else ""
        problems.add(code, f"{message}{shown_names}.", count=abs(expected.width - len(values)))
    return _sort_by_number(names, values)


def _sort_by_number(names: list[str], values: list[int]) -> list[int]:
    matches = [re.fullmatch(_NUMBERED_NAME, normalize_name(names[position])) for position in values]
    stems = {match[1] if match else None for match in matches}
    numbers = [int(match[2]) for match in matches if match and len(match[2]) < 9]
    if len(stems) == 1 and None not in stems and len(set(numbers)) == len(values):
        return [position for _, position in sorted(zip(numbers, values, strict=True))]
    return values


def select_unnamed_columns(
    width: int, expected: ExpectedColumns, ids: int | None = None
) -> ColumnSelection | None:
    """Select from columns without names; return None if their number is wrong."""
    values = tuple(position for position in range(width) if position != ids)
    return ColumnSelection(ids, values) if is_expected_count(len(values), expected) else None


def is_expected_count(count: int, expected: ExpectedColumns) -> bool:
    """Return whether predictions may have this number of columns."""
    if expected.width is None:
        return count > 0
    return count == expected.width or (expected.single and count == 1)


def looks_like_id_name(name: str) -> bool:
    """Return whether a column name suggests ids.

    >>> names = ("image_id", "PassengerId", "ID_code", "valid", "grid")
    >>> [looks_like_id_name(name) for name in names]
    [True, True, True, False, False]
    """
    return _ID_NAME.search(name.strip()) is not None


@dataclass(frozen=True)
class IdColumnFinder:
    """Looks for the id column of a file; ``columns`` has None for columns of other types."""

    names: list[str] | None
    columns: Sequence[Column | None]
    roster: Roster
    expected: ExpectedColumns

    def find(self) -> int | None:
        """Return the position of the id column, None if there is none; refuse unclear cases."""
        all_positions = range(len(self.columns))
        without_index = [
            position
            for position in all_positions
            if self.names is None or not is_index_name(self.names[position])
        ]
        shares = {
            position: self._share_of_ids(position, without_index) for position in without_index
        }
        best = [
            position
            for position, share in shares.items()
            if share and share == max(shares.values())
        ]
        if len(best) > 1:
            shown_names = format_names(
                self._name(position) or f"column {position + 1}" for position in best
            )
            self._refuse(
                best[0],
                f"Several columns hold the holdout's ids: {shown_names}; name the right one id.",
            )
        if best:
            self._check_id_column(best[0], without_index)
            return best[0]
        for position in all_positions:
            if position not in without_index and self._holds_ids_in_other_order(position):
                return position
        named_like_ids = [
            position for position in without_index if looks_like_id_name(self._name(position) or "")
        ]
        return named_like_ids[0] if len(named_like_ids) == 1 and len(without_index) > 1 else None

    def _share_of_ids(self, position: int, without_index: list[int]) -> float:
        """Return the share of ids in a column, 0 if it is too small for an id column."""
        column, name = self.columns[position], self._name(position) or ""
        if column is None:
            return 0.0
        required = _INTEGER_SHARE if self.roster.has_integer_ids else _TEXT_SHARE
        if not looks_like_id_name(name):
            may_be_prediction = is_known_header(name, self.expected)
            if self.roster.is_consecutive and (may_be_prediction or len(without_index) == 1):
                return 0.0  # ranks, perhaps
            if self.roster.is_consecutive or may_be_prediction:
                required = _FULL_SHARE
        share = self.roster.share_of_ids(column)
        return share if share >= required else 0.0

    def _check_id_column(self, position: int, without_index: list[int]) -> None:
        """Refuse ids without predictions, and ids that may also be predictions."""
        name = self._name(position)
        if len(without_index) == 1:
            shown_names = "" if name is None else f", {format_names([name])},"
            message = f"The only column{shown_names} holds the holdout's ids; "
            message += "add a column of predictions."
            refuse(InvalidPredictions, "missing_column", message, column=name)
        if (
            self.roster.is_consecutive
            and is_expected_count(len(without_index), self.expected)
            and not looks_like_id_name(name or "")
        ):
            shown_names = str(position + 1) if name is None else format_names([name])
            message = f"Column {shown_names} holds the holdout's ids, "
            message += "but may hold predictions as well: name it id if it holds ids, "
            self._refuse(position, f"{message}otherwise add a column named id.")

    def _holds_ids_in_other_order(self, position: int) -> bool:
        """Return whether an index column holds the ids in another order than the holdout's."""
        column = self.columns[position]
        if column is None or self.roster.share_of_ids(column) < _FULL_SHARE:
            return False
        if np.array_equal(self.roster.match_ids(column), np.arange(self.roster.n)):
            return False  # joined by position, the result is the same
        in_order = self.roster.has_integer_ids and bool(
            (np.diff(column.integer_ids()[0]) == 1).all()
        )
        if self.roster.ids is None or in_order:
            shown_names = format_names([self._name(position)])
            message = f"Column {shown_names} may hold the holdout's ids or row numbers: "
            self._refuse(position, f"{message}name it id to join by it, or remove it.")
        return True

    def _name(self, position: int) -> str | None:
        return None if self.names is None else self.names[position]

    def _refuse(self, position: int, message: str) -> NoReturn:
        refuse(InvalidPredictions, "unclear_column", message, column=self._name(position))
