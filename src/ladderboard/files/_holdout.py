"""Reads the holdout's table: ids, labels, split, groups and weights. For its owner only."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidLabels
from ladderboard.files._column_matching import (
    LABEL_NAMES,
    PREDICTION_NAMES,
    is_index_name,
    is_numbered_label,
    looks_like_id_name,
    normalize_name,
)
from ladderboard.files._columns import MixedColumn, NumberColumn, TextColumn
from ladderboard.files._declared import combine_ids, find_columns
from ladderboard.files._formats import CsvTable, open_table
from ladderboard.files._predictions import VALUE_RULES
from ladderboard.files._roster import KINDS, FileRows, Kind, Roster, read_ids
from ladderboard.files._source import Limits, Problems, format_names, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column, FileTable
    from ladderboard.files._declared import DeclaredColumns
    from ladderboard.mechanisms import Grouping

_DEFAULT = Limits()
_OTHER_NAMES = ("id", "split", "group", "weight")
_FEW_ROWS = 20  # fewer equal values may be chance
_MAX_ID_COLUMNS = 50
_KAGGLE_SPLIT = "usage"  # Kaggle's name for the split


@dataclass(frozen=True, eq=False)
class HoldoutTable:
    """The hidden sample, usually labelled: one row per example.

    ``ids`` are integers or text, None if there are none; ``labels`` have one ``kind`` and are a
    vector, or a matrix if an example has several; ``split``, ``group`` and ``weight`` are None if
    the file has no such column. If evaluators submit scores there are no labels, and ``labels`` are
    all 1, the perfect score.
    """

    ids: Any
    labels: NDArray[Any]
    kind: Kind
    split: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    weight: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def grouping(self) -> Grouping:
        """How losses are averaged to a risk: by group and weight, if the table has them."""
        from ladderboard.mechanisms import Grouping  # noqa: PLC0415 - not needed to read a file

        return Grouping(self.group, self.weight, n=len(self))

    def select_rows(self, rows: NDArray[np.bool_]) -> HoldoutTable:
        """Return a table of some rows."""
        ids = self.ids
        if ids is not None:
            positions = rows.nonzero()[0].tolist()  # polars needs Python integers
            ids = (
                ids[rows]
                if isinstance(ids, np.ndarray)
                else [ids[position] for position in positions]
            )
        optional = {"split": self.split, "group": self.group, "weight": self.weight}
        selected = {
            name: None if values is None else values[rows] for name, values in optional.items()
        }
        return HoldoutTable(ids, self.labels[rows], self.kind, **selected)

    def without_labels(self) -> HoldoutTable:
        """Return the table without its labels, for a loss that uses none."""
        return replace(self, labels=np.ones(len(self), np.int64), kind="number")

    def __repr__(self) -> str:
        return (
            f"HoldoutTable({format_count(len(self), 'row')}, kind={self.kind!r})"  # never a label
        )


def read_holdout(
    source: Any,
    *,
    kind: Kind | None = None,
    format: str | None = None,  # noqa: A002 - the word people use
    limits: Limits = _DEFAULT,
    labelled: bool = True,
    columns: DeclaredColumns | None = None,
    empty: bool = False,
) -> HoldoutTable:
    r"""Return the owner's table from columns ``id,label[,split][,group][,weight]``, in any format.

    ``usage``, as on Kaggle, is another name for ``split``. Several labels per example are
    ``label_1``, ``label_2`` and so on. ``kind`` declares whether labels are ``"number"`` or
    ``"text"``; it is detected if not given. It becomes public: with ``"number"`` a prediction that
    is not a number is refused. With ``labelled=False``, for a loss that uses no labels, the table
    must have ids and no labels. ``columns`` declares other names of the id and label columns; all
    other columns but split, group and weight are ignored then. ``empty`` says that an empty label
    means something, such as an image without a mask.

    Raises
    ------
    InvalidLabels
        Its ``problems`` list everything that is wrong. It may mention labels: show it to the owner
        only.

    Examples
    --------
    >>> table = read_holdout(b"id,label,group\na,1,x\nb,0,x\nc,1,y\n")
    >>> table, table.labels.tolist(), table.group.tolist()
    (HoldoutTable(3 rows, kind='number'), [1, 0, 1], ['x', 'x', 'y'])
    """
    if kind is not None:
        _settings.choice("kind", kind, KINDS)
    table = open_table(
        source,
        file_format=format,
        limits=limits,
        max_rows=limits.rows,
        error_class=InvalidLabels,
        has_header=lambda *_: True,
    )
    if table.names is None:
        refuse(InvalidLabels, "header", "A holdout's columns need names: id,label and so on.")
    position_by_name, label_positions, further_ids = _select_columns(
        table, labelled=labelled, declared=columns
    )
    # Labels are read as text first, because 007 may be a label.
    as_numbers = [name == "weight" for name in position_by_name] + [kind == "number"] * len(
        label_positions
    )
    (*columns_read,) = table.load_columns(
        [*position_by_name.values(), *label_positions], as_numbers
    )
    column_by_name = dict(zip(position_by_name, columns_read[: len(position_by_name)], strict=True))
    if further_ids:
        further = table.load_columns(further_ids, [False] * len(further_ids))
        column_by_name["id"] = combine_ids([column_by_name["id"], *further])
    if not len(columns_read[-1]):
        refuse(InvalidLabels, "empty", "The holdout has no rows.")
    label_columns = columns_read[len(position_by_name) :]
    problems = Problems(InvalidLabels)
    ids = read_ids(column_by_name["id"]) if "id" in column_by_name else None
    label_kind = "number" if not labelled else kind or _detect_kind(label_columns)
    rows = _HoldoutRows(table, column_by_name.get("id"))
    values = [
        _read_values(column, label_kind, table.names[position], problems, rows, empty=empty)
        for column, position in zip(label_columns, label_positions, strict=True)
    ]
    split, group = (
        _read_values(_as_text(column_by_name[name]), "text", name, problems, rows)
        if name in column_by_name
        else None
        for name in ("split", "group")
    )
    weight = (
        _read_weight(column_by_name["weight"], problems, rows)
        if "weight" in column_by_name
        else None
    )
    problems.refuse_if_any()
    _check_weights(group, weight)
    if not labelled:
        values = [np.ones(len(columns_read[0]), np.int64)]
    label_values = values[0] if len(values) == 1 else np.column_stack(values)
    return HoldoutTable(ids, label_values, label_kind, split, group, weight)


def find_label_column(
    source: Any, table: HoldoutTable, columns: DeclaredColumns | None = None
) -> str | None:
    r"""Return the name of a column that gives the holdout's labels away, None if none does.

    The file holds ids of the holdout, or a row for each of its rows in order, and a column that is
    equal to the labels or stands for them one to one, such as yes for 1. For the owner only.

    >>> table = read_holdout({"id": range(40), "label": [row % 2 for row in range(40)]})
    >>> rows = [f"{row},{'ny'[row % 2]}" for row in reversed(range(40))]
    >>> find_label_column("\n".join(["id,ill", *rows]).encode(), table)
    'ill'
    """
    opened = open_table(
        source,
        file_format=None,
        limits=_DEFAULT,
        max_rows=_DEFAULT.rows,
        error_class=InvalidLabels,
        has_header=lambda _, lines: lines() != len(table),
    )
    names = opened.names or [f"column {position + 1}" for position in range(opened.width)]
    loaded = opened.load_all(as_numbers=False)
    by_name = {
        name: column for name, column in zip(names, loaded, strict=True) if column is not None
    }
    label_columns = table.labels.T if table.labels.ndim == 2 else [table.labels]
    for used, rows in _align_rows(by_name, table, columns):
        matched = np.flatnonzero(rows >= 0)
        for name, column in by_name.items():
            if name not in used and any(
                _tells_labels(column, matched, np.asarray(labels)[rows[matched]])
                for labels in label_columns
            ):
                return name
    return None


def _align_rows(
    by_name: dict[str, Column], table: HoldoutTable, columns: DeclaredColumns | None
) -> Iterator[tuple[set[str], NDArray[np.int64]]]:
    """Yield how a file may be joined: its id columns, and the holdout's row of each of its rows."""
    declared = () if columns is None else columns.id
    if table.ids is not None:
        roster = Roster.of(table)
        candidates: list[tuple[str, ...]] = [(name,) for name in list(by_name)[:_MAX_ID_COLUMNS]]
        if len(declared) > 1 and all(name in by_name for name in declared):
            candidates.insert(0, tuple(declared))
        for used in candidates:
            rows = roster.match_ids(combine_ids([by_name[name] for name in used]))
            if len(np.unique(rows[rows >= 0])) >= min(_FEW_ROWS, len(table)):
                yield set(used), rows
    if by_name and len(next(iter(by_name.values()))) == len(table):
        yield set(), np.arange(len(table))


