"""Parquet and Arrow files, read by polars from bytes, after their metadata was checked.

When polars panics, the Rust runtime reports it on file descriptor 2, past Python. While a Parquet
or an Arrow file is read, the descriptor leads to a temporary file; what other threads wrote
meanwhile is passed on afterwards, up to the report of a panic if there was one.
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
from ladderboard.files._columns import guarded, load_polars
from ladderboard.files._formats._columnar_metadata import Malformed, arrow_size, parquet_size
from ladderboard.files._memory import series_column
from ladderboard.files._problems import Refusal, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.files._source import Limits

_STDERR = 2
_MOST = 2**20
_PANIC = re.compile(rb"(?m)^thread '[^\n]*panicked at ")
_SAID = {"parquet": "Parquet", "arrow": "Arrow"}
_PLAIN = ("String", "Boolean", "Null", "Categorical", "Enum", "Decimal")


class _Turn:
    """Counts who is reading: the first turns the descriptor away, the last turns it back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.readers = 0
        self.kept = -1
        self.file: IO[bytes] | None = None


_TURN = _Turn()


@contextmanager
def quiet() -> Iterator[None]:
    """Drop what a panic reports while this lasts."""
    with _TURN.lock:
        if _TURN.readers == 0:
            _turn_away()
        _TURN.readers += 1
    try:
        yield
    finally:
        with _TURN.lock:
            _TURN.readers -= 1
            if _TURN.readers == 0:
                _turn_back()


def _turn_away() -> None:
    with suppress(OSError, ValueError, AttributeError):  # there may be no standard error at all
        sys.stderr.flush()
    with suppress(OSError):
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the last reader is done
        kept = os.dup(_STDERR)
        os.dup2(file.fileno(), _STDERR)
        _TURN.kept, _TURN.file = kept, file


def _turn_back() -> None:
    if _TURN.file is None:
        return
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    os.dup2(_TURN.kept, _STDERR)
    os.close(_TURN.kept)
    with _TURN.file as file:
        _TURN.file = None
        file.seek(0)
        written = file.read(_MOST)
    panic = _PANIC.search(written)
    if panic:  # its report has no certain end, so what follows goes with it
        written = written[: panic.start()]
        if written.endswith(b"\n\n") or written == b"\n":  # a report begins with a blank line
            written = written[:-1]
    if written:
        with suppress(OSError):
            os.write(_STDERR, written)


_WHOLE = {f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)}


class ColumnarSheet:
    """A Parquet or an Arrow file; columns are loaded when it is known which are wanted."""

    def __init__(self, data: bytes, form: str, limits: Limits, most: int, refusal: Refusal) -> None:
        self._data = data
        self._form = form
        self._limits = limits
        self._refusal = refusal
        self._kept: Any = None
        self._check_size(most)
        polars = load_polars()
        read = polars.read_parquet_schema if form == "parquet" else polars.read_ipc_schema
        with guarded(refusal, _SAID[form]), quiet():
            self._schema: dict[str, Any] = dict(read(io.BytesIO(data)))
        self.names = list(self._schema)
        self.width = len(self.names)
        if self.width > limits.columns:
            said = f"There are {self.width} columns; the limit is {limits.columns}."
            refuse(refusal, "too_many_columns", said)

    def load(self, which: Sequence[int], number: Sequence[bool]) -> list[Column]:
        """Load some columns."""
        names = [self.names[each] for each in which]
        for name in names:
            if not self._is_plain(name):
                said = f"The column {name[:80]!r} must hold numbers, text or booleans; it holds "
                said += f"{str(self._schema[name])[:80]}."
                refuse(self._refusal, "wrong_type", said, column=name)
        with guarded(self._refusal, _SAID[self._form]), quiet():
            frame = self._frame(names)
            self._check_text(frame)
            return [series_column(frame[name]) for name in names]

    def load_without_polars(
        self, which: Sequence[int], number: Sequence[bool]
    ) -> list[Column] | None:
        """There is no lighter way."""

    def load_all(self, *, number: bool) -> list[Column | None]:
        """Load every column that can be loaded."""
        which = [at for at, name in enumerate(self.names) if self._is_plain(name)]
        loaded = dict(zip(which, self.load(which, [number] * len(which)), strict=True))
        return [loaded.get(at) for at in range(self.width)]

    def _is_plain(self, name: str) -> bool:
        kind = self._schema[name]
        return bool(kind.is_numeric() or str(kind).startswith(_PLAIN))

    def stream_integers(
        self, which: Sequence[int], use: Callable[[list[NDArray[Any]]], bool]
    ) -> bool:
        """Hand whole numbers of some columns to ``use``, chunk by chunk, as they were decoded."""
        names = [self.names[each] for each in which]
        if any(str(self._schema[name]) not in _WHOLE for name in names):
            return False
        with guarded(self._refusal, _SAID[self._form]), quiet():
            frame = self._frame(names)
            self._kept = frame
            if any(series.null_count() for series in frame.get_columns()):
                return False
            chunks = [frame[name].get_chunks() for name in names]
            if len({tuple(map(len, each)) for each in chunks}) > 1:
                return False
            for piece in zip(*chunks, strict=True):
                if not use([each.to_numpy() for each in piece]):
                    return False
        self._kept = None
        return True

    def _frame(self, names: list[str]) -> Any:
        """Let polars decode some columns, or return them if they were poured but not used."""
        frame, self._kept = self._kept, None
        if frame is not None and frame.columns == names:
            return frame
        polars = load_polars()
        source = io.BytesIO(self._data)
        if self._form == "parquet":
            frame = polars.read_parquet(
                source, columns=names, glob=False, hive_partitioning=False, use_statistics=False
            )
        else:
            frame = polars.read_ipc(source, columns=names)
        if frame.height != self._rows:
            self._refuse_accounts()
        return frame

    def _check_size(self, most: int) -> None:
        """Add up what the file says of itself, before anything is unpacked."""
        try:
            account = parquet_size if self._form == "parquet" else arrow_size
            self._rows, total = account(self._data)
        except Malformed:
            self._refuse_accounts()
        if self._rows > most:
            said = f"The file holds {format_count(self._rows, 'row')}, more than {most}."
            refuse(self._refusal, "too_many_rows", said)
        if total > self._limits.bytes:
            said = f"The file is larger than {self._limits.bytes} bytes after unpacking, which is "
            refuse(self._refusal, "too_many_bytes", f"{said}the limit.")

    def _refuse_accounts(self) -> NoReturn:
        said = f"The file could not be read as {_SAID[self._form]}: it is cut off, or what it says "
        refuse(self._refusal, "damaged", f"{said}of its own size does not agree.")

    def _check_text(self, frame: Any) -> None:
        """Refuse text that a dictionary holds once and that would fill memory when written out."""
        total = 0
        for series in frame.get_columns():
            if str(series.dtype) == "String":
                total += int(series.str.len_bytes().sum() or 0)
        if total > self._limits.bytes:
            said = f"The text is larger than {self._limits.bytes} bytes, which is the limit."
            refuse(self._refusal, "too_many_bytes", said)
