"""Encodes predictions to send them to a served guard or a board.

Numbers are sent as .npy, without pickles; text, missing and mixed values as JSON Lines; files
unchanged.
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
_TSV, _DETECT = "text/tab-separated-values", "application/octet-stream"
_PARQUET, _ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.file"
_FORMATS = {
    "csv": _CSV, "txt": _CSV, "tsv": _TSV, "tab": _TSV,
    "parquet": _PARQUET, "pq": _PARQUET,
    "arrow": _ARROW, "feather": _ARROW, "ipc": _ARROW,
    "jsonl": _LINES, "ndjson": _LINES,
    "npy": _NPY,
}  # fmt: skip
_FORMAT_NAMES = ("csv", "tsv", "parquet", "arrow", "jsonl", "npy")  # without aliases
# Suffixes of formats that the first bytes do not show; the guard detects all others.
_SUFFIXES = {".tsv": _TSV, ".tab": _TSV, ".jsonl": _LINES, ".ndjson": _LINES}
_MAGIC = (b"PAR1", b"ARROW1", b"\x93NUMPY")
_MAX_TEXT_WIDTH = 64  # characters; .npy pads all text to the longest one
_MAX_NPY_COLUMNS = 50  # their names must fit into the header of a .npy file


class Payload(NamedTuple):
    """Bytes and their media type."""

    data: bytes
    media_type: str


def encode_predictions(predictions: Any, file_format: str | None = None) -> Payload:
    """Return predictions as bytes to send; refuse unsupported objects.

    >>> encode_predictions([0, 1, 1]).media_type
    'application/x-npy'
    >>> encode_predictions(["cat", "dog", None]).media_type
    'application/x-ndjson'
    """
    declared = None
    if file_format is not None:
        normalized = (
            file_format.strip().lower().lstrip(".") if isinstance(file_format, str) else file_format
        )
        if not isinstance(normalized, str) or normalized not in _FORMATS:
            normalized = _settings.choice("format", normalized, _FORMAT_NAMES)
        declared = _FORMATS[normalized]
    if isinstance(predictions, bytes | bytearray | memoryview):
        return Payload(bytes(predictions), declared or _DETECT)
    if isinstance(predictions, str | os.PathLike):
        data = _read_path(predictions)
        return Payload(data, declared or _media_type_from_name(os.fsdecode(predictions), data))
    if callable(getattr(predictions, "read", None)):
        data = _read_stream(predictions)
        return Payload(
            data, declared or _media_type_from_name(getattr(predictions, "name", ""), data)
        )
    rule = "Predictions are a path, bytes, an open binary file, an array, a list, a dict of "
    rule += "columns, or an object of pandas or polars; got "
    rule += f"{type(predictions).__name__}."
    try:
        payload = _encode_object(predictions)
    except InvalidPredictions:
        raise
    except Exception as error:  # whatever a foreign object raises when it is looked at
        raise _refusal("format", rule) from error
    if payload is None:
        raise _refusal("format", rule)
    return payload


def _media_type_from_name(name: Any, data: bytes) -> str:
    if not isinstance(name, str) or data.startswith(_MAGIC):
        return _DETECT
    suffixes = Path(name.lower().removesuffix(".gz")).suffix
    return _SUFFIXES.get(suffixes, _DETECT)


def _read_path(path: Any) -> bytes:
    shown, file = _settings.safe_repr(os.fsdecode(path)), Path(os.fsdecode(path))
    try:
        if file.is_dir():
            raise _refusal("not_a_file", f"{shown} is a folder, not a file.")
        if not file.exists():
            raise _refusal("not_a_file", f"There is no file {shown}.")
        if not file.is_file():  # reading a pipe may never end
            raise _refusal("not_a_file", f"{shown} is not a regular file.")
        return file.read_bytes()
    except OSError as error:
        message = f"{shown} could not be opened: {error.strerror}."
        raise _refusal("not_a_file", message) from None


def _read_stream(stream: Any) -> bytes:
    try:
        data = stream.read()
        return data.encode() if isinstance(data, str) else bytes(data)
    except Exception as error:  # whatever a foreign file object raises
        raise _refusal("not_a_file", "The open file could not be read.") from error


def _refusal(code: str, message: str, count: int = 1) -> InvalidPredictions:
    return InvalidPredictions(message, problems=(Problem(code, None, count, (), message),))


def _encode_object(source: Any) -> Payload | None:
    if hasattr(source, "write_parquet") and hasattr(source, "get_columns"):  # polars
        out = io.BytesIO()
        source.write_parquet(out)
        return Payload(out.getvalue(), _PARQUET)
    if isinstance(source, Mapping):
        return _encode_columns([(str(name), _vector(values)) for name, values in source.items()])
    if hasattr(source, "iloc"):  # pandas
        return _encode_pandas(source)
    if isinstance(source, list | tuple) and isinstance(next(iter(source), None), _ROWS):
        return _encode_matrix([list(row) for row in source])
    if getattr(source, "ndim", 1) == 2:
        array = np.asarray(source)
        return _encode_matrix(array.tolist()) if _is_mixed(source) else _encode_npy(array)
    return _encode_vector(_vector(source))


_ROWS = (list, tuple, np.ndarray)


def _is_mixed(array: Any) -> bool:
    """Return whether an array holds missing values, objects or text of any length."""
    kind = array.dtype.kind if isinstance(array, np.ndarray) else "O"
    return kind in "OT" or _settings.is_masked_array(array)


def _vector(values: Any) -> Any:
    """Return a vector as an array of numbers or short text, or as a list of anything."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step)
    if isinstance(values, list | tuple):
        return _vector_from_list(list(values))
    if hasattr(values, "null_count"):  # a polars series
        return values.to_list() if values.null_count() else _vector(values.to_numpy())
    if hasattr(values, "iloc") or hasattr(values, "nlevels"):  # a pandas series or index
        plain = isinstance(values.dtype, np.dtype)
        values = values.to_numpy() if plain else values.to_numpy(dtype=object, na_value=None)
    return _vector_from_array(values if _settings.is_masked_array(values) else np.asarray(values))


