"""Which columns a loss expects, and which columns of a file they are.

A column of ids that is not named id must not be read as a prediction, nor its rows be taken in the
order of the file. Ids and names are public, so nothing here depends on labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from ladderboard._formatting import format_count
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files._problems import Problems, format_names, refuse
from ladderboard.losses import (
    Absolute,
    Brier,
    Hamming,
    Log,
    Loss,
    Pinball,
    Shortfall,
    Squared,
    TopK,
    ZeroOne,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ladderboard.files._columns import Column
    from ladderboard.files._problems import Refusal
    from ladderboard.files._roster import Roster

# The first is taken before the others; of the others there must be one.
PREDICTION_NAMES = (
    "prediction", "predictions", "predicted", "pred", "preds", "y_pred", "ypred", "y_hat", "yhat",
    "y", "label", "labels", "target", "targets", "class", "category", "answer", "output", "value",
    "probability", "prob", "proba", "p", "score",
)  # fmt: skip
_PREFIXES = ("p_", "prob_", "proba_", "score_", "")
# How pandas and its readers name an index that slipped into a file.
_INDEX = r"(index|unnamed: \d+|__index_level_\d+__|level_0|)"
_NUMBERED = r"(.*?)(\d+)"
# How much of a column must be different ids; numbers may come near them by chance.
_TEXTS, _NUMBERS, _ALL = 0.5, 0.9, 1.0
_NAME = re.compile(r"(?:^|[^A-Za-z])(?:id|ID|Id)s?(?:$|[^A-Za-z])|[a-z](?:Id|ID)s?$")


@dataclass(frozen=True)
class ExpectedColumns:
    """What predictions are made of.

    ``form`` is one value a row, one for each class, or several; ``width`` is how many, where that
    is known. ``classes`` are those that were declared; ``single`` says that one column of
    probabilities will do, those of the second class. ``strict`` says that the loss refuses some
    numbers, so that all of them must be shown to it. ``column`` is a name that the one column must
    have: predictions in place of an evaluator's scores would spoil a ladder for good. ``stem`` is
    how messages name several columns: label_1, label_2 and so on.
    """

    kind: str
    form: Literal["one", "classes", "several"]
    classes: tuple[Any, ...] | None = None
    width: int | None = 1
    single: bool = False
    strict: bool = False
    column: str | None = None
    stem: str = "prediction"

    @property
    def number(self) -> bool:
        """Whether numbers are wanted."""
        return self.kind == "number"


def expected_columns(loss: Loss, roster: Roster) -> ExpectedColumns:
    """Return what a loss wants."""
    if isinstance(loss, Brier | Log):
        two = len(loss.classes) == 2
        return ExpectedColumns("number", "classes", loss.classes, len(loss.classes), single=two)
    if isinstance(loss, TopK) and loss.classes is not None:
        return ExpectedColumns("number", "classes", loss.classes, len(loss.classes))
    if isinstance(loss, Absolute | Squared | Pinball):
        return ExpectedColumns("number", "one")
    if isinstance(loss, Shortfall):
        return ExpectedColumns("number", "one", strict=True, column="score")
    if isinstance(loss, ZeroOne) and loss.allowed is not None:
        return ExpectedColumns(_kind_of(loss.allowed), "one", loss.allowed)
    return _compared(loss, roster)


def _compared(loss: Loss, roster: Roster) -> ExpectedColumns:
    """Return what a loss wants that compares labels of whatever kind was declared."""
    if roster.kind is None:
        raise InvalidSetting(
            f"The loss {loss.name} compares labels, so what they are must be declared; "
            'try Roster.of(ids, kind="number"), or kind="text".'
        )
    if isinstance(loss, ZeroOne):
        return ExpectedColumns(roster.kind, "one")
    if isinstance(loss, TopK):
        return ExpectedColumns(roster.kind, "several", width=loss.k, stem="guess")
    width = roster.width if isinstance(loss, Hamming) else None
    return ExpectedColumns(roster.kind, "several", width=width, stem="label")


def _kind_of(classes: tuple[Any, ...]) -> str:
    text = {isinstance(each, str) for each in classes}
    if len(text) > 1:
        raise InvalidSetting(
            "Files hold one kind of label; declare classes that are all numbers or all text."
        )
    return "text" if text.pop() else "number"


@dataclass(frozen=True)
class ColumnSelection:
    """Places of the id column, if there is one, and of the columns of predictions."""

    id: int | None
    values: tuple[int, ...]


def plain_name(name: str) -> str:
    """Return a name without surrounding blanks, in lower case."""
    return name.strip().casefold()


def is_index(name: str) -> bool:
    """Return whether a column is an index that slipped into the file."""
    return re.fullmatch(_INDEX, plain_name(name)) is not None


def known_name(name: str, expected: ExpectedColumns | None = None) -> bool:
    """Return whether a name is one that a header would have."""
    plain = plain_name(name)
    if plain == "id" or plain in PREDICTION_NAMES:
        return True
    if expected is None or expected.form != "classes" or expected.classes is None:
        return False
    spelled = {plain_name(word) for each in expected.classes for word in _spellings(each)}
    return any(plain == prefix + each for prefix in _PREFIXES[:-1] for each in spelled)


def select_columns(
    names: list[str], expected: ExpectedColumns, refusal: Refusal, ids: int | None = None
) -> ColumnSelection:
    """Find the predictions among named columns, or refuse and name what was seen.

    ``ids`` is the place of the column that holds the ids, None if there is none.
    """
    problems = Problems(refusal)
    plain = [plain_name(each) for each in names]
    twice = sorted({each for each in plain if each and plain.count(each) > 1}) if (
        len(set(plain)) < len(plain)
    ) else []  # fmt: skip
    if twice:
        said = f"A column's name must come once; these come again: {format_names(twice)}."
        problems.add("duplicate_column", said, column=twice[0], count=len(twice))
        problems.refuse_if_any()
    others = [at for at in range(len(names)) if at != ids]
    pick = {"one": _one, "classes": _classes, "several": _several}[expected.form]
    values = pick(names, others, expected, problems)
    problems.refuse_if_any()
    extra = [at for at in others if at not in set(values) and not is_index(names[at])]
    if extra:
        which = format_names(names[at] for at in extra)
        said = f"{format_count(len(extra), 'unexpected column')}: {which}. "
        said += "Remove it." if len(extra) == 1 else "Remove them."
        problems.add("extra_column", said, column=names[extra[0]], count=len(extra))
    problems.refuse_if_any()
    return ColumnSelection(ids, tuple(values))


def named_id(names: list[str] | None) -> int | None:
    """Return the place of the column named id, None if there is none."""
    plain = [plain_name(each) for each in names or ()]
    return plain.index("id") if "id" in plain else None


def _one(
    names: list[str], others: list[int], expected: ExpectedColumns, problems: Problems
) -> list[int]:
    """Return the one column of predictions."""
    if expected.column is not None:
        exact = [at for at in others if plain_name(names[at]) == expected.column]
        if not exact:
            said = f"The column must be named {expected.column}; "
            said += f"the columns are {format_names(names)}."
            problems.add("missing_column", said, column=expected.column)
        return exact
    called = [at for at in others if plain_name(names[at]) in PREDICTION_NAMES]
    first = [at for at in called if plain_name(names[at]) == PREDICTION_NAMES[0]]
    for choice in (first, called):
        if len(choice) == 1:
            return choice
    plain = [at for at in others if not is_index(names[at])]
    if len(plain) == 1:
        return plain
    if called:
        which = format_names(names[at] for at in called)
        said = f"Several columns may be the prediction: {which}; name the right one prediction."
        problems.add("unclear_column", said, column=names[called[0]], count=len(called))
    else:
        seen = f"the columns are {format_names(names)}" if names else "there is none"
        problems.add("missing_column", f"There is no column named prediction; {seen}.")
    return []


def _classes(
    names: list[str], others: list[int], expected: ExpectedColumns, problems: Problems
) -> list[int]:
    """Return the columns of the declared classes, in the classes' order."""
    classes = expected.classes or ()
    fewest: tuple[int, str, list[Any]] | None = None
    for fold in (str.strip, plain_name):
        at_name = {fold(names[at]): at for at in others}
        for prefix in _PREFIXES:
            found = [_at(at_name, prefix, each, fold) for each in classes]
            lacking = [each for each, at in zip(classes, found, strict=True) if at is None]
            if not lacking:
                return [at for at in found if at is not None]
            if expected.single and len(others) <= 1 and found[1] is not None and prefix:
                return [found[1]]
            if len(lacking) < len(classes) and (fewest is None or len(lacking) < fewest[0]):
                fewest = (len(lacking), prefix, lacking)
    if fewest is None and expected.single:
        return _one(names, others, expected, problems)
    count, prefix, lacking = fewest or (len(classes), "p_", list(classes))
    wanting = format_names(f"{prefix}{_spellings(each)[0]}" for each in lacking)
    said = f"A column is needed for each class; {count} of {len(classes)} are missing: {wanting}. "
    said += f"The columns are {format_names(names)}."
    problems.add("missing_column", said, column=f"{prefix}{_spellings(lacking[0])[0]}", count=count)
    return []


