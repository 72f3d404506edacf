"""NumPy's .npy files, without pickles: the header is read, the rest is the array's own bytes."""

from __future__ import annotations

import ast
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from ladderboard.files._memory import array_sheet
from ladderboard.files._problems import Refusal, refuse, single_refusal

if TYPE_CHECKING:
    from ladderboard.files._columns import MemoryTable
    from ladderboard.files._source import Limits

_LONGEST_HEADER = 10_000
_TRIES = 20


def read_npy(data: bytes, limits: Limits, most: int, refusal: Refusal) -> MemoryTable:
    """Return the sheet of a .npy file: a vector, a matrix, or a structured array."""
    try:
        shape, fortran, kind, start = _header(data)
    except Exception as error:  # a Python literal may fail in any way
        rule = "The file could not be read as .npy: its header is damaged."
        raise single_refusal(refusal, "damaged", rule) from error
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
    count, left = math.prod(shape), len(data) - start
    if kind.itemsize * count != left:
        said = f"The header promises {kind.itemsize * count} bytes of data; there are {left}."
        refuse(refusal, "damaged", said)
    try:
        array = np.frombuffer(data, kind, count, start) if left else np.empty(shape, kind)
        sheet = array_sheet(array.reshape(shape, order="F" if fortran else "C"))
    except Exception as error:  # such as bytes that are not text
        raise single_refusal(refusal, "damaged", "The array could not be read.") from error
    if sheet is None:
        refuse(refusal, "damaged", "The array could not be read.")
    return sheet


def _header(data: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order, type and where the array begins.

    NumPy's own reader of headers takes those of Python 2 and warns; here they are damaged.
    """
    wide = {1: 2, 2: 4, 3: 4}[data[6]]
    start = 8 + wide + int.from_bytes(data[8 : 8 + wide], "little")
    if not data.startswith(npy.MAGIC_PREFIX) or start > min(len(data), _LONGEST_HEADER):
        raise ValueError
    header = _literal(data[8 + wide : start].decode("utf-8" if data[6] == 3 else "latin1"))
    shape, fortran = header["shape"], header["fortran_order"]
    if not all(type(each) is int and each >= 0 for each in shape) or type(fortran) is not bool:
        raise ValueError
    return tuple(shape), fortran, npy.descr_to_dtype(header["descr"]), start


def _literal(text: str) -> Any:
    """Return what a Python literal says.

    Python 3.11 counts how deep it is in one number for all threads, and takes it for a fault of its
    own if two of them read at once; that is over when it is tried again.
    """
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.literal_eval(text)
    return ast.literal_eval(text)
