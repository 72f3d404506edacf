"""Records in a vault: a kind and a content each, one kind after the other, and their numbers."""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenDump
from ladderboard.ledger._canonical import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger._vault import VaultReader, VaultWriter

__all__ = ["RecordReader", "RecordWriter"]

_LENGTH = struct.Struct(">Q")
_END = "end"


class RecordWriter:
    """Writes records: a length of 8 bytes and the canonical form of ``[kind, content]``."""

    def __init__(self, vault: VaultWriter) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()

    def put(self, kind: str, content: Any) -> None:
        """Write a record."""
        form = encode([kind, content])
        self._vault.write(_LENGTH.pack(len(form)) + form)
        self._counts[kind] += 1

    def end(self) -> None:
        """Write the last record, which tells how many there are of each kind."""
        self.put(_END, dict(self._counts))


class RecordReader:
    """Reads what a ``RecordWriter`` wrote, kind by kind in the order in which they came."""

    def __init__(self, vault: VaultReader) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()
        self._next: tuple[str, Any] | None = None

    def one(self, kind: str) -> Any:
        """Return the content of the next record, which is of this kind."""
        found, content = self._look()
        if found != kind:
            raise _strange()
        self._take()
        return content

    def section(self, kind: str) -> Iterator[Any]:
        """Return the contents of all records of this kind that come next."""
        while self._look()[0] == kind:
            content = self._look()[1]
            self._take()
            yield content

    def end(self) -> None:
        """Refuse a dump that does not end here, or lacks records."""
        counts = dict(self._counts)
        if self.one(_END) != counts or self._vault.read(1):
            raise BrokenDump("The dump is not whole: records are missing, or too many.")

    def _look(self) -> tuple[str, Any]:
        if self._next is None:
            length = self._vault.read(_LENGTH.size)
            if len(length) < _LENGTH.size:
                raise BrokenDump("The dump is not whole: records are missing, or too many.")
            try:
                kind, content = decode(self._vault.read(_LENGTH.unpack(length)[0]))
            except (TypeError, ValueError):
                raise _strange() from None
            self._next = kind, content
        return self._next

    def _take(self) -> None:
        self._counts[self._look()[0]] += 1
        self._next = None


def _strange() -> BrokenDump:
    return BrokenDump("The dump holds something that we do not write.")