def _tells_labels(column: Column, rows: NDArray[np.int64], labels: NDArray[Any]) -> bool:
    """Return whether some rows of a column are the labels, or stand for them one to one."""
    few, kinds = slice(None, None, max(len(rows) // _FEW_ROWS, 1)), 0  # most columns differ soon
    for part in (few, slice(None)):
        values = [str(value) for value in column.values_at(rows[part])]
        expected = [str(value) for value in labels[part].tolist()]
        kinds, pairs = len(set(expected)), len(set(zip(values, expected, strict=True)))
        one_to_one = pairs == kinds == len(set(values)) and kinds * _FEW_ROWS <= 2 * len(labels)
        if not one_to_one and not _are_equal(values, expected):
            return False
    return kinds > 1


def _are_equal(values: list[str], expected: list[str]) -> bool:
    """Return whether all values are equal, as text or as numbers."""
    try:
        return values == expected or list(map(float, values)) == list(map(float, expected))
    except ValueError:
        return False


def _select_columns(
    table: FileTable, *, labelled: bool, declared: DeclaredColumns | None
) -> tuple[dict[str, int], list[int], list[int]]:
    """Return columns by name, those of labels, and those of ids behind the first."""
    names = table.names or []
    normalized = [normalize_name(name) for name in names]
    problems = Problems(InvalidLabels)
    repeated = sorted({name for name in normalized if name and normalized.count(name) > 1})
    if repeated:
        message = f"Every column needs its own name; repeated: {format_names(repeated)}."
        problems.add("duplicate_column", message, column=repeated[0], count=len(repeated))
        problems.refuse_if_any()
    if "split" not in normalized:
        normalized = ["split" if name == _KAGGLE_SPLIT else name for name in normalized]
    position_by_name = {name: normalized.index(name) for name in _OTHER_NAMES if name in normalized}
    numbered_labels = [
        position for position, name in enumerate(normalized) if is_numbered_label(name)
    ]
    single_labels = [normalized.index(name) for name in LABEL_NAMES if name in normalized]
    label_positions = single_labels[:1] or sorted(
        numbered_labels, key=lambda position: int(normalized[position].removeprefix("label_"))
    )
    further_ids: list[int] = []
    if declared is not None:
        wanted = {"ids": declared.id, "labels": _declared_labels(names, declared)}
        ids, labels = find_columns(names, wanted, InvalidLabels)
        label_positions = labels or label_positions
        if ids:
            position_by_name["id"], *further_ids = ids
    unexpected = (
        []
        if declared is not None
        else [
            name
            for position, name in enumerate(names)
            if position not in {*position_by_name.values(), *label_positions}
            and not is_index_name(name)
        ]
    )
    if not labelled:
        _check_unlabelled(names, position_by_name, label_positions, problems)
        label_positions = []
    advice = _suggest_columns(names, unexpected, position_by_name, label_positions)
    if labelled and not label_positions:
        message = "There is no column named label, nor label_1, label_2 and so on for several "
        message += f"labels per example; the columns are {format_names(names)}."
        problems.add("missing_column", " ".join([message, *advice]), column="label")
    elif unexpected and advice:
        problems.add("extra_column", " ".join(advice), column=unexpected[0], count=len(unexpected))
    elif unexpected:
        shown_names = format_names(unexpected)
        message = f"{format_count(len(unexpected), 'unexpected column')}: {shown_names}. "
        message += "Remove it." if len(unexpected) == 1 else "Remove them."
        problems.add("extra_column", message, column=unexpected[0], count=len(unexpected))
    problems.refuse_if_any()
    return position_by_name, label_positions, further_ids


def _suggest_columns(
    names: list[str],
    unexpected: list[str],
    position_by_name: dict[str, int],
    label_positions: list[int],
) -> list[str]:
    """Return which unexpected columns may be the missing ids and labels, and how to say so."""
    uses = {}
    ids = [name for name in unexpected if looks_like_id_name(name)]
    if "id" not in position_by_name and ids:
        uses["id"] = ids[0]
    others = [name for name in unexpected if name not in ids]
    known = [name for name in others if normalize_name(name) in PREDICTION_NAMES]
    if not label_positions and len(known or others) == 1:
        uses["label"] = (known or others)[0]
    if not ("id" in position_by_name or ids or label_positions) and len(others) == 2:
        uses["label"] = known[0] if len(known) == 1 else others[1]
        uses = {"id": next(name for name in others if name != uses["label"]), **uses}
    if not uses:
        return []
    labels = [uses["label"]] if "label" in uses else [names[place] for place in label_positions]
    declared = f"id: {uses['id']}, prediction: " if "id" in uses else "prediction: "
    declared += f"[{', '.join(labels)}]" if len(labels) > 1 else "".join(labels)
    options = [f"id={uses['id']}"] if "id" in uses else []
    options += [f"prediction={label}" for label in labels]
    may_be = [f"{_settings.safe_repr(name)} may be the {use}" for use, name in uses.items()]
    which = "it" if len(uses) == 1 else "them"
    renamed = f"rename {which} to {' and '.join(uses)}"
    advice = f"{' and '.join(may_be)}: {renamed}, or declare columns: {{{declared}}} "
    return [f"{advice}(in board.yaml; for a guard --columns {shlex.quote(','.join(options))})."]


def _declared_labels(names: list[str], declared: DeclaredColumns) -> tuple[str, ...]:
    """Return the declared label columns; else those named as the predictions, if all are there."""
    known = {normalize_name(name) for name in names}
    same = all(normalize_name(name) in known for name in declared.prediction)
    return declared.label or (declared.prediction if same else ())


def _check_unlabelled(
    names: list[str],
    position_by_name: dict[str, int],
    label_positions: list[int],
    problems: Problems,
) -> None:
    """Record labels that would not be used, and a missing id column."""
    if label_positions:
        label_names = format_names(names[position] for position in label_positions)
        message = "This loss uses no labels, because evaluators submit the scores"
        problems.add(
            "extra_column", f"{message}; remove {label_names}.", column=names[label_positions[0]]
        )
    if "id" not in position_by_name:
        message = f"There is no column named id; the columns are {format_names(names)}."
        problems.add("missing_column", message, column="id")


def _detect_kind(columns: list[Column]) -> Kind:
    """Return whether labels are numbers or text, from their spelling."""
    if any(isinstance(column, TextColumn) and not column.from_csv for column in columns):
        return "text"
    if any(isinstance(column, MixedColumn) and any(isinstance(x, str) for x in column.values)
           for column in columns):  # fmt: skip
        return "text"
    if any("not_a_number" in column.parse_numbers().bad_rows for column in columns):
        return "text"
    leading_zeros = (
        column.series.str.contains(r"^0\d") for column in columns if isinstance(column, TextColumn)
    )
    return "text" if any(matches.any() for matches in leading_zeros) else "number"


class _HoldoutRows(FileRows):
    """Names the rows of a holdout by id and line; with no ids they are numbered from 1."""

    def __init__(self, table: FileTable, ids: Column | None) -> None:
        super().__init__(ids)
        self._table = table
        self.noun = "row"

    def names_of(self, rows: NDArray[np.int64]) -> list[Any]:
        names = super().names_of(rows)
        if self.ids is None:
            return names
        table = self._table
        lines = [table.line_of(row) if isinstance(table, CsvTable) else None
                 for row in rows.tolist()]  # fmt: skip
        return [
            f"{name} in row {row + 1}" if line is None else f"{name} in line {line}"
            for name, row, line in zip(names, rows.tolist(), lines, strict=True)
        ]


def _as_text(column: Column) -> Column:
    """Return a column as text; a split or a group may be an integer."""
    return MixedColumn(column.text_ids()) if isinstance(column, NumberColumn) else column


def _read_values(
    column: Column,
    kind: str,
    name: str,
    problems: Problems,
    rows: FileRows,
    *,
    empty: bool = False,
) -> NDArray[Any]:
    parsed = column.parse_numbers() if kind == "number" else column.parse_text()
    if empty and kind == "text":
        parsed.bad_rows.pop("missing_value", None)
    for code, bad_rows in parsed.bad_rows.items():
        rule = f"The value of {name!r} {VALUE_RULES[code]}"
        problems.add_rows(code, rule, bad_rows, rows, column=name)
    return parsed.values


def _read_weight(column: Column, problems: Problems, rows: FileRows) -> NDArray[np.float64]:
    weights = _read_values(column, "number", "weight", problems, rows).astype(np.float64)
    if not problems.items:
        rule = "A weight must be above 0 and below 1e100"
        wrong = ~((weights > 1e-100) & (weights < 1e100))
        problems.add_rows("bad_weight", rule, wrong, rows, column="weight")
    return weights


def _check_weights(group: NDArray[Any] | None, weight: NDArray[np.float64] | None) -> None:
    """Refuse weights that differ within a group, because a group has a single weight."""
    if group is None or weight is None:
        return
    _, first_row, group_index = np.unique(group, return_index=True, return_inverse=True)
    problems = Problems(InvalidLabels)
    rule = "Rows of one group must have one weight"
    problems.add_rows(
        "bad_weight", rule, weight != weight[first_row][group_index], FileRows(), column="weight"
    )
    problems.refuse_if_any()
