"""Labels and predictions as arrays of plain, comparable values, and as columns of files.

Every error depends on the array alone, so the same predictions get the same message whatever the
labels are. The arrays hold plain values only: doubles, integers, booleans, NumPy's variable-width
text, or a mix of them as Python objects. So a comparison can neither fail nor run foreign code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidInput, InvalidLabels, InvalidSetting, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


ErrorClass = type[InvalidInput]

_MAX_ROWS_SHOWN = 10
# Integers up to here are exact as doubles.
_MAX_EXACT_INT = 2**53
_PLAIN_TYPES = {bool, int, float, str}
_TEXT = np.dtypes.StringDType()


def read_values(values: Any, name: str, error_class: ErrorClass) -> NDArray[Any]:
    """Return a copy as an array of text, numbers or both; raise for None, NaN and infinities.

    Accepts arrays, lists, and pandas or polars objects.
    """
    array = _copy_to_array(values, name, error_class)
    if (
        array.dtype.kind == "T" and array.dtype != _TEXT
    ):  # may hold missing values, visible only as objects
        array = array.astype(object)
    if array.dtype.kind == "O":
        array = _narrow_objects(array, name, error_class)
    elif array.dtype.kind == "U":
        array = array.astype(_TEXT)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    elif array.dtype.kind not in "biufT":
        raise error_class(f"{name} must be text, numbers or booleans; got {array.dtype}.")
    raise_for_rows(_missing_values(array), f"{name} must not be None, NaN or infinite", error_class)
    return array


def read_numbers(values: Any, name: str, error_class: ErrorClass) -> NDArray[np.float64]:
    """Return an array of finite doubles; raises for text, even if it spells a number."""
    array = read_values(values, name, error_class)
    if array.dtype.kind == "T" or any(isinstance(value, str) for value in _flat_objects(array)):
        raise error_class(f"{name} must be numbers; got text.")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise error_class(f"{name} must be numbers that a double can hold.") from None


def raise_for_rows(bad: NDArray[np.bool_], rule: str, error_class: ErrorClass) -> None:
    """Raise if any row is bad, with their number and the positions of the first ten."""
    rows = np.asarray(bad.any(axis=tuple(range(1, bad.ndim))))
    if not rows.any():
        return
    positions = tuple(np.flatnonzero(rows)[:_MAX_ROWS_SHOWN].tolist())
    count = int(np.count_nonzero(rows))
    which = ", ".join(map(str, positions)) + (", ..." if count > _MAX_ROWS_SHOWN else "")
    raise error_class(
        f"{rule}; {count:,} of {len(rows):,} rows break this rule (at position {which}).",
        positions=positions,
        problems=(Problem("rows", None, count, (), rule),),
    )


def refuse_labels_outside(interval: tuple[float, float], labels: NDArray[np.float64]) -> None:
    """Raise if a label lies outside a declared range, with the range that the labels have."""
    low, high = interval
    outside = (labels < low) | (labels > high)
    if outside.any():
        rule = (
            f"labels must lie in the range [{low:,.15g}, {high:,.15g}], so declare a wider one; "
            f"the smallest is {labels.min():,.15g}, the largest {labels.max():,.15g}"
        )
        raise_for_rows(outside, rule, InvalidLabels)


def _copy_to_array(values: Any, name: str, error_class: ErrorClass) -> NDArray[Any]:
    """Return a copy as an array; other containers become an array of unchanged objects."""
    try:
        if hasattr(values, "to_numpy"):  # pandas and polars
            values = values.to_numpy()
        masked = _settings.is_masked_array(values) and np.ma.is_masked(values)
        array = np.array(values, dtype=None if isinstance(values, np.ndarray) else object)
    except Exception as error:  # ragged rows, or any error of a foreign object
        raise error_class(
            f"{name} could not be read as an array with rows of one length."
        ) from error
    if masked:
        raise error_class(f"{name} must not be masked; fill the gaps first.")
    if array.ndim == 0:
        raise error_class(f"{name} must be an array with a row for each example.")
    return array


def _narrow_objects(array: NDArray[Any], name: str, error_class: ErrorClass) -> NDArray[Any]:
    """Return an array of objects as the narrowest array that holds the same values."""
    flat = array.ravel().tolist()
    kinds = set(map(type, flat))
    if not kinds <= _PLAIN_TYPES:
        flat = [_plain_value(value) for value in flat]
        kinds = set(map(type, flat))
    unsupported = kinds - _PLAIN_TYPES - {type(None)}
    if unsupported:
        names = ", ".join(sorted(kind.__name__ for kind in unsupported))
        raise error_class(f"{name} must be text, numbers or booleans; got {names}.")
    if kinds == {str}:
        return np.array(flat, dtype=_TEXT).reshape(array.shape)
    numeric = kinds <= {bool, int, float} and kinds
    if (
        numeric
        and float in kinds
        and not any(type(value) is int and abs(value) > _MAX_EXACT_INT for value in flat)
    ):
        return np.array(flat, dtype=np.float64).reshape(array.shape)
    if numeric and float not in kinds:
        try:
            return np.array(flat, dtype=np.int64).reshape(array.shape)
        except OverflowError:
            pass
    plain = np.empty(len(flat), dtype=object)
    plain[:] = flat
    return plain.reshape(array.shape)


def _plain_value(value: Any) -> Any:
    """Return the plain Python value of a NumPy scalar or a subclass; others unchanged.

    A subclass may override comparison; its plain value does not.
    """
    if isinstance(value, np.bool_ | np.integer | np.floating) and value.dtype.kind in "biuf":
        value = value.item()
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return value


def _flat_objects(array: NDArray[Any]) -> list[Any]:
    return array.ravel().tolist() if array.dtype.kind == "O" else []


def _missing_values(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        return ~np.isfinite(array)
    if array.dtype.kind == "O":
        flat = [
            value is None or (isinstance(value, float) and not math.isfinite(value))
            for value in array.flat
        ]
        return np.array(flat, dtype=np.bool_).reshape(array.shape)
    return np.zeros(array.shape, dtype=np.bool_)


LabelKind = Literal["number", "text"]

_MAX_CLASSES_NAMED = 12


@dataclass(frozen=True)
class ExpectedColumns:
    """The columns of predictions that a loss expects.

    ``form`` is one value per row, one per class, or several; ``width`` is the number of columns, if
    known. ``classes`` are the declared ones; ``single`` says that one column is enough, the
    probabilities of the second class. ``strict`` says that the loss refuses some numbers, so it
    must check all of them; ``complete`` that values which fit the columns fit the loss, so it need
    not check any. ``column`` is the required name of the only column: predictions in place of an
    evaluator's scores would spoil a ladder for good. ``stem`` names several columns: label_1,
    label_2 and so on. ``empty`` says that an empty value means something; ``pair`` that a row may
    hold the probabilities of two classes, of which the second counts. ``rules`` describe the
    columns to people, a sentence each; ``example`` has a value for each of the first columns, dots
    where they say nothing.
    """

    kind: str
    form: Literal["one", "classes", "several"]
    classes: tuple[Any, ...] | None = None
    width: int | None = 1
    single: bool = False
    strict: bool = False
    complete: bool = False
    column: str | None = None
    stem: str = "prediction"
    empty: bool = False
    pair: bool = False
    rules: tuple[str, ...] = ()
    example: tuple[str, ...] = ()

    @cached_property
    def number(self) -> bool:
        """Whether the values must be numbers."""
        return self.kind == "number"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in an example file."""
        if self.form == "classes":
            return tuple(f"p_{class_}" for class_ in self.classes or ())
        if self.form == "several" and self.width is not None:
            return tuple(f"{self.stem}_{number}" for number in range(1, self.width + 1))
        return (self.column or "prediction",)


