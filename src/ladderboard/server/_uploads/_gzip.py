"""Streaming decompression of gzip, with limits."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NoReturn

from ladderboard.errors import InvalidPredictions, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 2**18
_MAX_MEMBERS = 10_000  # each may be empty, but costs time
_MAX_RATIO = 200  # decompressed per compressed byte; constant predictions for 50 classes have 86
_FREE_BYTES = 2**22  # the ratio is checked beyond these


def refuse_file(code: str, rule: str) -> NoReturn:
    """Refuse a file as the file readers do."""
    raise InvalidPredictions(rule, problems=(Problem(code, None, 1, (), rule),))


class Gunzip:
    """Decompresses consecutive gzip members, and refuses anything else."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)
        self._members = 0
        self._inside = False
        self._pending = b""
        self._packed = self._unpacked = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decompressed chunks; their total can be a thousand times larger than the data."""
        self._packed += len(data)
        data = self._pending + data
        self._pending = b""
        while data:
            if not self._inside:
                if len(data) < len(_MAGIC) and _MAGIC.startswith(data):
                    self._pending = data
                    return
                self._begin_member(data)
            try:
                part = self._stream.decompress(data, _CHUNK_BYTES)
            except zlib.error:
                refuse_file("damaged", "The gzip stream is damaged.")
            self._unpacked += len(part)
            if self._unpacked > _FREE_BYTES + _MAX_RATIO * self._packed:
                refuse_file(
                    "packed",
                    f"The file is more than {_MAX_RATIO} times as large as its gzip stream; send "
                    "it without compression.",
                )
            if part:
                yield part
            self._inside = not self._stream.eof
            data = self._stream.unconsumed_tail if self._inside else self._stream.unused_data

    def _begin_member(self, data: bytes) -> None:
        """Begin a new member; refuse data that is not one."""
        if not data.startswith(_MAGIC):
            fault = "is followed by something else" if self._members else "is damaged"
            refuse_file("damaged", f"The gzip stream {fault}.")
        self._members += 1
        if self._members > _MAX_MEMBERS:
            refuse_file("damaged", f"The gzip stream has more than {_MAX_MEMBERS} members.")
        self._stream = zlib.decompressobj(31)
        self._inside = True

    def end(self) -> None:
        """Refuse a truncated stream."""
        if self._inside or self._pending or not self._members:
            refuse_file("damaged", "The gzip stream is cut off.")


class MaybeGunzip:
    """Passes a file through, decompressed if it starts like gzip.

    Parameters
    ----------
    gzipped
        Whether the file was inside a compressed body already.
    """

    def __init__(self, *, gzipped: bool) -> None:
        self._is_gzipped = gzipped
        self._gunzip: Gunzip | None = None
        self._first = b""
        self._known = False
        self._seen = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of some more bytes."""
        if not self._known:
            data = self._first = self._first + data
            if len(data) < len(_MAGIC):
                return
            self._known = True
            if data.startswith(_MAGIC):
                if self._is_gzipped:
                    refuse_file("packed", "The file is compressed twice; compress it once.")
                self._gunzip = Gunzip()
        if self._gunzip is None:
            yield data
            return
        for part in self._gunzip.feed(data):
            if len(self._seen) < len(_MAGIC):
                self._seen += part[: len(_MAGIC)]
                if self._seen.startswith(_MAGIC):
                    refuse_file("packed", "The file is compressed twice; compress it once.")
            yield part

    def end(self) -> bytes:
        """Refuse a truncated stream; return the bytes of a file too short to be gzip."""
        if self._gunzip is not None:
            self._gunzip.end()
        return b"" if self._known else self._first
