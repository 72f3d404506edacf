"""Quiet: a panic of polars becomes a refusal, and its report on standard error is dropped.

The report is written by the Rust runtime to file descriptor 2, past Python. While a Parquet or an
Arrow file is read, the descriptor leads to a temporary file; what other threads wrote meanwhile is
passed on afterwards, up to the report of a panic if there was one.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["quiet"]

_STDERR = 2
_MOST = 2**20
_PANIC = re.compile(rb"(?m)^thread '[^\n]*panicked at ")


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
