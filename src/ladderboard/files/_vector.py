"""Plain vectors of the holdout's length, for whoever asks a thousand questions a second.

Where nothing is wrong with an array, no columns, masks and lists of problems have to be made. Where
anything is, None is returned, and the general way finds the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files._want import Want

__all__ = ["read_vector"]

_TEXT = np.dtypes.StringDType()
_FEW = 16  # comparing with each class takes longer than sorting if there are more


def read_vector(source: Any, n: int, want: Want) -> NDArray[Any] | None:
    """Return a copy of a vector of ``n`` values, one a row, if all can be used; else None.

    >>> from ladderboard.files._want import Want
    >>> read_vector(np.array([True, False]), 2, Want("number", "one"))
    array([1, 0])
    """
    if want.form != "one" or not isinstance(source, np.ndarray | list) or len(source) != n:
        return None
    values = _numbers(source) if want.number else _texts(source)
    if values is None or want.classes is None:
        return values
    if len(want.classes) > _FEW:
        return None
    known = np.zeros(n, np.bool_)
    for each in want.classes:
        known |= values == (float(each) if want.number else each)
    return values if known.all() else None


def _numbers(source: Any) -> NDArray[Any] | None:
    if type(source) is not np.ndarray or source.ndim != 1:
        return None
    kind = source.dtype.kind
    if kind == "f" and source.itemsize <= 8 and np.isfinite(source).all():
        return source.astype(np.float64)
    if kind in "bi" or (kind == "u" and source.itemsize < 8):
        return source.astype(np.int64)
    return None


def _texts(source: Any) -> NDArray[Any] | None:
    if type(source) is np.ndarray:
        plain = source.ndim == 1 and (source.dtype.kind == "U" or source.dtype == _TEXT)
    else:
        plain = type(source) is list and set(map(type, source)) == {str}
    if not plain:
        return None
    try:
        values = np.array(source, dtype=_TEXT)
    except (UnicodeError, TypeError):  # half a character, or what is none
        return None
    return None if (values == "").any() else values
