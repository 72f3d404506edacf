"""Reading labels and predictions: which values can be compared at all.

Every refusal here depends on the array alone, so the same predictions are refused in the same
words whatever the labels are. What is read holds plain values only: doubles, whole numbers,
booleans, NumPy's variable-width text, or a mix of them as Python objects; so comparing can neither
fail nor run anybody's code.
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
# Whole numbers up to here are doubles too.
_MAX_EXACT_INT = 2**53
_PLAIN_TYPES = {bool, int, float, str}
_TEXT = np.dtypes.StringDType()


def read_values(values: Any, what: str, refusal: ErrorClass) -> NDArray[Any]:
    """Return an array of text, numbers or a mix of both; refuse None, NaN and infinities.

    Takes arrays, lists, and pandas or polars objects. The array is the caller's no more.
    """
    array = _copy_to_array(values, what, refusal)
    if array.dtype.kind == "T" and array.dtype != _TEXT:  # may hold gaps, which only objects show
        array = array.astype(object)
    if array.dtype.kind == "O":
        array = _to_plain(array, what, refusal)
    elif array.dtype.kind == "U":
        array = array.astype(_TEXT)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    elif array.dtype.kind not in "biufT":
        raise refusal(f"{what} must be text, numbers or booleans; got {array.dtype}.")
    raise_for_rows(_missing_values(array), f"{what} must not be None, NaN or infinite", refusal)
    return array


def is_plain_numbers(values: Any) -> bool:
    """Return whether ``read_values`` would return just a copy: of plain numbers, all finite."""
    if type(values) is not np.ndarray or not values.ndim:
        return False
    kind = values.dtype.kind
    if kind == "f" and values.itemsize <= 8:
        return bool(np.isfinite(values).all())
    return kind in "biu"


def read_numbers(values: Any, what: str, refusal: ErrorClass) -> NDArray[np.float64]:
    """Return an array of finite doubles; text is refused, also where it spells a number."""
    array = read_values(values, what, refusal)
    if array.dtype.kind == "T" or any(isinstance(each, str) for each in _flat_objects(array)):
        raise refusal(f"{what} must be numbers; got text.")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise refusal(f"{what} must be numbers that a double can hold.") from None


def raise_for_rows(bad: NDArray[np.bool_], rule: str, refusal: ErrorClass) -> None:
    """Refuse, with the number of bad rows and the positions of the first ten, if there are any."""
    rows = np.asarray(bad.any(axis=tuple(range(1, bad.ndim))))
    if not rows.any():
        return
    positions = tuple(np.flatnonzero(rows)[:_MAX_ROWS_SHOWN].tolist())
    count = int(np.count_nonzero(rows))
    which = ", ".join(map(str, positions)) + (", ..." if count > _MAX_ROWS_SHOWN else "")
    raise refusal(
        f"{rule}; {count} of {len(rows)} rows break this rule (at position {which}).",
        positions=positions,
        problems=(Problem("rows", None, count, (), rule),),
    )


def not_equal(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two arrays that were read differ: numbers by value, text by its characters.

    A number never equals a text. Whole numbers and doubles are compared exactly, also past 2^53.
    """
    kinds = left.dtype.kind + right.dtype.kind
    if "O" in kinds or ("u" in kinds and kinds != "uu"):
        pairs = zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)
        return np.array([a != b for a, b in pairs], dtype=np.bool_).reshape(left.shape)
    if "T" in kinds and kinds != "TT":
        return np.ones(left.shape, dtype=np.bool_)
    if kinds in ("if", "fi"):
        whole, real = (left, right) if kinds[1] == "f" else (right, left)
        real = real.astype(np.float64, copy=False)  # 2^63 is more than a half holds
        fits = (real >= -_INT64) & (real < _INT64) & (real == np.trunc(real))
        return ~fits | (np.where(fits, real, 0).astype(np.int64) != whole)
    unequal: NDArray[np.bool_] = left != right
    return unequal


def _copy_to_array(values: Any, what: str, refusal: ErrorClass) -> NDArray[Any]:
    """Return a copy as an array; what is not an array yet keeps each value as it was."""
    try:
        if hasattr(values, "to_numpy"):  # pandas and polars
            values = values.to_numpy()
        masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
        array = np.array(values, dtype=None if isinstance(values, np.ndarray) else object)
    except Exception:  # noqa: BLE001 - rows of unequal length, or whatever a foreign object does
        raise refusal(f"{what} could not be read as an array with rows of one length.") from None
    if masked:
        raise refusal(f"{what} must not be masked; fill the gaps first.")
    if array.ndim == 0:
        raise refusal(f"{what} must be an array with a row for each example.")
    return array


def _to_plain(array: NDArray[Any], what: str, refusal: ErrorClass) -> NDArray[Any]:
    """Return an array of objects as the narrowest array that holds the same values."""
    flat = array.ravel().tolist()
    kinds = set(map(type, flat))
    if not kinds <= _PLAIN_TYPES:
        flat = [_plain_value(each) for each in flat]
        kinds = set(map(type, flat))
    odd = kinds - _PLAIN_TYPES - {type(None)}
    if odd:
        names = ", ".join(sorted(kind.__name__ for kind in odd))
        raise refusal(f"{what} must be text, numbers or booleans; got {names}.")
    if kinds == {str}:
        return np.array(flat, dtype=_TEXT).reshape(array.shape)
    numeric = kinds <= {bool, int, float} and kinds
    if (
        numeric
        and float in kinds
        and not any(type(each) is int and abs(each) > _MAX_EXACT_INT for each in flat)
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
    """Return the plain Python value behind a scalar or a subclass; anything else as it is.

    A subclass may compare as it likes; its value does not.
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
            each is None or (isinstance(each, float) and not math.isfinite(each))
            for each in array.flat
        ]
        return np.array(flat, dtype=np.bool_).reshape(array.shape)
    return np.zeros(array.shape, dtype=np.bool_)