def label_kind_of(classes: tuple[Any, ...] | None) -> LabelKind | None:
    """Return whether classes are numbers or text; None if they are both, or there are none."""
    are_text = {isinstance(class_, str) for class_ in classes or ()}
    return None if len(are_text) != 1 else "text" if are_text.pop() else "number"


def require_one_kind(classes: tuple[Any, ...]) -> LabelKind:
    """Return whether classes are numbers or text; raise if they are both."""
    kind = label_kind_of(classes)
    if kind is None:
        raise InvalidSetting(
            "Files hold one kind of label; declare classes that are all numbers or all text."
        )
    return kind


def require_kind(name: str, kind: str | None) -> str:
    """Return the declared kind of the labels; raise without one, in the name of a loss."""
    if kind is None:
        raise InvalidSetting(
            f"The loss {name} compares labels, so their kind must be declared; "
            'try Roster.of(ids, kind="number"), or kind="text".'
        )
    return kind


def probability_columns(classes: tuple[Any, ...]) -> ExpectedColumns:
    """Return a column of probabilities for each class; of two classes one is enough."""
    two = len(classes) == 2
    listed = (
        f"Or one column, prediction: the probability of {classes[1]}."
        if two
        else f"The classes are {list_classes(classes)}."
    )
    return ExpectedColumns(
        "number",
        "classes",
        classes,
        len(classes),
        single=two,
        rules=("p_ and the class, one column for each: its probability. A row sums to 1.", listed),
        example=("0.7", "0.3") if two else ("0.7", "0.2", "0.1"),
    )


