"""The result of a verification, and its description in sentences."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_count

if TYPE_CHECKING:
    from ladderboard.verify._history import ShownMetric


@dataclass(frozen=True)
class CheckSummary:
    """Counts and flags that the sentences of a result are made from."""

    entries: int
    questions: int
    looks: int
    verdicts: int
    releases: int
    draws: int
    risks: int
    marks: int
    marks_tested: int
    unchanged: int | None
    opened: bool
    labels: bool
    files: int
    custom_loss: bool
    custom_mechanism: bool
    standings: bool
    finals: bool
    finals_rescored: bool
    board: bool
    names: bool
    only_gate: bool


def describe_checks(summary: CheckSummary) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two lists of sentences: what holds, and what could not be checked."""
    return tuple(_checked(summary)), tuple(_unchecked(summary))


def _checked(summary: CheckSummary) -> list[str]:
    entries = format_count(summary.entries, "entry", "entries")
    lines = [
        f"The chain is complete: {entries}, within the budget.",
        "Rules, loss and mechanism match their commitments, and so does every change of them.",
    ]
    if summary.opened:
        lines.append("The noise key and the secret side of every question match their commitments.")
    if summary.draws:
        lines.append(
            f"The noise of {format_count(summary.draws, 'question')} was drawn from the key."
        )
    lines += _recomputed(summary.releases, "release", "risk and noise")
    lines += _recomputed(summary.verdicts, "verdict", "the evidence")
    if summary.labels:
        lines.append("The labels match their commitment.")
    lines += _recomputed(summary.risks, "risk", "submissions and labels")
    lines += _recomputed(summary.marks_tested, "proven mark", "pairs of submissions")
    if summary.standings:
        lines.append("The standings at the close match the releases.")
    if summary.finals_rescored:
        lines.append("The final ranking was recomputed from submissions and private labels.")
    elif summary.finals:
        lines.append("The final ranking matches its commitment.")
    if summary.unchanged is not None:
        lines.append(
            f"Entries 0 to {summary.unchanged:,} are unchanged since the saved head or receipt."
        )
    return lines


def _recomputed(number: int, noun: str, source: str) -> list[str]:
    return [f"{_count_were(number, noun)} recomputed from {source}."] if number else []


def _count_were(number: int, noun: str) -> str:
    return f"{format_count(number, noun)} {'was' if number == 1 else 'were'}"


def _unchecked(summary: CheckSummary) -> list[str]:
    lines = _describe_rewrites(summary)
    if not summary.opened:
        hidden = "Noise, risks and releases stay"
        if summary.only_gate:
            hidden = "The evidence of looks stays"
        return [*lines, f"{hidden} secret until a bundle is made at the close."]
    if summary.custom_mechanism:
        lines.append("Noise and releases were not checked: the mechanism is a custom one.")
    elif summary.releases < summary.questions:
        lines.append(
            f"{_count_were(summary.questions - summary.releases, 'release')} not checked: the "
            "mechanism needs the losses of examples, so labels and submissions."
        )
    if not summary.labels:
        lines.append("The labels are not in the bundle.")
    if summary.labels and summary.custom_loss:
        lines.append(
            "Risks were not checked: the loss is a custom one; give it with --loss to check them."
        )
    elif summary.looks:
        lines.append("The evidence of looks was not checked: submissions are not in the bundle.")
    elif summary.risks < summary.questions:
        missing = "submissions" if summary.labels else "labels" if summary.files else "both"
        missing = missing.replace("both", "labels and submissions")
        lines.append(
            f"{_count_were(summary.questions - summary.risks, 'risk')} not checked: the {missing} "
            "are not in the bundle."
        )
    if summary.marks_tested < summary.marks:
        untested = _count_were(summary.marks - summary.marks_tested, "new best")
        where = "" if summary.board else ", and the bundle of a guard holds none"
        lines.append(
            f"Whether {untested} proven better was not tested: that takes submissions{where}."
        )
    return [*lines, *_describe_board_gaps(summary)] if summary.board else lines


def _describe_board_gaps(summary: CheckSummary) -> list[str]:
    lines = []
    if not summary.standings:
        lines.append("The standings were not checked: the last entry does not commit to them.")
    if summary.finals and not summary.finals_rescored:
        lines.append("The final ranking was compared only with its commitment.")
    elif summary.finals:
        lines.append("Which files each team selected for the final ranking was not checked.")
    elif not summary.labels:
        lines.append(
            "The bundle has no final ranking. Whether there should be one depends on the labels, "
            "which are not in the bundle."
        )
    if summary.names:
        lines.append(
            "The names of teams were not checked: the ledger commits to their ids, so that a name "
            "can be erased."
        )
    lines.append(
        "Times of submissions were not checked: only the server knows about deadlines and limits "
        "per day."
    )
    return lines


