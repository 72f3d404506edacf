"""The chain: entries that name their predecessor, read and hashed from their bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ladderboard.ledger import broken_entry, encode, parse_strict_json

if TYPE_CHECKING:
    from ladderboard.errors import BrokenLedger

_PREFIX = b"ladderboard:1:entry\n"
_COMMON = {"format", "book", "number", "kind", "time", "previous"}
_MANY = len(_COMMON) + 8  # fields of a question
_DECIDED = {"n", "loss", "mechanism", "rules", "holdout", "key"}
# The fields of each kind: those that it must have, and those that it may have besides.
_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "opened": ({*_DECIDED, "commitment"}, set()),
    "ladder": ({"ladder"}, set()),
    "restored": ({"charged"}, set()),
    "closed": ({"values"}, {"standings", "finals"}),
    "paused": (set(), set()),
    "resumed": ({"charged"}, set()),
    "amended": ({"changes", "commitment"}, {"holdout"}),
    "disqualified": ({"asker"}, set()),
    "reinstated": ({"asker"}, set()),
    "moved": ({"status"}, set()),
}
_LAST = 253402300799  # the end of the year 9999, after which no calendar of ours goes on


class Unlinked(Exception):
    """An entry does not name the one before it."""


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
            fields = parse_strict_json(form.decode("ascii"))
            if fields["kind"] != "question":
                _check_fields(fields)
            elif len(fields) != _MANY or "secret" not in fields or "submission" not in fields:
                raise ValueError  # whoever looks at the others will miss them
        except (LookupError, RecursionError, TypeError, ValueError):
            raise broken_entry(number, "it cannot be read") from None
        if fields["format"] != 1 or type(fields["format"]) is not int:
            raise broken_entry(
                number, f"its format is {fields['format']!r:.20}, and this is format 1"
            )
        if fields["book"] != self.book:
            if number or self.book is not None or type(fields["book"]) is not str:
                raise broken_entry(number, "it belongs to another book")
            self.book = fields["book"]
        if fields["number"] != number or type(fields["number"]) is not int:
            raise broken_entry(number, f"it is numbered {fields['number']!r:.20}")
        if fields["previous"] != self._previous:
            raise Unlinked
        time = fields["time"]
        if type(time) is not int or not self._time <= time <= _LAST:
            raise broken_entry(number, "its time is before that of the last, or is none")
        hashed = _hashed(form)
        self.head, self._previous = hashed.digest(), hashed.hexdigest()
        self._time, self.entries = time, number + 1
        return fields

    def blame(self, form: bytes, after: bytes | None, last: bytes | None) -> BrokenLedger:
        """Return the refusal of an entry that does not name the one before it: one was changed.

        Where the entry after it, or the head of all, names this one as it is, it was the other.
        """
        named = last
        if after is not None:
            try:
                named = bytes.fromhex(parse_strict_json(after.decode("ascii"))["previous"])
            except (LookupError, RecursionError, TypeError, ValueError):
                named = None
        if self.entries and named == _hashed(form).digest():
            return broken_entry(
                self.entries - 1, "the entry after it names another one in its place"
            )
        return broken_entry(self.entries, "it does not follow the entry before it: one was changed")


def _hashed(form: bytes) -> hashlib._Hash:
    return hashlib.sha256(_PREFIX + len(form).to_bytes(8, "big") + form)


def _check_fields(fields: dict[str, Any]) -> None:
    """Refuse an entry that lacks a field, or has one more; kinds that are not known may have any.

    ``ValueError`` where it is so.
    """
    if fields["kind"] in _FIELDS:
        needed, more = _FIELDS[fields["kind"]]
        if not _COMMON | needed <= fields.keys() <= _COMMON | needed | more:
            raise ValueError
    elif not fields.keys() >= _COMMON:
        raise ValueError
    encode(fields)  # which refuses numbers that are not finite, and 1e999 is read as one