def numbered_columns(kind: str, width: int | None, stem: str, sentence: str) -> ExpectedColumns:
    """Return several columns of labels; ``sentence`` describes them."""
    rule = f"{sentence} Name them {stem}_1, {stem}_2 and so on."
    if width is None:
        rule = "All other columns, in the order given in the board's description."
    return ExpectedColumns(kind, "several", width=width, stem=stem, rules=(rule,))


def list_classes(classes: tuple[Any, ...]) -> str:
    """Return the names of the first classes, and how many more there are.

    >>> list_classes(tuple(range(40)))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 28 more'
    """
    listed = ", ".join(map(str, classes[:_MAX_CLASSES_NAMED]))
    rest = len(classes) - _MAX_CLASSES_NAMED
    return listed if rest <= 0 else f"{listed} and {rest} more"


def predictions_converter(
    given: ExpectedColumns, wanted: ExpectedColumns
) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """Return how predictions for one loss are read by another; None if they cannot be.

    Probabilities give the likeliest class, the first of equals, to a loss that wants classes, and
    the probability of the second class to one that wants scores.

    >>> given = ExpectedColumns("text", "classes", ("a", "b"), 2, single=True)
    >>> convert = predictions_converter(given, ExpectedColumns("text", "one", ("a", "b")))
    >>> convert(np.array([[0.7, 0.3], [0.2, 0.8]])).tolist(), convert(np.array([0.3])).tolist()
    (['a', 'b'], ['a'])
    """
    classes = given.classes
    if given.form == wanted.form and given.width == wanted.width and not given.column:
        same = given.number or not wanted.number
        # Scores may be any number, so only a loss that takes all of them reads them.
        return _unchanged if same and wanted.classes in {None, classes} else None
    if given.form == "classes" and wanted.form == "one" and classes is not None:
        if wanted.classes == classes:
            names = np.array(classes)

            def likeliest(values: NDArray[Any]) -> NDArray[Any]:
                chosen = (values > 0.5).astype(int) if values.ndim == 1 else values.argmax(axis=1)
                return names[chosen]

            return likeliest
        if wanted.classes is None and wanted.number and len(classes) == 2:
            return lambda values: values if values.ndim == 1 else values[:, 1]
    if given.form == "one" and classes is None and wanted.single and given.number:
        return _unchanged  # a score is read as the probability of the second class
    return None


def _unchanged(values: NDArray[Any]) -> NDArray[Any]:
    return values