def _vector_from_list(values: list[Any]) -> Any:
    kinds = set(map(type, values))
    if kinds <= {int, float} and (len(kinds) < 2 or _are_exact_as_floats(values)):
        with contextlib.suppress(OverflowError):
            return np.array(values, dtype=np.int64 if kinds == {int} else np.float64)
    return values


def _are_exact_as_floats(values: list[Any]) -> bool:
    """Return whether all integers are exact as floats."""
    return all(type(value) is float or abs(value) <= 2**53 for value in values)


def _vector_from_array(array: Any) -> Any:
    if array.dtype.names:
        return array
    if array.ndim != 1:
        raise TypeError
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    is_wide_text = array.dtype.kind == "U" and array.dtype.itemsize > 4 * _MAX_TEXT_WIDTH
    return array.tolist() if is_wide_text or _is_mixed(array) else array


def _encode_vector(vector: Any) -> Payload:
    if isinstance(vector, np.ndarray):
        return _encode_npy(vector)
    return _encode_json_lines(["prediction"], [vector])


def _encode_pandas(source: Any) -> Payload:
    named = source.index.nlevels == 1 and str(source.index.name or "").strip().casefold() == "id"
    columns = [("id", _vector(source.index))] if named else []
    if source.ndim == 1:
        column = _vector(source)
        column_name = "score" if source.name == "score" else "prediction"
        return (
            _encode_columns([*columns, (column_name, column)]) if named else _encode_vector(column)
        )
    columns += [
        (str(name), _vector(source.iloc[:, position]))
        for position, name in enumerate(source.columns)
    ]
    return _encode_columns(columns)


def _encode_columns(columns: list[tuple[str, Any]]) -> Payload:
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        raise _refusal("duplicate_column", "Every column must have a name of its own.")
    lengths = {len(values) for _, values in columns}
    if len(lengths) > 1:
        raise _refusal("ragged", "All columns must be of one length.")
    arrays = all(isinstance(values, np.ndarray) and not values.dtype.names for _, values in columns)
    if (
        arrays
        and 0 < len(columns) <= _MAX_NPY_COLUMNS
        and all(0 < len(name) <= 80 for name in names)
    ):
        table = np.empty(lengths.pop(), [(name, values.dtype) for name, values in columns])
        for name, values in columns:
            table[name] = values
        return _encode_npy(table)
    return _encode_json_lines(
        names,
        [values.tolist() if isinstance(values, np.ndarray) else values for _, values in columns],
    )


def _encode_matrix(rows: list[list[Any]]) -> Payload:
    """Encode a matrix without names; missing values become NaN or empty text."""
    if len({len(row) for row in rows}) != 1:
        raise _refusal("ragged", "All rows must be of one length.")
    flat = [
        value.item() if isinstance(value, np.generic) else value for row in rows for value in row
    ]
    shape = (len(rows), len(rows[0]))
    kinds = set(map(type, flat)) - {type(None)}
    if kinds <= {bool, int} and None not in flat:
        return _encode_npy(np.array(flat, dtype=np.int64).reshape(shape))
    if kinds <= {bool, int, float}:
        numbers = [np.nan if value is None else value for value in flat]
        return _encode_npy(np.array(numbers, dtype=np.float64).reshape(shape))
    if kinds != {str}:
        raise TypeError
    return _encode_npy(np.array(["" if value is None else value for value in flat]).reshape(shape))


def _encode_npy(array: Any) -> Payload:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return Payload(out.getvalue(), _NPY)


def _encode_json_lines(names: list[str], columns: list[list[Any]]) -> Payload:
    keys = [json.dumps(name) for name in names]
    encoded = [[json.dumps(value, default=_json_default) for value in column] for column in columns]
    rows = zip(*encoded, strict=True)
    lines = ("{" + ",".join(map(":".join, zip(keys, row, strict=True))) + "}" for row in rows)
    return Payload("\n".join(lines).encode("ascii"), _LINES)


def _json_default(value: Any) -> Any:
    """Return a NumPy scalar or a missing pandas value for JSON; else a list, which is refused."""
    if isinstance(value, np.generic):
        return value.item() if value.dtype.kind in "biufU" else []
    return None if type(value).__name__ in {"NAType", "NaTType"} else []
