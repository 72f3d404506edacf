"""Predictions as they are sent to a served guard, so that it reads what was meant.

Numbers go as .npy, without pickles; text, gaps and mixtures as JSON Lines; files as they are.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, Problem

_CSV, _NPY, _LINES = "text/csv", "application/x-npy", "application/x-ndjson"
_TSV, _FOUND_OUT = "text/tab-separated-values", "application/octet-stream"
_PARQUET, _ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.file"
_FORMATS = {
    "csv": _CSV, "txt": _CSV, "tsv": _TSV, "tab": _TSV,
    "parquet": _PARQUET, "pq": _PARQUET,
    "arrow": _ARROW, "feather": _ARROW, "ipc": _ARROW,
    "jsonl": _LINES, "ndjson": _LINES,
    "npy": _NPY,
}  # fmt: skip
_NAMED = ("csv", "tsv", "parquet", "arrow", "jsonl", "npy")  # the others are their nicknames
# Names that say what the first bytes cannot; all others are found out by the guard.
_SUFFIXES = {".tsv": _TSV, ".tab": _TSV, ".jsonl": _LINES, ".ndjson": _LINES}
_MAGIC = (b"PAR1", b"ARROW1", b"\x93NUMPY")
_WIDEST = 64  # characters of text that .npy, which pads, still sends well
_FEW = 50  # columns whose names fit into the head of a .npy file


class Payload(NamedTuple):
    """Bytes, and the media type that tells how to read them."""

    data: bytes
    kind: str


def encode_predictions(predictions: Any, file_format: str | None = None) -> Payload:
    """Return predictions as they are sent; refuse what cannot be.

    >>> encode_predictions([0, 1, 1]).kind, encode_predictions(["cat", "dog", None]).kind
    ('application/x-npy', 'application/x-ndjson')
    """
    told = None
    if file_format is not None:
        plain = (
            file_format.strip().lower().lstrip(".") if isinstance(file_format, str) else file_format
        )
        if not isinstance(plain, str) or plain not in _FORMATS:
            plain = _settings.choice("format", plain, _NAMED)
        told = _FORMATS[plain]
    if isinstance(predictions, bytes | bytearray | memoryview):
        return Payload(bytes(predictions), told or _FOUND_OUT)
    if isinstance(predictions, str | os.PathLike):
        data = _read_path(predictions)
        return Payload(data, told or _by_name(os.fsdecode(predictions), data))
    if callable(getattr(predictions, "read", None)):
        data = _read_stream(predictions)
        return Payload(data, told or _by_name(getattr(predictions, "name", ""), data))
    rule = "Predictions are a path, bytes, an open binary file, an array, a list, a dict of "
    rule += "columns, or an object of pandas or polars; got something of type "
    rule += f"{type(predictions).__name__}."
    try:
        packed = _pack_memory(predictions)
    except InvalidPredictions:
        raise
    except Exception as error:  # whatever a foreign object raises when it is looked at
        raise _refusal("format", rule) from error
    if packed is None:
        raise _refusal("format", rule)
    return packed


def _by_name(name: Any, data: bytes) -> str:
    if not isinstance(name, str) or data.startswith(_MAGIC):
        return _FOUND_OUT
    suffixes = Path(name.lower().removesuffix(".gz")).suffix
    return _SUFFIXES.get(suffixes, _FOUND_OUT)


def _read_path(path: Any) -> bytes:
    shown, file = _settings.safe_repr(os.fsdecode(path)), Path(os.fsdecode(path))
    try:
        if file.is_dir():
            raise _refusal("not_a_file", f"{shown} is a folder, not a file.")
        if not file.exists():
            raise _refusal("not_a_file", f"There is no file {shown}.")
        if not file.is_file():  # a pipe may never end
            raise _refusal("not_a_file", f"{shown} is not a regular file.")
        return file.read_bytes()
    except OSError as error:
        said = f"{shown} could not be opened: {error.strerror}."
        raise _refusal("not_a_file", said) from None


def _read_stream(stream: Any) -> bytes:
    try:
        data = stream.read()
        return data.encode() if isinstance(data, str) else bytes(data)
    except Exception as error:  # whatever a foreign file object raises
        raise _refusal("not_a_file", "The open file could not be read.") from error


def _refusal(code: str, message: str, count: int = 1) -> InvalidPredictions:
    return InvalidPredictions(message, problems=(Problem(code, None, count, (), message),))


def _pack_memory(source: Any) -> Payload | None:
    if hasattr(source, "write_parquet") and hasattr(source, "get_columns"):  # polars
        out = io.BytesIO()
        source.write_parquet(out)
        return Payload(out.getvalue(), _PARQUET)
    if isinstance(source, Mapping):
        return _pack_columns([(str(name), _vector(each)) for name, each in source.items()])
    if hasattr(source, "iloc"):  # pandas
        return _pack_pandas(source)
    if isinstance(source, list | tuple) and isinstance(next(iter(source), None), _ROWS):
        return _pack_rows([list(each) for each in source])
    if getattr(source, "ndim", 1) == 2:
        array = np.asarray(source)
        return _pack_rows(array.tolist()) if _is_mixed(source) else _npy(array)
    return _pack_vector(_vector(source))


_ROWS = (list, tuple, np.ndarray)


def _is_mixed(array: Any) -> bool:
    """Return whether an array holds what .npy does not keep: gaps, objects, text of any length."""
    kind = array.dtype.kind if isinstance(array, np.ndarray) else "O"
    return kind in "OT" or isinstance(array, np.ma.MaskedArray)


def _vector(values: Any) -> Any:
    """Return a vector as an array of numbers or short text, or as a list of anything."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step)
    if isinstance(values, list | tuple):
        return _listed(list(values))
    if hasattr(values, "null_count"):  # a series of polars
        return values.to_list() if values.null_count() else _vector(values.to_numpy())
    if hasattr(values, "iloc") or hasattr(values, "nlevels"):  # a series or an index of pandas
        plain = isinstance(values.dtype, np.dtype)
        values = values.to_numpy() if plain else values.to_numpy(dtype=object, na_value=None)
    return _arrayed(values if isinstance(values, np.ma.MaskedArray) else np.asarray(values))


