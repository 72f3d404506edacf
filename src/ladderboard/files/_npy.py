"""NumPy's .npy files, without pickles: the header is read, the rest is the array's own bytes."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from ladderboard.files._memory import array_sheet
from ladderboard.files._problems import Refusal, refuse

if TYPE_CHECKING:
    from ladderboard.files._limits import Limits
    from ladderboard.files._sheet import Loaded

__all__ = ["read_npy"]


def read_npy(data: bytes, limits: Limits, most: int, refusal: Refusal) -> Loaded:
    """Return the sheet of a .npy file: a vector, a matrix, or a structured array."""
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, kind = read(stream, max_header_size=10_000)
        if version not in {(1, 0), (2, 0), (3, 0)}:
            raise ValueError
    except Exception:  # noqa: BLE001 - the header is a Python literal, which may fail in any way
        refuse(refusal, "damaged", "The file could not be read as .npy: its header is damaged.")
    if kind.hasobject:
        said = "The array holds Python objects, which are not loaded; save numbers or text."
        refuse(refusal, "wrong_type", said)
    if len(shape) not in {1, 2}:
        said = f"The array must be a vector or a matrix; its shape is {shape}."
        refuse(refusal, "wrong_shape", said)
    if shape[0] > most:
        refuse(refusal, "too_many_rows", f"The array holds {shape[0]} rows, more than {most}.")
    if math.prod(shape[1:]) > limits.columns or len(kind.names or ()) > limits.columns:
        said = f"There are more than {limits.columns} columns, which is the limit."
        refuse(refusal, "too_many_columns", said)
    count, left = math.prod(shape), len(data) - stream.tell()
    if kind.itemsize * count != left:
        said = f"The header promises {kind.itemsize * count} bytes of data; there are {left}."
        refuse(refusal, "damaged", said)
    try:
        array = np.frombuffer(data, kind, count, stream.tell()) if left else np.empty(shape, kind)
        sheet = array_sheet(array.reshape(shape, order="F" if fortran else "C"))
    except Exception:  # noqa: BLE001 - such as text that is none
        sheet = None
    if sheet is None:
        refuse(refusal, "damaged", "The array could not be read.")
    return sheet
