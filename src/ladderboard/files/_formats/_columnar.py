"""Parquet and Arrow files, read by polars from bytes after a check of their metadata.

When polars panics, the Rust runtime writes to file descriptor 2, bypassing Python. While a Parquet
or Arrow file is read, the descriptor is redirected to a temporary file; what other threads wrote
in the meantime is forwarded afterwards, up to the report of a panic if there was one.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ladderboard._formatting import format_count
from ladderboard.files._columns import load_polars, refuse_polars_errors
from ladderboard.files._formats._columnar_metadata import (
    MalformedMetadata,
    arrow_size,
    parquet_size,
)
from ladderboard.files._memory import column_from_series
from ladderboard.files._source import ErrorClass, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._source import Limits

_STDERR = 2
_MAX_FORWARDED_BYTES = 2**20
_PANIC = re.compile(rb"(?m)^thread '[^\n]*panicked at ")
_FORMAT_NAMES = {"parquet": "Parquet", "arrow": "Arrow"}
_INTEGER_TYPES = {f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)}
_SUPPORTED_TYPES = ("String", "Boolean", "Null", "Categorical", "Enum", "Decimal")


class _StderrRedirect:
    """Counts readers: the first one redirects standard error, the last one restores it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.readers = 0
        self.saved_stderr = -1
        self.file: IO[bytes] | None = None


_REDIRECT = _StderrRedirect()


@contextmanager
def suppress_panic_output() -> Iterator[None]:
    """Drop the report of a panic on standard error within the ``with`` block."""
    with _REDIRECT.lock:
        if _REDIRECT.readers == 0:
            _redirect_stderr()
        _REDIRECT.readers += 1
    try:
        yield
    finally:
        with _REDIRECT.lock:
            _REDIRECT.readers -= 1
            if _REDIRECT.readers == 0:
                _restore_stderr()


def _redirect_stderr() -> None:
    with suppress(OSError, ValueError, AttributeError):  # standard error may be missing
        sys.stderr.flush()
    with suppress(OSError):
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the last reader is done
        saved_stderr = os.dup(_STDERR)
        os.dup2(file.fileno(), _STDERR)
        _REDIRECT.saved_stderr, _REDIRECT.file = saved_stderr, file


def _restore_stderr() -> None:
    if _REDIRECT.file is None:
        return
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    os.dup2(_REDIRECT.saved_stderr, _STDERR)
    os.close(_REDIRECT.saved_stderr)
    with _REDIRECT.file as file:
        _REDIRECT.file = None
        file.seek(0)
        written = file.read(_MAX_FORWARDED_BYTES)
    panic = _PANIC.search(written)
    if panic:  # the end of its report is unknown, so drop all that follows
        written = written[: panic.start()]
        if written.endswith(b"\n\n") or written == b"\n":  # a report begins with a blank line
            written = written[:-1]
    if written:
        with suppress(OSError):
            os.write(_STDERR, written)


