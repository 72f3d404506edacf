"""The chain: entries that name their predecessor, read and hashed from their bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ladderboard.ledger import differs

__all__ = ["Chain"]

_PREFIX = b"ladderboard:1:entry\n"
_COMMON = {"format", "book", "number", "kind", "time", "previous"}


class Chain:
    """Follows entries in their order; ``head`` is the hash of the last, ``entries`` how many."""

    def __init__(self, book: str | None) -> None:
        self.book = book
        self.entries = 0
        self.head = bytes(32)
        self._previous = self.head.hex()
        self._time = 0

    def take(self, form: bytes) -> dict[str, Any]:
        """Return the fields of the next entry, or refuse one that does not follow."""
        number = self.entries
        try:
            text = form.decode("ascii")
            fields, end = _read(text, 0)
            if end != len(text) or type(fields) is not dict or not fields.keys() >= _COMMON:
                raise ValueError
        except (RecursionError, StopIteration, ValueError):
            raise differs(number, "it cannot be read") from None
        if fields["format"] != 1:
            raise differs(number, f"its format is {fields['format']!r:.20}, and this is format 1")
        if fields["book"] != self.book:
            if number or self.book is not None or type(fields["book"]) is not str:
                raise differs(number, "it belongs to another book")
            self.book = fields["book"]
        if fields["number"] != number or type(fields["number"]) is not int:
            raise differs(number, f"it is numbered {fields['number']!r:.20}")
        if fields["previous"] != self._previous:
            raise differs(number, "it does not follow the entry before it")
        time = fields["time"]
        if type(time) is not int or time < self._time:
            raise differs(number, "its time is before that of the last")
        hashed = hashlib.sha256(_PREFIX + len(form).to_bytes(8, "big") + form)
        self.head, self._previous = hashed.digest(), hashed.hexdigest()
        self._time, self.entries = time, number + 1
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


_read = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_not_json).scan_once