def _listed(values: list[Any]) -> Any:
    kinds = set(map(type, values))
    if kinds <= {int, float} and (len(kinds) < 2 or _fit_floats(values)):
        with contextlib.suppress(OverflowError):
            return np.array(values, dtype=np.int64 if kinds == {int} else np.float64)
    return values


def _fit_floats(values: list[Any]) -> bool:
    """Return whether no whole number among them would be rounded."""
    return all(type(each) is float or abs(each) <= 2**53 for each in values)


def _arrayed(array: Any) -> Any:
    if array.dtype.names:
        return array
    if array.ndim != 1:
        raise TypeError
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    wide = array.dtype.kind == "U" and array.dtype.itemsize > 4 * _WIDEST
    return array.tolist() if wide or _is_mixed(array) else array


def _pack_vector(vector: Any) -> Payload:
    if isinstance(vector, np.ndarray):
        return _npy(vector)
    return _lines(["prediction"], [vector])


def _pack_pandas(source: Any) -> Payload:
    named = source.index.nlevels == 1 and str(source.index.name or "").strip().casefold() == "id"
    columns = [("id", _vector(source.index))] if named else []
    if source.ndim == 1:
        column = _vector(source)
        called = "score" if source.name == "score" else "prediction"
        return _pack_columns([*columns, (called, column)]) if named else _pack_vector(column)
    columns += [(str(name), _vector(source.iloc[:, at])) for at, name in enumerate(source.columns)]
    return _pack_columns(columns)


def _pack_columns(columns: list[tuple[str, Any]]) -> Payload:
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        raise _refusal("duplicate_column", "Every column must have a name of its own.")
    lengths = {len(each) for _, each in columns}
    if len(lengths) > 1:
        raise _refusal("ragged", "All columns must be of one length.")
    arrays = all(isinstance(each, np.ndarray) and not each.dtype.names for _, each in columns)
    if arrays and 0 < len(columns) <= _FEW and all(0 < len(name) <= 80 for name in names):
        table = np.empty(lengths.pop(), [(name, each.dtype) for name, each in columns])
        for name, each in columns:
            table[name] = each
        return _npy(table)
    return _lines(
        names, [each.tolist() if isinstance(each, np.ndarray) else each for _, each in columns]
    )


def _pack_rows(rows: list[list[Any]]) -> Payload:
    """Pack a matrix that has no names: numbers with NaN for gaps, or text with nothing for them."""
    if len({len(each) for each in rows}) != 1:
        raise _refusal("ragged", "All rows must be of one length.")
    flat = [each.item() if isinstance(each, np.generic) else each for row in rows for each in row]
    shape = (len(rows), len(rows[0]))
    kinds = set(map(type, flat)) - {type(None)}
    if kinds <= {bool, int} and None not in flat:
        return _npy(np.array(flat, dtype=np.int64).reshape(shape))
    if kinds <= {bool, int, float}:
        read = [np.nan if each is None else each for each in flat]
        return _npy(np.array(read, dtype=np.float64).reshape(shape))
    if kinds != {str}:
        raise TypeError
    return _npy(np.array(["" if each is None else each for each in flat]).reshape(shape))


def _npy(array: Any) -> Payload:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return Payload(out.getvalue(), _NPY)


def _lines(names: list[str], columns: list[list[Any]]) -> Payload:
    keys = [json.dumps(each) for each in names]
    written = [[json.dumps(value, default=_plain) for value in column] for column in columns]
    rows = zip(*written, strict=True)
    lines = ("{" + ",".join(map(":".join, zip(keys, row, strict=True))) + "}" for row in rows)
    return Payload("\n".join(lines).encode("ascii"), _LINES)


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy or a gap of pandas as JSON has it; else a list, to be refused."""
    if isinstance(value, np.generic):
        return value.item() if value.dtype.kind in "biufU" else []
    return None if type(value).__name__ in {"NAType", "NaTType"} else []