def _describe_rewrites(summary: CheckSummary) -> list[str]:
    """Return which part of the history may have been rewritten."""
    last = summary.entries - 1
    if summary.unchanged is None:
        saved = "a saved head or receipt (--head, --receipt)"
        return [f"A complete rewrite can only be detected with {saved}."]
    if summary.unchanged == last:
        return []
    entries = "The last entry"
    if summary.unchanged + 1 < last:
        entries = f"Entries {summary.unchanged + 1:,} to {last:,}"
    return [f"{entries} may have been rewritten: the saved head or receipt is older."]


class RankedTeam(NamedTuple):
    """A row of a ranking; baselines and teams without a number have no rank.

    ``display`` is the number in the board's metric, as its page shows it; None for standings by a
    custom loss that was not given. ``number`` is the same in a final ranking, and the released loss
    in standings.
    """

    rank: int | None
    team: str
    baseline: bool
    number: float | None
    display: float | None


@dataclass(frozen=True)
class VerificationResult:
    """The result of a verification in which nothing was wrong.

    Parameters
    ----------
    of
        What was checked: the bundle of a ``board`` or a ``guard``, or a public ``ledger``.
    book, entries, head
        The chain's id, its length, and the hash of its last entry.
    questions
        How many questions were answered.
    looks
        How many looks of a gate were answered; in a bundle all their verdicts were recomputed.
    releases, risks
        How many releases and risks were recomputed with the same result.
    closed
        Whether the ledger is closed.
    unchanged
        The last entry that is known to be unchanged; None without a saved head or receipt.
    commitment
        What the first entry commits to: labels, noise key and rules.
    standings, finals, disqualified
        The rankings that the closing entry commits to, None if the bundle has none; the ids of
        teams that are disqualified at the end of the ledger.
    names
        The teams' names by their ids, which nothing commits to. None if the rankings hold them.
    receipts
        For each receipt the number of its entry, and what that entry records, in losses.
    metric
        How a board or guard shows the losses in ``receipts`` and ``standings``; None if it is not
        known, or a guard shows losses.
    ranked_by, by_mean_rank
        The title of the metric in a board's ranking, and whether the mean of the ranks in several
        metrics decides instead.
    checked, unchecked
        Sentences: what holds, and what could not be checked.
    """

    of: str
    book: str
    entries: int
    head: str
    questions: int
    looks: int
    releases: int
    risks: int
    closed: bool
    unchanged: int | None
    commitment: str
    standings: list[dict[str, Any]] | None
    finals: dict[str, Any] | None
    names: dict[str, str] | None
    disqualified: frozenset[str]
    receipts: tuple[dict[str, Any], ...]
    metric: ShownMetric | None
    ranked_by: str | None
    by_mean_rank: bool
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]

    def __str__(self) -> str:
        if self.of == "ledger":
            end = "closed" if self.closed else "still open"
            return f"The ledger is intact: {format_count(self.entries, 'entry', 'entries')}, {end}."
        verified = []
        if self.questions or not self.looks:
            part = f"{self.releases:,} of " if self.releases < self.questions else ""
            verified.append(part + format_count(self.questions, "release"))
        if self.looks:
            verified.append(format_count(self.looks, "verdict"))
        return f"verified: {' and '.join(verified)}"

    @property
    def ranking(self) -> list[RankedTeam]:
        """The final ranking, or the standings if there is none, as the public sees them.

        Disqualified teams are left out and take no rank.
        """
        if self.finals is not None:
            rows = [
                (row["team"]["id"], row["team"]["name"], row["baseline"],
                 row.get("mean_rank", row["score"]), row["display"], row["display"])
                for row in self.finals["rows"]
            ]  # fmt: skip
        else:
            key = "rank" if self.by_mean_rank else "released"
            rows = [
                (row["team"], row["name"], row["baseline"], row[key], row["released"],
                 None if self.metric is None else self.metric.value(row["released"]))
                for row in self.standings or ()
            ]  # fmt: skip
        names = self.names or {}
        shown = [row for row in rows if row[0] not in self.disqualified]
        shown.sort(key=lambda row: (row[3] is None, row[3] or 0))
        keys = sorted(row[3] for row in shown if not row[2] and row[3] is not None)
        return [
            RankedTeam(
                None if baseline or key is None else 1 + bisect_left(keys, key),
                names.get(team, name), baseline, number, display,
            )
            for team, name, baseline, key, number, display in shown
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
            "looks": self.looks,
            "releases": self.releases,
            "risks": self.risks,
            "closed": self.closed,
            "unchanged": self.unchanged,
            "commitment": self.commitment,
            "standings": self.standings,
            "finals": self.finals,
            "names": self.names,
            "metric": None if self.metric is None else self.metric._asdict(),
            "ranked_by": self.ranked_by,
            "by_mean_rank": self.by_mean_rank,
            "ranking": [row._asdict() for row in self.ranking],
            "disqualified": sorted(self.disqualified),
            "receipts": list(self.receipts),
            "checked": list(self.checked),
            "unchecked": list(self.unchecked),
        }