def _at(at_name: dict[str, int], prefix: str, name: Any, fold: Any) -> int | None:
    for spelled in _spellings(name):
        if fold(prefix + spelled) in at_name:
            return at_name[fold(prefix + spelled)]
    return None


def _spellings(name: Any) -> list[str]:
    """Return how a class may be written in a column's name."""
    if isinstance(name, str):
        return [name]
    if float(name).is_integer():
        return [str(int(name)), f"{int(name)}.0"]
    return [repr(name)]


def _several(
    names: list[str], others: list[int], expected: ExpectedColumns, problems: Problems
) -> list[int]:
    """Return all other columns, in the order of their numbers if they are numbered."""
    values = [at for at in others if not is_index(names[at])]
    if expected.width is None and not values:
        problems.add(
            "missing_column", f"There is no prediction; the columns are {format_names(names)}."
        )
    elif expected.width is not None and len(values) != expected.width:
        example_names = format_names(f"{expected.stem}_{at}" for at in range(1, expected.width + 1))
        said = f"{format_count(expected.width, 'column')} of predictions are needed, "
        said += f"such as {example_names}; there are {len(values)}"
        code = "missing_column" if len(values) < expected.width else "extra_column"
        which = f": {format_names(names[at] for at in values)}" if values else ""
        problems.add(code, f"{said}{which}.", count=abs(expected.width - len(values)))
    return _numbered(names, values)