class ColumnarTable:
    """A Parquet or Arrow file; its columns are loaded on demand."""

    def __init__(
        self, data: bytes, format_name: str, limits: Limits, max_rows: int, error_class: ErrorClass
    ) -> None:
        self._data = data
        self._format = format_name
        self._limits = limits
        self._error_class = error_class
        self._cached_frame: Any = None
        self._check_size(max_rows)
        polars = load_polars()
        read = polars.read_parquet_schema if format_name == "parquet" else polars.read_ipc_schema
        with refuse_polars_errors(error_class, _FORMAT_NAMES[format_name]), suppress_panic_output():
            self._schema: dict[str, Any] = dict(read(io.BytesIO(data)))
        self.names = list(self._schema)
        self.width = len(self.names)
        if self.width > limits.columns:
            message = f"There are {self.width} columns; the limit is {limits.columns}."
            refuse(error_class, "too_many_columns", message)

    def load_columns(self, positions: Sequence[int], as_numbers: Sequence[bool]) -> list[Column]:
        """Load the columns at some positions."""
        names = [self.names[position] for position in positions]
        for name in names:
            if not self._is_supported(name):
                message = f"The column {name[:80]!r} must hold numbers, text or booleans; it holds "
                message += f"{str(self._schema[name])[:80]}."
                refuse(self._error_class, "wrong_type", message, column=name)
        with (
            refuse_polars_errors(self._error_class, _FORMAT_NAMES[self._format]),
            suppress_panic_output(),
        ):
            frame = self._frame(names)
            self._check_text(frame)
            return [column_from_series(frame[name]) for name in names]

    def load_all(self, *, as_numbers: bool) -> list[Column | None]:
        """Load every column of a supported type."""
        positions = [
            position for position, name in enumerate(self.names) if self._is_supported(name)
        ]
        loaded = dict(
            zip(positions, self.load_columns(positions, [as_numbers] * len(positions)), strict=True)
        )
        return [loaded.get(position) for position in range(self.width)]

    def stream_integers(
        self, positions: Sequence[int], consume: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
        """Pass the integers of some columns to ``consume``, in the blocks of the file."""
        names = [self.names[position] for position in positions]
        if not _INTEGER_TYPES.issuperset(str(self._schema[name]) for name in names):
            return False
        with (
            refuse_polars_errors(self._error_class, _FORMAT_NAMES[self._format]),
            suppress_panic_output(),
        ):
            frame = self._cached_frame = self._frame(names)
            chunks = [frame[name].get_chunks() for name in names]
            if any(series.null_count() for series in frame.get_columns()) or (
                len({tuple(map(len, column)) for column in chunks}) > 1
            ):
                return False
            return all(
                consume([chunk.to_numpy() for chunk in block])
                for block in zip(*chunks, strict=True)
            )

    def _is_supported(self, name: str) -> bool:
        kind = self._schema[name]
        return bool(kind.is_numeric() or str(kind).startswith(_SUPPORTED_TYPES))

    def _frame(self, names: list[str]) -> Any:
        """Return some columns, decoded by polars now or by ``stream_integers`` before."""
        frame, self._cached_frame = self._cached_frame, None
        if frame is not None and frame.columns == names:
            return frame
        polars = load_polars()
        source = io.BytesIO(self._data)
        if self._format == "parquet":
            frame = polars.read_parquet(
                source, columns=names, glob=False, hive_partitioning=False, use_statistics=False
            )
        else:
            frame = polars.read_ipc(source, columns=names)
        if frame.height != self._rows:
            self._refuse_inconsistent()
        return frame

    def _check_size(self, max_rows: int) -> None:
        """Check the sizes that the metadata states, before anything is decompressed."""
        try:
            read_size = parquet_size if self._format == "parquet" else arrow_size
            self._rows, total = read_size(self._data)
        except MalformedMetadata:
            self._refuse_inconsistent()
        if self._rows > max_rows:
            message = f"The file holds {format_count(self._rows, 'row')}, more than {max_rows}."
            refuse(self._error_class, "too_many_rows", message)
        if total > self._limits.bytes:
            message = f"The file is larger than {self._limits.bytes} bytes after unpacking, "
            refuse(self._error_class, "too_many_bytes", f"{message}which is the limit.")

    def _refuse_inconsistent(self) -> NoReturn:
        message = f"The file could not be read as {_FORMAT_NAMES[self._format]}: it is cut off, "
        message += "or the sizes in its metadata do not agree."
        refuse(self._error_class, "damaged", message)

    def _check_text(self, frame: Any) -> None:
        """Refuse text that is small as a dictionary but would fill memory when expanded."""
        total = 0
        for series in frame.get_columns():
            if str(series.dtype) == "String":
                total += int(series.str.len_bytes().sum() or 0)
        if total > self._limits.bytes:
            message = f"The text is larger than {self._limits.bytes} bytes, which is the limit."
            refuse(self._error_class, "too_many_bytes", message)
