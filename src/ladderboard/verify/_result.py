"""What a check found: what holds, and what nobody could see from the file alone."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple

from ladderboard._formatting import format_count


@dataclass(frozen=True)
class Found:
    """What a check has seen."""

    entries: int
    questions: int
    releases: int
    draws: int
    risks: int
    unchanged: int | None
    opened: bool
    labels: bool
    files: int
    own_loss: bool
    own_mechanism: bool
    standings: bool
    finals: bool
    finals_again: bool
    board: bool


def tell(found: Found) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what holds and what could not be checked, a sentence each."""
    return tuple(_checked(found)), tuple(_unchecked(found))


def _checked(found: Found) -> list[str]:
    entries = format_count(found.entries, "entry", "entries")
    said = [
        f"the chain: {entries}, each after the one before it, within the budget",
        "the commitment to rules, loss and mechanism, and every change of them",
    ]
    if found.opened:
        said.append("the noise key, and the secret side of every question: as committed to")
    if found.draws:
        said.append(f"the noise of {format_count(found.draws, 'question')}: from the key")
    if found.releases:
        said.append(
            f"{format_count(found.releases, 'release')}: made of risk and noise by the mechanism"
        )
    if found.labels:
        said.append("the labels: as committed to")
    if found.risks:
        said.append(f"{format_count(found.risks, 'risk')}: of the submissions, on the labels")
    if found.standings:
        said.append("the standings at the close: as released")
    if found.finals:
        again = "of the submissions, on the private labels"
        said.append(f"the final ranking: {again if found.finals_again else 'as committed to'}")
    if found.unchanged is not None:
        said.append(f"entries 0 to {found.unchanged:,}: those of the head or receipt that was kept")
    return said


def _unchecked(found: Found) -> list[str]:
    said = _rewritten(found)
    if not found.opened:
        return [*said, "noise, risks and releases: they are opened at the close, in a bundle"]
    if found.own_mechanism:
        said.append("noise and releases: the mechanism is the owner's own")
    elif found.releases < found.questions:
        said.append(
            f"{format_count(found.questions - found.releases, 'release')}: the mechanism looks at "
            "the losses of examples, for which labels and submissions are needed"
        )
    if not found.labels:
        said.append("the labels: they are not in the bundle")
    if found.labels and found.own_loss:
        said.append("risks: the loss is the owner's own; give it to check them (--loss)")
    elif found.risks < found.questions:
        lack = "submissions" if found.labels else "labels" if found.files else "both"
        lack = lack.replace("both", "labels and submissions")
        left = format_count(found.questions - found.risks, "risk")
        said.append(f"{left}: the {lack} are not in the bundle")
    return [*said, *_about_board(found)] if found.board else said


def _about_board(found: Found) -> list[str]:
    said = []
    if not found.standings:
        said.append("the standings: the last entry does not commit to them")
    if found.finals and not found.finals_again:
        said.append("the final ranking, beyond that it is the one of the close")
    elif found.finals:
        said.append("which of its files each team selected for the final ranking")
    elif not found.labels:
        said.append("whether there should be a final ranking: the labels are not in the bundle")
    said.append("when things were sent: deadlines and limits over time are the server's word")
    return said


def _rewritten(found: Found) -> list[str]:
    """Return how much of the history may be another than the one that was."""
    last = found.entries - 1
    if found.unchanged is None:
        kept = "a head or a receipt from before"
        return [f"whether all of it was written anew: {kept} would tell (--head, --receipt)"]
    if found.unchanged == last:
        return []
    since = "the last entry was"
    if found.unchanged + 1 < last:
        since = f"entries {found.unchanged + 1:,} to {last:,} were"
    return [f"whether {since} written anew: what was kept is older"]


class RankedTeam(NamedTuple):
    """A row of a ranking; baselines, and who was never told a number, have no rank."""

    rank: int | None
    team: str
    baseline: bool
    number: float | None


@dataclass(frozen=True)
class VerificationResult:
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
            return f"the chain holds: {format_count(self.entries, 'entry', 'entries')}, {end}"
        if self.releases < self.questions:
            return f"verified: {self.releases:,} of {format_count(self.questions, 'release')}"
        return f"verified: {format_count(self.releases, 'release')}"

    @property
    def ranking(self) -> list[RankedTeam]:
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
            RankedTeam(
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
