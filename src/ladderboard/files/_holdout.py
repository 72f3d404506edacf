"""The holdout's table: ids, labels, split, groups and weights. The owner's side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidLabels
from ladderboard.files._column_matching import is_index, plain_name
from ladderboard.files._columns import Mixed, Numbers, Text
from ladderboard.files._formats import open_sheet
from ladderboard.files._predictions import VALUE_RULES
from ladderboard.files._problems import Problems, format_names, refuse
from ladderboard.files._roster import KINDS, Kind, Rows, read_ids
from ladderboard.files._source import Limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files._columns import Column, Table
    from ladderboard.mechanisms import Grouping

_DEFAULT = Limits()
_LABELS = ("label", "labels", "target", "y", "class")
_OTHERS = ("id", "split", "group", "weight")
_SPLIT = "usage"  # Kaggle's word for it


@dataclass(frozen=True, eq=False)
class HoldoutTable:
    """The hidden sample, labelled as a rule: a row for each example.

    ``ids`` are whole numbers or text, None if there are none; ``labels`` are of one ``kind``, a
    vector, or a matrix where an example has several; ``split``, ``group`` and ``weight`` are None
    where the file has no such column. Where evaluators give the scores there are no labels, and
    ``labels`` are 1: the score of whoever is always right.
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
        """How losses become a risk: by group and by weight, where the table has them."""
        from ladderboard.mechanisms import Grouping  # noqa: PLC0415 - not needed to read a file

        return Grouping(self.group, self.weight, n=len(self))

    def where(self, rows: NDArray[np.bool_]) -> HoldoutTable:
        """Return some rows of it."""
        ids = self.ids
        if ids is not None:
            at = rows.nonzero()[0].tolist()  # polars takes Python's numbers only
            ids = ids[rows] if isinstance(ids, np.ndarray) else [ids[each] for each in at]
        kept = {"split": self.split, "group": self.group, "weight": self.weight}
        parts = {name: None if each is None else each[rows] for name, each in kept.items()}
        return HoldoutTable(ids, self.labels[rows], self.kind, **parts)

    def unlabelled(self) -> HoldoutTable:
        """Return it without its labels, for a loss that looks at none."""
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
) -> HoldoutTable:
    r"""Return the owner's table from ``id,label[,split][,group][,weight]``, in any format.

    ``usage``, as Kaggle has it, is another name of ``split``. Several labels an example are
    ``label_1``, ``label_2`` and so on. ``kind`` declares what labels are, ``"number"`` or
    ``"text"``; it is found out if not given. It becomes public: with ``"number"`` a prediction that
    is no number is refused. Without ``labelled`` there must be ids and no labels, as for a loss
    that looks at none.

    Raises
    ------
    InvalidLabels
        With everything that is wrong in ``problems``. It is for the owner, and speaks of labels.

    Examples
    --------
    >>> table = read_holdout(b"id,label,group\na,1,x\nb,0,x\nc,1,y\n")
    >>> table, table.labels.tolist(), table.group.tolist()
    (HoldoutTable(3 rows, kind='number'), [1, 0, 1], ['x', 'x', 'y'])
    """
    if kind is not None:
        _settings.choice("kind", kind, KINDS)
    sheet = open_sheet(
        source,
        file_format=format,
        limits=limits,
        most=limits.rows,
        refusal=InvalidLabels,
        has_header=lambda *_: True,
    )
    if sheet.names is None:
        refuse(InvalidLabels, "header", "A holdout's columns need names: id,label and so on.")
    at, labels = _choose(sheet, labelled=labelled)
    # Labels are read as they are written, for 007 may be one.
    number = [each == "weight" for each in at] + [kind == "number"] * len(labels)
    (*others,) = sheet.load([*at.values(), *labels], number)
    named = dict(zip(at, others[: len(at)], strict=True))
    if not len(others[-1]):
        refuse(InvalidLabels, "empty", "The holdout has no rows.")
    columns = others[len(at) :]
    problems = Problems(InvalidLabels)
    ids = read_ids(named["id"]) if "id" in named else None
    found = "number" if not labelled else kind or _kind(columns)
    values = [_values(each, found, "label", problems) for each in columns]
    split = _values(named["split"], "text", "split", problems) if "split" in named else None
    group = _values(named["group"], "text", "group", problems) if "group" in named else None
    weight = _weight(named["weight"], problems) if "weight" in named else None
    problems.refuse_if_any()
    _check_weights(group, weight)
    if not labelled:
        values = [np.ones(len(others[0]), np.int64)]
    read = values[0] if len(values) == 1 else np.column_stack(values)
    return HoldoutTable(ids, read, found, split, group, weight)


