"""What a team hears about a submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.board._rules import displayed, metric_of, moment, tell_bound

if TYPE_CHECKING:
    from ladderboard.board._limits import Left
    from ladderboard.board._rules import Rules
    from ladderboard.bounds import Certificate
    from ladderboard.ledger import Receipt
    from ladderboard.mechanisms import Release

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer:
    """The answer to one submission: what a guard's reply says, and what is left for the team.

    Parameters
    ----------
    id, number, time, entry
        The submission's: its id, its number within the team, when it was answered, and the number
        of its entry in the ledger; None where that would tell how often others asked.
    team, name
        The team's id and name.
    release, again
        What was said, and whether it had been said before.
    bound
        The certificate for the best on this ladder; None where it would tell of others.
    best
        The loss of that best, which is not the released one where an earlier answer is repeated.
    left
        The team's limits.
    reason
        All of it in one sentence.
    receipt
        What the team keeps to prove that it was answered.
    """

    id: str
    number: int
    time: int
    entry: int | None
    team: str
    name: str
    release: Release
    again: bool
    bound: Certificate | None
    best: float | None
    left: Left
    reason: str
    rules: Rules
    receipt: Receipt

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able, in the board's metric; ``loss`` is that of ``released``."""
        release, shown = self.release, self.rules.display
        following = self.left.next
        return {
            "id": self.id,
            "number": self.number,
            "time": moment(self.time),
            "entry": self.entry,
            "team": {"id": self.team, "name": self.name},
            "released": metric_of(shown, release.value),
            "loss": release.value,
            "improved": release.improved,
            "question": release.question,
            "remaining": self.left.tightest.remaining,
            "limit": self.left.tightest.name,
            "limits": [each.describe() for each in self.left.limits],
            "next_submission_at": None if following is None else moment(following),
            "bound": None if self.bound is None else tell_bound(shown, self.bound, self.best),
            "reason": self.reason,
            "score": metric_of(shown, release.score),
            "score_loss": release.score,
            "ladder": self.rules.ladder,
            "again": self.again,
            "receipt": self.receipt.describe(),
            "display": {
                **shown.describe(),
                "released": displayed(shown, release.value),
                "score": displayed(shown, release.score),
            },
        }
