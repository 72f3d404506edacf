"""The records of a bundle, one after the other, each no longer than what is left of the file."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.ledger import decode, encode
from ladderboard.verify._strict import same

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["START", "Records", "strange"]

START = b"ladderboard bundle 1\n"
_NAME = START[:-2]
_COUNT = 8  # bytes of a length
_HASH = 32
_BLOCK = 2**20
_PAIR = b"L" + (2).to_bytes(_COUNT, "big")
_ENTRY = _PAIR + encode("entry")
_OPENED = _PAIR + b"B"  # an entry's bytes and its secret side
_NOTHING = b"N"


class Records:
    """Reads records; ``kind`` is that of the one at hand, None after the last.

    It stays at hand until ``next`` is called. The file is read and hashed in blocks.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        start = file.read(len(START))
        if start != START:
            newer = start.startswith(_NAME)
            said = "was written by a newer Ladderboard; install that one" if newer else "is none"
            raise InvalidState(f"A bundle begins with {START[:-1].decode()!r}; this file {said}.")
        self._hash = hashlib.sha256(start)
        self._left = os.fstat(file.fileno()).st_size - len(START) - _HASH
        # The record at hand is block[start:end]; its content begins at ``content``.
        self._block, self._content, self._end = b"", 0, 0
        self._counts: Counter[str] = Counter()
        self.kind: str | None = None
        self.next()

    def next(self) -> None:
        """Go to the next record."""
        start = self._end + _COUNT
        if start > len(self._block):
            if self._end == len(self._block) and not self._left:
                self.kind = None
                return
            self._need(_COUNT)
            start = self._end + _COUNT
        length = int.from_bytes(self._block[self._end : start], "big")
        if start + length > len(self._block):
            self._need(_COUNT + length)
            start = self._end + _COUNT
        self._end = start + length
        if self._block.startswith(_ENTRY, start):
            self.kind, self._content = "entry", start + len(_ENTRY)
        else:
            self.kind, self._content = self._look(start)
        self._counts[self.kind] += 1

    def _need(self, count: int) -> None:
        """Read until so many bytes are at hand after the last record."""
        lacks = self._end + count - len(self._block)
        if lacks > self._left:
            raise BrokenLedger("The bundle is cut off, or something was put in or taken out.")
        read = self._file.read(min(self._left, max(lacks, _BLOCK)))
        if len(read) < lacks:
            raise BrokenLedger("The bundle became shorter while it was read.")
        self._hash.update(read)
        self._left -= len(read)
        self._block, self._end = self._block[self._end :] + read, 0

    def _look(self, start: int) -> tuple[str, int]:
        """Return the kind of a record, and where its content begins."""
        block, at = self._block, start + len(_PAIR) + 1
        size = int.from_bytes(block[at : at + _COUNT], "big")
        at, end = at + _COUNT, at + _COUNT + size
        if not block.startswith(_PAIR + b"S", start) or end > self._end or not size:
            raise BrokenLedger("The bundle holds something that is no record.")
        return block[at:end].decode("ascii", "replace"), end

    def read(self) -> Any:
        """Return the content of the record at hand, decoded, and go to the next."""
        try:
            content = decode(self._block[self._content : self._end])
        except ValueError:
            raise strange(self.kind) from None
        self.next()
        return content

    def entry(self) -> tuple[bytes, bytes | None]:
        """Return the bytes of the entry at hand and its secret side, and go to the next."""
        block, end = self._block, self._end
        at = self._content + len(_OPENED)
        start = at + _COUNT
        middle = start + int.from_bytes(block[at:start], "big")
        if not block.startswith(_OPENED, self._content) or middle >= end:
            raise strange("entry")
        form, secret = block[start:middle], block[middle:end]
        self.next()
        return form, None if secret == _NOTHING else secret

    def end(self) -> None:
        """Read the record at hand as the last, and compare the hash at the end with all of it."""
        counts = {kind: count for kind, count in self._counts.items() if kind != "end"}
        if not same(self.read(), counts):
            raise BrokenLedger("The bundle does not hold as many records as it says.")
        if self.kind is not None:
            raise strange(self.kind)
        if self._file.read() != self._hash.digest():
            raise BrokenLedger("The bundle is damaged: it does not end with the hash of the rest.")


def strange(kind: str | None) -> BrokenLedger:
    """Return the refusal of a record that is not as we write it, or not where it belongs."""
    if kind is None:
        return BrokenLedger("The bundle ends too early.")
    return BrokenLedger(
        f"The bundle holds a record {kind!r:.20} that is not as we write it, or not in its place."
    )