def _choose(sheet: Table, *, labelled: bool) -> tuple[dict[str, int], list[int]]:
    names = sheet.names or []
    plain = [plain_name(each) for each in names]
    problems = Problems(InvalidLabels)
    twice = sorted({each for each in plain if each and plain.count(each) > 1})
    if twice:
        said = f"A column's name must come once; these come again: {format_names(twice)}."
        problems.add("duplicate_column", said, column=twice[0], count=len(twice))
        problems.refuse_if_any()
    if "split" not in plain:
        plain = ["split" if each == _SPLIT else each for each in plain]
    at = {each: plain.index(each) for each in _OTHERS if each in plain}
    numbered = [each for each, name in enumerate(plain) if _is_numbered(name)]
    labels = [plain.index(each) for each in _LABELS if each in plain][:1] or sorted(
        numbered, key=lambda each: int(plain[each].removeprefix("label_"))
    )
    extra = [
        name
        for each, name in enumerate(names)
        if each not in {*at.values(), *labels} and not is_index(name)
    ]
    if not labelled:
        _check_unlabelled(names, at, labels, problems)
        labels = []
    if labelled and not labels:
        said = "There is no column named label, nor label_1, label_2 and so on for several labels "
        said += f"an example; the columns are {format_names(names)}."
        problems.add("missing_column", said, column="label")
    elif extra:
        said = f"{format_count(len(extra), 'column')} should not be there: {format_names(extra)}."
        problems.add("extra_column", said, column=extra[0], count=len(extra))
    problems.refuse_if_any()
    return at, labels


def _check_unlabelled(
    names: list[str], at: dict[str, int], labels: list[int], problems: Problems
) -> None:
    """Note labels that nobody would look at, and ids that are missing."""
    if labels:
        which = format_names(names[each] for each in labels)
        said = "This loss looks at no labels, for evaluators give the scores"
        problems.add("extra_column", f"{said}; leave {which} out.", column=names[labels[0]])
    if "id" not in at:
        said = f"There is no column named id; the columns are {format_names(names)}."
        problems.add("missing_column", said, column="id")


def _is_numbered(name: str) -> bool:
    number = name.removeprefix("label_")
    return number != name and number.isascii() and number.isdigit() and len(number) < 9


def _kind(columns: list[Column]) -> Kind:
    """Return what labels are, as they are written."""
    if any(isinstance(each, Text) and not each.written for each in columns):
        return "text"
    if any(isinstance(each, Mixed) and any(isinstance(x, str) for x in each.values)
           for each in columns):  # fmt: skip
        return "text"
    bad = [each.numbers().bad for each in columns]
    if any("not_a_number" in each for each in bad):
        return "text"
    zeros = (each.series.str.contains(r"^0\d") for each in columns if isinstance(each, Text))
    return "text" if any(each.any() for each in zeros) else "number"


def _values(column: Column, kind: str, name: str, problems: Problems) -> NDArray[Any]:
    if kind == "text" and name != "label" and isinstance(column, Numbers):
        column = Mixed(column.text_ids())  # a split or a group may be any id
    reading = column.numbers() if kind == "number" else column.texts()
    for code, bad in reading.bad.items():
        rule = f"The value of {name!r} {VALUE_RULES[code]}"
        problems.add_rows(code, rule, bad, Rows(), column=name)
    return reading.values


def _weight(column: Column, problems: Problems) -> NDArray[np.float64]:
    read = _values(column, "number", "weight", problems).astype(np.float64)
    if not problems.found:
        rule = "A weight must be above 0 and below 1e100"
        wrong = ~((read > 1e-100) & (read < 1e100))
        problems.add_rows("bad_weight", rule, wrong, Rows(), column="weight")
    return read


def _check_weights(group: NDArray[Any] | None, weight: NDArray[np.float64] | None) -> None:
    """Refuse weights that differ within a group: it is the group that counts, so it has one."""
    if group is None or weight is None:
        return
    _, first, of = np.unique(group, return_index=True, return_inverse=True)
    problems = Problems(InvalidLabels)
    rule = "Rows of one group must have one weight"
    problems.add_rows("bad_weight", rule, weight != weight[first][of], Rows(), column="weight")
    problems.refuse_if_any()
