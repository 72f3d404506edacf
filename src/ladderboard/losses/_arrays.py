"""Reading labels and predictions: which values can be compared at all.

Every refusal here depends on the array alone, so the same predictions are refused in the same
words whatever the labels are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Refusal", "different", "read_numbers", "read_values", "refuse_rows"]

Refusal = type[InvalidInput]

_SHOWN = 10
_INT64 = 2.0**63


def read_values(values: Any, what: str, refusal: Refusal) -> NDArray[Any]:
    """Return an array of text, numbers or a mix of both; refuse None, NaN and infinities.

    Takes arrays, lists, and pandas or polars objects.
    """
    array = _as_array(values, what, refusal)
    kind = array.dtype.kind
    if kind == "T":  # NumPy's variable-width strings
        array = array.astype(object)
        kind = "O"
    if kind == "O":
        odd = [type(each).__name__ for each in array.flat if not _comparable(each)]
        if odd:
            names = ", ".join(sorted(set(odd)))
            raise refusal(f"{what} must be text, numbers or booleans; got {names}.")
    elif kind not in "biufU":
        raise refusal(f"{what} must be text, numbers or booleans; got {array.dtype}.")
    refuse_rows(_missing(array), f"{what} must not be None, NaN or infinite", refusal)
    return array


def read_numbers(values: Any, what: str, refusal: Refusal) -> NDArray[np.float64]:
    """Return an array of finite doubles; text is refused, also where it spells a number."""
    array = read_values(values, what, refusal)
    if array.dtype.kind == "O":
        try:
            if any(isinstance(each, str) for each in array.flat):
                raise TypeError
            array = array.astype(np.float64)
        except (OverflowError, TypeError):
            array = np.array("")
    if array.dtype.kind not in "biuf":
        raise refusal(f"{what} must be numbers; got text.")
    return array.astype(np.float64)


def refuse_rows(bad: NDArray[np.bool_], rule: str, refusal: Refusal) -> None:
    """Refuse, with the number of bad rows and the positions of the first ten, if there are any."""
    rows = np.asarray(bad.any(axis=tuple(range(1, bad.ndim))))
    if not rows.any():
        return
    positions = tuple(np.flatnonzero(rows)[:_SHOWN].tolist())
    count = int(np.count_nonzero(rows))
    which = ", ".join(map(str, positions)) + (", ..." if count > _SHOWN else "")
    raise refusal(
        f"{rule}; {count} of {len(rows)} rows break this rule (at position {which}).",
        positions=positions,
    )


def different(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two arrays differ: numbers by value, text by its characters.

    A number never equals a text. Whole numbers and doubles are compared exactly, also past 2^53.
    """
    kinds = left.dtype.kind + right.dtype.kind
    if "O" in kinds:
        pairs = zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)
        return np.array([a != b for a, b in pairs], dtype=np.bool_).reshape(left.shape)
    if ("U" in kinds) and kinds != "UU":
        return np.ones(left.shape, dtype=np.bool_)
    if kinds in ("if", "uf", "fi", "fu"):
        whole, real = (left, right) if kinds[1] == "f" else (right, left)
        fits = (real >= -_INT64) & (real < _INT64) & (real == np.trunc(real))
        return ~fits | (np.where(fits, real, 0).astype(np.int64) != whole)
    unequal: NDArray[np.bool_] = left != right
    return unequal


def _as_array(values: Any, what: str, refusal: Refusal) -> NDArray[Any]:
    if hasattr(values, "to_numpy"):  # pandas and polars
        values = values.to_numpy()
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise refusal(f"{what} must not be masked; fill the gaps first.")
    try:
        array = np.asarray(values)
    except ValueError:
        raise refusal(f"{what} must be an array with rows of one length.") from None
    if array.ndim == 0:
        raise refusal(f"{what} must be an array with a row for each example.")
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        # NumPy turns [1, "a"] into text and drops closing NULs; keep each value what it was.
        kept = np.array(values, dtype=object)
        if not all(isinstance(each, str) and not each.endswith("\0") for each in kept.flat):
            return kept
    return array


def _comparable(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float | np.bool_ | np.number)


def _missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        return ~np.isfinite(array)
    if array.dtype.kind == "O":
        flat = [
            each is None or (isinstance(each, float | np.floating) and not math.isfinite(each))
            for each in array.flat
        ]
        return np.array(flat, dtype=np.bool_).reshape(array.shape)
    return np.zeros(array.shape, dtype=np.bool_)
