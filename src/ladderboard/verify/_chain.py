"""Read the hash chain: every entry is parsed, hashed and compared with the one before it.

Also strict checks of untrusted values: exact types and exact keys.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from ladderboard.ledger import broken_entry, encode, parse_strict_json

if TYPE_CHECKING:
    from collections.abc import Collection

    from ladderboard.errors import BrokenLedger

_PREFIX = b"ladderboard:1:entry\n"
_COMMON = {"format", "book", "number", "kind", "time", "previous"}
_QUESTION_FIELDS = len(_COMMON) + 8  # fields of a question, without the optional ones
_DECIDED = {"n", "loss", "mechanism", "rules", "holdout", "key"}
# The fields of each kind of entry: the required ones, and the optional ones.
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
    "accepted": ({"asker", "terms"}, {"person"}),
    "merged": ({"asker", "into"}, {"person"}),
    "appointed": ({"person"}, set()),
    "dismissed": ({"person"}, set()),
}
_MAX_TIME = 253402300799  # the end of the year 9999: datetime cannot represent later times


class BrokenLink(Exception):
    """An entry does not hold the hash of the entry before it."""


class ChainReader:
    """Reads entries in order; ``head`` is the hash of the last one, ``entries`` their number."""

    def __init__(self, book: str | None) -> None:
        self.book = book
        self.entries = 0
        self.head = bytes(32)
        self._previous = self.head.hex()
        self._time = 0

    def read_entry(self, encoded: bytes) -> dict[str, Any]:
        """Return the fields of the next entry; refuse one that does not continue the chain."""
        number = self.entries
        try:
            fields = parse_strict_json(encoded.decode("ascii"))
            if fields["kind"] != "question":
                _check_fields(fields)
            elif (
                len(fields)
                - ("error_class" in fields)
                - ("proven" in fields)
                - ("metric" in fields)
                != _QUESTION_FIELDS
                or "secret" not in fields
                or "submission" not in fields
            ):
                raise ValueError  # a missing field raises KeyError where it is used
        except (LookupError, RecursionError, TypeError, ValueError):
            raise broken_entry(number, "it cannot be read") from None
        if fields["format"] != 1 or type(fields["format"]) is not int:
            raise broken_entry(number, f"its format is {fields['format']!r:.20} instead of 1")
        if fields["book"] != self.book:
            if number or self.book is not None or type(fields["book"]) is not str:
                raise broken_entry(number, "it belongs to another book")
            self.book = fields["book"]
        if fields["number"] != number or type(fields["number"]) is not int:
            raise broken_entry(number, f"it is numbered {fields['number']!r:.20}")
        if fields["previous"] != self._previous:
            raise BrokenLink
        time = fields["time"]
        if type(time) is not int or not self._time <= time <= _MAX_TIME:
            raise broken_entry(number, "its time is invalid or before the time of the last entry")
        hashed = _hash_entry(encoded)
        self.head = hashed.digest()
        self._previous = self.head.hex()
        self._time, self.entries = time, number + 1
        return fields

    def explain_broken_link(
        self, encoded: bytes, after: bytes | None, last: bytes | None
    ) -> BrokenLedger:
        """Return the error for a broken link, naming the entry that was changed.

        If the next entry, or the head, holds the hash of this entry, the previous one was changed.
        """
        named = last
        if after is not None:
            try:
                named = bytes.fromhex(parse_strict_json(after.decode("ascii"))["previous"])
            except (LookupError, RecursionError, TypeError, ValueError):
                named = None
        if self.entries and named == _hash_entry(encoded).digest():
            return broken_entry(
                self.entries - 1, "the next entry holds the hash of a different entry"
            )
        return broken_entry(self.entries, "it does not follow the entry before it: one was changed")


def _hash_entry(encoded: bytes) -> hashlib._Hash:
    return hashlib.sha256(_PREFIX + len(encoded).to_bytes(8, "big") + encoded)


def _check_fields(fields: dict[str, Any]) -> None:
    """Raise ``ValueError`` for a missing or unknown field; unknown kinds may have any fields."""
    if fields["kind"] in _FIELDS:
        needed, more = _FIELDS[fields["kind"]]
        if not _COMMON | needed <= fields.keys() <= _COMMON | needed | more:
            raise ValueError
    elif not fields.keys() >= _COMMON:
        raise ValueError
    encode(fields)  # refuses infinity, which is what JSON's 1e999 is read as


def same_encoding(first: Any, second: Any) -> bool:
    """Return whether two values have the same encoding: in Python 1, 1.0 and True are equal.

    >>> same_encoding({"a": 1}, {"a": 1}), same_encoding([1], [1.0]), same_encoding(0, False)
    (True, False, False)
    """
    return encode(first) == encode(second)


def is_int(value: Any, *, at_least: int = 0) -> bool:
    """Return whether a value is an integer (and not a bool) of at least ``at_least``."""
    return type(value) is int and value >= at_least


def is_release_value(value: Any) -> bool:
    """Return whether a value can be a release or a score: None or a finite float.

    >>> is_release_value(None), is_release_value(0.5), is_release_value(1)
    (True, True, False)
    """
    return value is None or (type(value) is float and math.isfinite(value))


def has_exact_keys(content: Any, names: Collection[str]) -> bool:
    """Return whether a value is a dict with exactly these keys."""
    return type(content) is dict and content.keys() == set(names)
