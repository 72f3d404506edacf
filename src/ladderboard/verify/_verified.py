"""What a check found: what holds, and what nobody could see from the file alone."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple

from ladderboard.verify._words import many

__all__ = ["Ranked", "Verified"]


class Ranked(NamedTuple):
    """A row of a ranking; baselines, and who was never told a number, have no rank."""

    rank: int | None
    team: str
    baseline: bool
    number: float | None


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
    commitment
        What the first entry commits to: labels, noise key and rules.
    standings, finals, disqualified
        What teams were told and how they ended, as the close committed to it; None where that is
        not in it. The ids of teams that are disqualified at the end of the ledger.
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
    commitment: str
    standings: list[dict[str, Any]] | None
    finals: dict[str, Any] | None
    disqualified: frozenset[str]
    receipts: tuple[dict[str, Any], ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]

    def __str__(self) -> str:
        if self.of == "ledger":
            end = "closed" if self.closed else "not closed yet"
            return f"the chain holds: {many(self.entries, 'entry', 'entries')}, {end}"
        if self.releases < self.questions:
            return f"verified: {self.releases:,} of {many(self.questions, 'release')}"
        return f"verified: {many(self.releases, 'release')}"

    @property
    def ranking(self) -> list[Ranked]:
        """The final ranking, or without one the standings, as everybody sees them in the end.

        Who is disqualified is not shown, and takes no rank. The number is the final one as the
        board shows it, in standings the loss that was released.
        """
        if self.finals is not None:
            rows = [
                (row["team"]["id"], row["team"]["name"], row["baseline"], row["score"],
                 row["display"])
                for row in self.finals["rows"]
            ]  # fmt: skip
        else:
            rows = [
                (row["team"], row["name"], row["baseline"], row["released"], row["released"])
                for row in self.standings or ()
            ]
        shown = [row for row in rows if row[0] not in self.disqualified]
        shown.sort(key=lambda row: (row[3] is None, row[3] or 0))
        scores = sorted(row[3] for row in shown if not row[2] and row[3] is not None)
        return [
            Ranked(
                None if baseline or score is None else 1 + bisect_left(scores, score),
                name, baseline, number,
            )
            for _, name, baseline, score, number in shown
        ]  # fmt: skip

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
            "commitment": self.commitment,
            "standings": self.standings,
            "finals": self.finals,
            "ranking": [each._asdict() for each in self.ranking],
            "disqualified": sorted(self.disqualified),
            "receipts": list(self.receipts),
            "checked": list(self.checked),
            "unchecked": list(self.unchecked),
        }