def _numbered(names: list[str], values: list[int]) -> list[int]:
    parts = [re.fullmatch(_NUMBERED, plain_name(names[at])) for at in values]
    stems = {each[1] if each else None for each in parts}
    numbers = [int(each[2]) for each in parts if each and len(each[2]) < 9]
    if len(stems) == 1 and None not in stems and len(set(numbers)) == len(values):
        return [at for _, at in sorted(zip(numbers, values, strict=True))]
    return values


def unnamed(
    width: int, expected: ExpectedColumns, ids: int | None = None
) -> ColumnSelection | None:
    """Return the choice among columns without names; None if their number does not fit."""
    values = tuple(at for at in range(width) if at != ids)
    return ColumnSelection(ids, values) if fits(len(values), expected) else None


def fits(count: int, expected: ExpectedColumns) -> bool:
    """Return whether predictions may have so many columns."""
    if expected.width is None:
        return count > 0
    return count == expected.width or (expected.single and count == 1)


def names_ids(name: str) -> bool:
    """Return whether a column's name says that it holds ids.

    >>> [names_ids(each) for each in ("image_id", "PassengerId", "ID_code", "valid", "grid")]
    [True, True, True, False, False]
    """
    return _NAME.search(name.strip()) is not None


@dataclass(frozen=True)
class IdColumn:
    """Looks for the column of ids among the columns of a file, None being one of another type."""

    names: list[str] | None
    columns: Sequence[Column | None]
    roster: Roster
    expected: ExpectedColumns

    def find(self) -> int | None:
        """Return its place, None if there is none; refuse where that is not clear."""
        every = range(len(self.columns))
        plain = [at for at in every if self.names is None or not is_index(self.names[at])]
        shares = {at: self._share(at, plain) for at in plain}
        found = [at for at, share in shares.items() if share and share == max(shares.values())]
        if len(found) > 1:
            which = format_names(self._name(at) or f"column {at + 1}" for at in found)
            self._refuse(
                found[0], f"Several columns hold the holdout's ids: {which}; name the right one id."
            )
        if found:
            self._check(found[0], plain)
            return found[0]
        for at in every:
            if at not in plain and self._is_index_of_ids(at):
                return at
        named = [at for at in plain if names_ids(self._name(at) or "")]
        return named[0] if len(named) == 1 and len(plain) > 1 else None

    def _share(self, at: int, plain: list[int]) -> float:
        """Return how much of a column are ids, 0 if that is too little to take it for ids."""
        column, name = self.columns[at], self._name(at) or ""
        if column is None:
            return 0.0
        least = _NUMBERS if self.roster.whole else _TEXTS
        if not names_ids(name):
            predicted = known_name(name, self.expected)
            if self.roster.counted and (predicted or len(plain) == 1):
                return 0.0  # ranks, perhaps
            if self.roster.counted or predicted:
                least = _ALL
        share = self.roster.share(column)
        return share if share >= least else 0.0

    def _check(self, at: int, plain: list[int]) -> None:
        """Refuse ids without predictions, and ids that may as well be predictions."""
        name = self._name(at)
        if len(plain) == 1:
            which = "" if name is None else f", {format_names([name])},"
            said = f"The only column{which} holds the holdout's ids; add a column of predictions."
            refuse(InvalidPredictions, "missing_column", said, column=name)
        if self.roster.counted and fits(len(plain), self.expected) and not names_ids(name or ""):
            which = str(at + 1) if name is None else format_names([name])
            said = f"Column {which} holds the holdout's ids, "
            said += "but may hold predictions as well: name it id if it holds ids, "
            self._refuse(at, f"{said}otherwise add a column named id.")

    def _is_index_of_ids(self, at: int) -> bool:
        """Return whether an index that slipped into the file tells another order than the file."""
        column = self.columns[at]
        if column is None or self.roster.share(column) < _ALL:
            return False
        if np.array_equal(self.roster.place(column), np.arange(self.roster.n)):
            return False  # joined by position, the result is the same
        in_order = self.roster.whole and bool((np.diff(column.whole_ids()[0]) == 1).all())
        if self.roster.ids is None or in_order:
            which = format_names([self._name(at)])
            said = f"Column {which} may hold the holdout's ids or row numbers: "
            self._refuse(at, f"{said}name it id to join by it, or remove it.")
        return True

    def _name(self, at: int) -> str | None:
        return None if self.names is None else self.names[at]

    def _refuse(self, at: int, message: str) -> NoReturn:
        refuse(InvalidPredictions, "unclear_column", message, column=self._name(at))
