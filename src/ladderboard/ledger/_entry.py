"""An entry of the ledger: the very bytes that were hashed, and what they say."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ladderboard.errors import BrokenLedger

__all__ = ["FORMAT", "NOTHING", "Entry", "read_json"]

FORMAT = 1
NOTHING = bytes(32)  # what the first entry calls its predecessor
_PREFIX = b"ladderboard:1:entry\n"
_WRITER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_COMMON = ("format", "book", "number", "kind", "time", "previous")


@dataclass(frozen=True)
class Entry:
    """One entry, as its bytes; everything else is read from them.

    The bytes are ASCII JSON. They are kept and hashed as they were written, so nobody has to agree
    on how to write JSON, only on how to read it.
    """

    form: bytes

    @classmethod
    def make(
        cls, *, book: str, number: int, kind: str, time: int, previous: bytes, **more: Any
    ) -> Entry:
        """Write an entry; ``more`` are the fields of its kind."""
        fields = {
            "format": FORMAT,
            "book": book,
            "number": number,
            "kind": kind,
            "time": time,
            "previous": previous.hex(),
            **more,
        }
        return cls(_WRITER.encode(fields).encode("ascii"))

    @cached_property
    def hash(self) -> bytes:
        """The SHA-256 of the bytes, with their length before them."""
        return hashlib.sha256(_PREFIX + struct.pack(">Q", len(self.form)) + self.form).digest()

    def read(self) -> dict[str, Any]:
        """Return the fields, or raise ``BrokenLedger`` where the bytes are no entry."""
        try:
            fields = read_json(self.form.decode("ascii"))
            if any(name not in fields for name in _COMMON):
                raise ValueError("fields are missing")
        except (RecursionError, ValueError):
            raise BrokenLedger("An entry of the ledger cannot be read; it was damaged.") from None
        if fields["format"] != FORMAT:
            raise BrokenLedger(
                f"An entry has format {fields['format']!r:.20}; this version reads {FORMAT}."
            )
        return fields


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a field that is written twice: readers would not agree on it."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is written twice")
    return fields


def _not_json(name: str) -> None:
    """Refuse NaN and infinities, which Python reads and JSON does not know."""
    raise ValueError(f"{name} is no JSON")


_read = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_not_json).raw_decode
_read_flat = json.JSONDecoder(parse_constant=_not_json).raw_decode


def read_json(text: str) -> dict[str, Any]:
    """Return a JSON object that fills a text from end to end, in which no name comes twice.

    >>> read_json('{"a":1}')
    {'a': 1}
    """
    fields, end = _read_flat(text)
    if end != len(text) or type(fields) is not dict:
        raise ValueError("it is no JSON object")
    # Each name has its colon. Where there are no more colons than names, no name was lost.
    return fields if text.count(":") == len(fields) else _read(text)[0]
