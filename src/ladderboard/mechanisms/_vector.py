"""Reading vectors of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidRisk

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_vector"]


def read_vector(name: str, values: Any) -> NDArray[np.float64]:
    """Return a copy as a vector of doubles, without negative zeros; refuse anything else."""
    try:
        vector = np.asarray(values)
        masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
    except Exception:  # noqa: BLE001 - ragged rows, or whatever a foreign object does
        raise InvalidRisk(f"{name} must be a vector of numbers.") from None
    if masked:
        raise InvalidRisk(f"{name} must not be masked; fill the gaps first.")
    if vector.ndim != 1 or vector.dtype.kind not in "biuf" or vector.dtype.itemsize > 8:
        raise InvalidRisk(f"{name} must be a vector of numbers.")
    return vector.astype(np.float64) + 0.0
