"""The chain: entries that name their predecessor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenLedger
from ladderboard.ledger._entry import NOTHING, Entry
from ladderboard.ledger._storage import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ladderboard.ledger._storage import At, Writing

__all__ = ["Head", "append", "differs", "follow"]


class Head(NamedTuple):
    """The last entry: how many there are, and its hash. Whoever keeps it can tell a rewrite."""

    entries: int
    hash: bytes


def append(  # noqa: PLR0917 - in the order in which a sentence would name them
    book: Writing,
    name: str,
    at: At,
    kind: str,
    time: int,
    fields: dict[str, Any],
    secret: bytes | None = None,
    **moved: Any,
) -> At:
    """Append an entry, and return where the book stands after it. Time never runs backwards."""
    time = max(time, at.time)
    entry = Entry.make(
        book=name, number=at.entries, kind=kind, time=time, previous=at.head, **fields
    )
    own = entry.hash
    now = at._replace(entries=at.entries + 1, head=own, time=time, **moved)
    places = (fields.get("ladder"), fields.get("question"), fields.get("asker"))
    book.append(Row(at.entries, kind, entry.form, own, *places), now, secret)
    return now


def follow(
    forms: Iterable[bytes], book: str | None = None
) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Read entries in their order and check that each follows from the last.

    Raises ``BrokenLedger`` that names the first entry that does not.
    """
    previous, last = NOTHING, 0
    for number, form in enumerate(forms):
        entry = Entry(form)
        try:
            fields = entry.read()
        except BrokenLedger as broken:
            raise BrokenLedger(f"Entry {number}: {broken}", entry=number) from None
        book = fields["book"] if book is None else book
        wrong = _wrong(fields, book, number, previous, last)
        if wrong:
            raise differs(number, wrong)
        previous, last = entry.hash, fields["time"]
        yield entry, fields


def differs(number: int, how: str) -> BrokenLedger:
    """Return the error that names an entry, and how it differs."""
    said = f"Entry {number} of the ledger is not as it was written: {how}."
    return BrokenLedger(said, entry=number)


def _wrong(fields: dict[str, Any], book: str, number: int, previous: bytes, last: int) -> str:
    if fields["book"] != book:
        return "it belongs to another book"
    if type(fields["number"]) is not int or fields["number"] != number:
        return f"it is numbered {fields['number']!r:.20}"
    if fields["previous"] != previous.hex():
        return "it does not follow the entry before it"
    if type(fields["time"]) is not int or fields["time"] < last:
        return "its time is before that of the last"
    return ""
