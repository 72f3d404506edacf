"""Encodes predictions to send them to a served guard or a board.

Numbers are sent as .npy, without pickles; text, missing and mixed values as JSON Lines; files
unchanged.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

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
    rule += "columns as {'id': [...], 'prediction': [...]}, or an object of pandas or polars; got "
    rule += f"{type(predictions).__name__}."
    try:
        # Imported here: a client that sends files needs no NumPy.
        encoded = import_module("ladderboard.files").encode_memory(predictions)
    except InvalidPredictions:
        raise
    except Exception as error:  # whatever a foreign object raises when it is looked at
        raise _refusal("format", rule) from error
    content, format_name = encoded
    return Payload(content, _FORMATS[format_name])


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
