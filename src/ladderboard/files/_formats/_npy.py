"""NumPy's .npy files, without pickles: a header, followed by the bytes of the array."""

from __future__ import annotations

import ast
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from ladderboard.files._memory import array_to_table
from ladderboard.files._source import ErrorClass, refuse, single_refusal

if TYPE_CHECKING:
    from ladderboard.files._columns import MemoryTable
    from ladderboard.files._source import Limits

_LONGEST_HEADER = 10_000
_TRIES = 20


def read_npy(data: bytes, limits: Limits, max_rows: int, error_class: ErrorClass) -> MemoryTable:
    """Return a .npy file as a table: a vector, a matrix, or a structured array."""
    try:
        shape, fortran, dtype, start = _read_header(data)
    except Exception as error:  # parsing a Python literal may fail in any way
        rule = "The file could not be read as .npy: its header is damaged."
        raise single_refusal(error_class, "damaged", rule) from error
    if dtype.hasobject:
        message = "The array holds Python objects, which are not loaded; save numbers or text."
        refuse(error_class, "wrong_type", message)
    if len(shape) not in {1, 2}:
        message = f"The array must be a vector or a matrix; its shape is {shape}."
        refuse(error_class, "wrong_shape", message)
    if shape[0] > max_rows:
        refuse(
            error_class, "too_many_rows", f"The array holds {shape[0]} rows, more than {max_rows}."
        )
    if math.prod(shape[1:]) > limits.columns or len(dtype.names or ()) > limits.columns:
        message = f"There are more than {limits.columns} columns, which is the limit."
        refuse(error_class, "too_many_columns", message)
    count, remaining = math.prod(shape), len(data) - start
    if dtype.itemsize * count != remaining:
        message = (
            f"The header promises {dtype.itemsize * count} bytes of data; there are {remaining}."
        )
        refuse(error_class, "damaged", message)
    try:
        array = np.frombuffer(data, dtype, count, start) if remaining else np.empty(shape, dtype)
        table = array_to_table(array.reshape(shape, order="F" if fortran else "C"))
    except Exception as error:  # such as bytes that are not text
        raise single_refusal(error_class, "damaged", "The array could not be read.") from error
    if table is None:
        refuse(error_class, "damaged", "The array could not be read.")
    return table


def _read_header(data: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return the shape, whether the order is Fortran's, the dtype, and the start of the data.

    NumPy's own parser accepts headers written by Python 2 with a warning; here they are refused.
    """
    length_bytes = {1: 2, 2: 4, 3: 4}[data[6]]
    start = 8 + length_bytes + int.from_bytes(data[8 : 8 + length_bytes], "little")
    if not data.startswith(npy.MAGIC_PREFIX) or start > min(len(data), _LONGEST_HEADER):
        raise ValueError
    header = _parse_literal(
        data[8 + length_bytes : start].decode("utf-8" if data[6] == 3 else "latin1")
    )
    shape, fortran = header["shape"], header["fortran_order"]
    if (
        not all(type(length) is int and length >= 0 for length in shape)
        or type(fortran) is not bool
    ):
        raise ValueError
    return tuple(shape), fortran, npy.descr_to_dtype(header["descr"]), start


def _parse_literal(text: str) -> Any:
    """Return the value of a Python literal.

    The parser of Python 3.11 shares its recursion counter between threads, and may raise
    ``SystemError`` if two of them parse at once; a retry succeeds.
    """
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.literal_eval(text)
    return ast.literal_eval(text)
