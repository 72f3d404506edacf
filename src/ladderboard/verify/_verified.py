"""What a check found: what holds, and what nobody could see from the file alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ladderboard.verify._words import many

__all__ = ["Verified"]


@dataclass(frozen=True)
class Verified:
    """A ledger in which nothing differs.

    Parameters
    ----------
    of
        What was looked at: a ``board``'s or a ``guard``'s bundle, or a ``ledger`` alone.
    book, entries, head
        The chain's id, its length, and the hash of its last entry.
    questions
        How many questions were answered.
    releases, risks
        How many releases and risks were recomputed, and are the same.
    closed
        Whether it has ended.
    unchanged
        The last entry that is known not to have been rewritten; None without a head or a receipt.
    receipts
        For each receipt the number of its entry, and what that entry says.
    checked, unchecked
        In sentences: what holds, and what could not be checked.
    """

    of: str
    book: str
    entries: int
    head: str
    questions: int
    releases: int
    risks: int
    closed: bool
    unchanged: int | None
    receipts: tuple[dict[str, Any], ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]

    def __str__(self) -> str:
        if self.of == "ledger":
            return f"the chain holds: {many(self.entries, 'entry', 'entries')}"
        if self.releases < self.questions:
            return f"verified: {self.releases:,} of {many(self.questions, 'release')}"
        return f"verified: {many(self.releases, 'release')}"

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "verified": True,
            "of": self.of,
            "book": self.book,
            "entries": self.entries,
            "head": self.head,
            "questions": self.questions,
            "releases": self.releases,
            "risks": self.risks,
            "closed": self.closed,
            "unchanged": self.unchanged,
            "receipts": list(self.receipts),
            "checked": list(self.checked),
            "unchecked": list(self.unchecked),
        }
