"""The records of a bundle, one after the other, each no longer than what is left of the file."""

from __future__ import annotations

import hashlib
import os
import struct
from collections import Counter
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.ledger import decode, encode

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["START", "Records"]

START = b"ladderboard bundle 1\n"
_NAME = START[:-2]
_LENGTH = struct.Struct(">Q")
_PAIR = b"L" + _LENGTH.pack(2) + b"S"
_HASH = hashlib.sha256().digest_size
_ENTRY = _PAIR[:-1] + encode("entry")


class Records:
    """Reads records; ``kind`` is that of the one at hand, None after the last.

    What is at hand is ``content``, in canonical form, until ``next`` is called.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        start = file.read(len(START))
        if start != START:
            newer = start.startswith(_NAME) and start != START
            said = "was written by a newer Ladderboard; install that one" if newer else "is none"
            raise InvalidState(f"A bundle begins with {START[:-1].decode()!r}; this file {said}.")
        self._hash = hashlib.sha256(start)
        self._left = os.fstat(file.fileno()).st_size - len(START) - _HASH
        self._counts: Counter[str] = Counter()
        self.kind: str | None = None
        self.content = b""
        self.next()

    def next(self) -> None:
        """Go to the next record."""
        if not self._left:
            self.kind, self.content = None, b""
            return
        head = self._file.read(_LENGTH.size)
        length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else self._left
        self._left -= length + _LENGTH.size
        form = self._file.read(length) if self._left >= 0 else b""
        if self._left < 0 or len(form) != length:
            raise BrokenLedger("The bundle is cut off, or something was put in or taken out.")
        self._hash.update(head)
        self._hash.update(form)
        if form.startswith(_ENTRY):
            self.kind, self.content = "entry", form[len(_ENTRY) :]
        else:
            self.kind, self.content = _kind(form)
        self._counts[self.kind] += 1

    def read(self) -> Any:
        """Return the content of the record at hand, decoded, and go to the next."""
        try:
            content = decode(self.content)
        except ValueError:
            raise strange(self.kind) from None
        self.next()
        return content

    def end(self) -> None:
        """Read the last record, and compare the hash at the end with that of everything."""
        counts = dict(self._counts)
        if self.kind != "end" or counts.pop("end") != 1:
            raise strange(self.kind)
        if self.read() != counts:
            raise BrokenLedger("The bundle does not hold as many records as it says.")
        if self.kind is not None:
            raise strange(self.kind)
        if self._file.read() != self._hash.digest():
            raise BrokenLedger("The bundle is damaged: it does not end with the hash of the rest.")


def strange(kind: str | None) -> BrokenLedger:
    """Return the refusal of a record that is not as we write it, or not where it belongs."""
    what = "ends too early" if kind is None else f"holds a record {kind!r:.20} that we do not write"
    return BrokenLedger(f"The bundle {what}.")


def _kind(form: bytes) -> tuple[str, bytes]:
    at = len(_PAIR) + _LENGTH.size
    if not form.startswith(_PAIR) or len(form) < at:
        raise BrokenLedger("The bundle holds something that is no record.")
    end = at + int.from_bytes(form[len(_PAIR) : at], "big")
    if not form[at:end].isascii():
        raise BrokenLedger("The bundle holds something that is no record.")
    return form[at:end].decode(), form[end:]
