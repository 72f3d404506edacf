"""Decompression of gzip, piece by piece and with limits."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from ladderboard.errors import InvalidPredictions
from ladderboard.files._problems import ErrorClass, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

GZIP_MAGIC = b"\x1f\x8b"
PACKED_TWICE = "The file is packed twice; pack it once."
_CHUNK_BYTES = 2**18
_MAX_MEMBERS = 10_000  # each may be empty, but costs time
_FREE_BYTES = 2**22  # the ratio is checked beyond these


class Gunzip:
    """Decompresses the consecutive members of a gzip file, and refuses anything else.

    Parameters
    ----------
    error_class
        The exception of a refusal.
    max_ratio
        How many bytes may come out for each byte that goes in, beyond the first 4 MiB.

    Examples
    --------
    >>> import gzip
    >>> gunzip = Gunzip()
    >>> b"".join(gunzip.feed(gzip.compress(b"id,") + gzip.compress(b"prediction")))
    b'id,prediction'
    >>> gunzip.end()
    """

    def __init__(
        self, error_class: ErrorClass = InvalidPredictions, *, max_ratio: int | None = None
    ) -> None:
        self._error_class, self._max_ratio = error_class, max_ratio
        self._stream = zlib.decompressobj(31)
        self._members = 0
        self._inside = False
        self._pending = b""  # the first byte of a member, perhaps
        self._start = b""  # the first bytes of what came out
        self._packed = self._unpacked = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decompressed pieces; their total can be a thousand times larger than the data."""
        self._packed += len(data)
        data = self._pending + data
        self._pending = b""
        while data:
            if not self._inside:
                if len(data) < len(GZIP_MAGIC) and GZIP_MAGIC.startswith(data):
                    self._pending = data
                    return
                self._begin_member(data)
            try:
                piece = self._stream.decompress(data, _CHUNK_BYTES)
            except zlib.error:
                refuse(self._error_class, "damaged", "The gzip file is damaged.")
            if piece:
                self._check(piece)
                yield piece
            self._inside = not self._stream.eof
            data = self._stream.unconsumed_tail if self._inside else self._stream.unused_data

    def end(self) -> None:
        """Refuse a truncated file."""
        if self._inside or self._pending or not self._members:
            refuse(self._error_class, "damaged", "The gzip file is cut off.")

    def _begin_member(self, data: bytes) -> None:
        """Begin a new member; refuse data that is not one."""
        if not data.startswith(GZIP_MAGIC):
            fault = "is followed by something else" if self._members else "is damaged"
            refuse(self._error_class, "damaged", f"The gzip file {fault}.")
        self._members += 1
        if self._members > _MAX_MEMBERS:
            rule = f"The gzip file has more than {_MAX_MEMBERS} members."
            refuse(self._error_class, "damaged", rule)
        self._stream = zlib.decompressobj(31)
        self._inside = True

    def _check(self, piece: bytes) -> None:
        """Refuse a file inside that is gzipped again, or far larger than its gzip file."""
        self._unpacked += len(piece)
        if len(self._start) < len(GZIP_MAGIC):
            self._start += piece[: len(GZIP_MAGIC)]
            if self._start.startswith(GZIP_MAGIC):
                refuse(self._error_class, "packed", PACKED_TWICE)
        ratio = self._max_ratio
        if ratio is not None and self._unpacked > _FREE_BYTES + ratio * self._packed:
            rule = f"The file is more than {ratio} times as large as its gzip file; send it plain."
            refuse(self._error_class, "packed", rule)
