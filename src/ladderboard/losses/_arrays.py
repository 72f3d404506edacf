"""Labels and predictions as arrays of plain, comparable values.

Every error depends on the array alone, so the same predictions get the same message whatever the
labels are. The arrays hold plain values only: doubles, integers, booleans, NumPy's variable-width
text, or a mix of them as Python objects. So a comparison can neither fail nor run foreign code.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

ErrorClass = type[InvalidInput]

_MAX_ROWS_SHOWN = 10
_INT64 = 2.0**63
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


def is_plain_numbers(values: Any) -> bool:
    """Return whether this is an array of finite plain numbers, which needs no conversion."""
    if type(values) is not np.ndarray or not values.ndim:
        return False
    kind = values.dtype.kind
    if kind == "f" and values.itemsize <= 8:
        return bool(np.isfinite(values).all())
    return kind in "biu"


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
        f"{rule}; {count} of {len(rows)} rows break this rule (at position {which}).",
        positions=positions,
        problems=(Problem("rows", None, count, (), rule),),
    )


def not_equal(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of where two arrays from ``read_values`` differ.

    A number never equals a text. Integers and doubles are compared exactly, even beyond 2^53.
    """
    kinds = left.dtype.kind + right.dtype.kind
    if "O" in kinds or ("u" in kinds and kinds != "uu"):
        pairs = zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)
        return np.array([a != b for a, b in pairs], dtype=np.bool_).reshape(left.shape)
    if "T" in kinds and kinds != "TT":
        return np.ones(left.shape, dtype=np.bool_)
    if kinds in ("if", "fi"):
        integers, doubles = (left, right) if kinds[1] == "f" else (right, left)
        doubles = doubles.astype(np.float64, copy=False)  # 2^63 overflows half precision
        fits = (doubles >= -_INT64) & (doubles < _INT64) & (doubles == np.trunc(doubles))
        return ~fits | (np.where(fits, doubles, 0).astype(np.int64) != integers)
    unequal: NDArray[np.bool_] = left != right
    return unequal


def _copy_to_array(values: Any, name: str, error_class: ErrorClass) -> NDArray[Any]:
    """Return a copy as an array; other containers become an array of unchanged objects."""
    try:
        if hasattr(values, "to_numpy"):  # pandas and polars
            values = values.to_numpy()
        masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
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
