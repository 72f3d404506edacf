"""Small whole numbers, put where their ids say, piece by piece.

Ids 0..n-1 and a few classes are what most files hold. Each class goes into a single byte, at once
and from whatever part of the file was read last, so the columns never stand in memory as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Small"]

_ZERO = 128  # the byte that stands for 0; the byte 0 is left where nothing was put
_LEAST, _MOST = 1 - _ZERO, 255 - _ZERO


class Small:
    """Predictions for the ids 0..n-1.

    Examples
    --------
    >>> small = Small(3)
    >>> small.put([np.array([2, 0]), np.array([7, -1])]), small.put([np.array([1]), np.array([5])])
    (True, True)
    >>> small.all(None)
    array([-1,  5,  7])
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._bytes = np.zeros(n, np.uint8)
        self._rows = 0

    def put(self, columns: Sequence[NDArray[Any]]) -> bool:
        """Take a piece of ids and one of values; False if an id or a value is out of range."""
        ids, values = columns
        if not len(ids):
            return True
        # Read without a sign, what is below 0 is past n as well.
        whole = ids.view(np.uint64) if ids.dtype == np.int64 else ids
        if whole.max() >= self._n or (whole is ids and ids.min() < 0):
            return False
        if values.min() < _LEAST or values.max() > _MOST:
            return False
        small = values.astype(np.uint8)
        small += np.uint8(_ZERO)  # past 255 it goes on from 0, which is just right below 0
        self._bytes[ids] = small
        self._rows += len(ids)
        return True

    def all(self, classes: tuple[Any, ...] | None) -> NDArray[np.int64] | None:
        """Return the values, None if an id came twice or never, or a value is no class."""
        if self._rows != self._n or not self._bytes.all():
            return None
        if classes is not None:
            known = np.zeros(256, np.bool_)
            known[[int(each) + _ZERO for each in classes if _fits(each)]] = True
            if not known[self._bytes].all():
                return None
        return np.subtract(self._bytes, _ZERO, dtype=np.int64)


def _fits(value: Any) -> bool:
    return bool(_LEAST <= value <= _MOST) and value == int(value)
