"""Unpacking gzip while it comes in, a little at a time."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NoReturn

from ladderboard.errors import InvalidPredictions, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"\x1f\x8b"
_STEP = 2**18
_MEMBERS = 10_000  # each may be empty, and each costs time
_RATIO = 200  # bytes for each packed one; constant predictions for 50 classes have 86
_FREE = 2**22  # bytes for which the ratio does not matter


def refuse_file(code: str, rule: str) -> NoReturn:
    """Refuse a file in the words of those who read files."""
    raise InvalidPredictions(rule, problems=(Problem(code, None, 1, (), rule),))


class Gunzip:
    """Members one after the other, and nothing else."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)
        self._members = 0
        self._inside = False
        self._left = b""
        self._is_gzipped = self._unpacked = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what is in some more bytes, a step at a time: a thousandfold could come out."""
        self._is_gzipped += len(data)
        data = self._left + data
        self._left = b""
        while data:
            if not self._inside:
                if len(data) < len(_MAGIC) and _MAGIC.startswith(data):
                    self._left = data
                    return
                self._begin(data)
            try:
                part = self._stream.decompress(data, _STEP)
            except zlib.error:
                refuse_file("damaged", "The gzip stream is damaged.")
            self._unpacked += len(part)
            if self._unpacked > _FREE + _RATIO * self._is_gzipped:
                refuse_file(
                    "packed",
                    f"The file is more than {_RATIO} times as large as its gzip stream; send it "
                    "without compression.",
                )
            if part:
                yield part
            self._inside = not self._stream.eof
            data = self._stream.unconsumed_tail if self._inside else self._stream.unused_data

    def _begin(self, data: bytes) -> None:
        """Begin with a member, if this is one."""
        if not data.startswith(_MAGIC):
            what = "is followed by something else" if self._members else "is damaged"
            refuse_file("damaged", f"The gzip stream {what}.")
        self._members += 1
        if self._members > _MEMBERS:
            refuse_file("damaged", f"The gzip stream has more than {_MEMBERS} members.")
        self._stream = zlib.decompressobj(31)
        self._inside = True

    def end(self) -> None:
        """Refuse what is cut off."""
        if self._inside or self._left or not self._members:
            refuse_file("damaged", "The gzip stream is cut off.")


class MaybeGunzip:
    """A file as it is, or unpacked if it begins as gzip does.

    Parameters
    ----------
    packed
        The file came out of something packed already.
    """

    def __init__(self, *, packed: bool) -> None:
        self._is_gzipped = packed
        self._gunzip: Gunzip | None = None
        self._first = b""
        self._known = False
        self._seen = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what is in some more bytes."""
        if not self._known:
            data = self._first = self._first + data
            if len(data) < len(_MAGIC):
                return
            self._known = True
            if data.startswith(_MAGIC):
                if self._is_gzipped:
                    refuse_file("packed", "The file is packed twice; pack it once.")
                self._gunzip = Gunzip()
        if self._gunzip is None:
            yield data
            return
        for part in self._gunzip.feed(data):
            if len(self._seen) < len(_MAGIC):
                self._seen += part[: len(_MAGIC)]
                if self._seen.startswith(_MAGIC):
                    refuse_file("packed", "The file is packed twice; pack it once.")
            yield part

    def end(self) -> bytes:
        """Refuse what is cut off; return what was too short to tell what it is."""
        if self._gunzip is not None:
            self._gunzip.end()
        return b"" if self._known else self._first
