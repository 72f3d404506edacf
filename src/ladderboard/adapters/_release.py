"""What a bridge tells another leaderboard: the release of a reply, and nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ladderboard.errors import (
    BudgetSpent,
    InvalidPredictions,
    InvalidSetting,
    LadderboardError,
    NotOpen,
    QuotaExceeded,
    RateLimited,
    SessionClosed,
)
from ladderboard.holdout import left

if TYPE_CHECKING:
    from ladderboard.client import BoardInfo
    from ladderboard.holdout import Reply

RELEASE_FIELDS = ("released", "improved", "remaining")
"""The numbers that are told, by name."""
# What participants can do something about, or must know; its words are made for them. All else is
# the organiser's matter.
_PARTICIPANT_ERRORS = (
    InvalidPredictions,
    BudgetSpent,
    SessionClosed,
    NotOpen,
    RateLimited,
    QuotaExceeded,
)


@dataclass(frozen=True)
class PublishedRelease:
    """The release; prints as one sentence.

    The sentence is not the reply's own, which may tell what a mechanism says about this very
    model. It is in the past tense, so that it is true again when the same is asked once more.

    Examples
    --------
    >>> print(PublishedRelease(0.2, True, 99))
    With this question the best went down to 0.2; 99 questions left.
    >>> PublishedRelease(0.2, True, 99).numbers()
    {'released': 0.2, 'improved': 1, 'remaining': 99}
    """

    released: float | None
    improved: bool
    remaining: int

    @classmethod
    def from_reply(cls, reply: Reply) -> PublishedRelease:
        """Return what of a reply may be told."""
        return cls(reply.loss, reply.improved, reply.remaining)

    def numbers(self) -> dict[str, float]:
        """Return the numbers by name; without the first where it is told at the close only."""
        told = {} if self.released is None else {"released": float(self.released)}
        return {**told, "improved": int(self.improved), "remaining": int(self.remaining)}

    def __str__(self) -> str:
        if self.released is None:
            moved = "improved; its value is told at the close" if self.improved else "did not move"
        else:
            moved = f"{'went down to' if self.improved else 'stayed'} {self.released:.6g}"
        return f"With this question the best {moved}; {left(self.remaining)}."


class UnsupportedTarget(InvalidSetting):
    """A guard or a board is not for a bridge; the sentence repeats no address or other setting."""


def check_bridge_board(about: BoardInfo) -> None:
    """Refuse a board of scores, or whose releases are not for rows that everybody sees."""
    if about.ladder != "team" or about.visibility in {"hidden", "frozen"}:
        raise UnsupportedTarget(
            "A bridge needs a board with ladder: team that is neither hidden nor frozen; "
            f"got ladder {about.ladder}, visibility {about.visibility}."
        )
    check_takes_predictions(about.takes)


def check_takes_predictions(takes: str) -> None:
    """Refuse a guard or a board of scores: whoever comes over a bridge would score itself."""
    if takes != "predictions":
        raise UnsupportedTarget(
            "What is asked here takes scores, and those who submit would score themselves. Scores "
            "are handed in by whoever evaluates; here it needs a guard or a board that takes "
            "predictions."
        )


def check_ladders(ladders: int, teams: int) -> None:
    """Refuse a guard that has fewer ladders than there are teams."""
    if ladders < teams:
        raise UnsupportedTarget(
            f"Every team has a ladder of its own, so this needs a guard with {teams} ladders or "
            f"more; this one has {ladders}. Make one with as many as there may be teams: "
            f"ladderboard guard create FILE --ladders {teams}"
        )


def participant_message(error: LadderboardError) -> str | None:
    """Return what to say to those who submitted; None where it is the organiser's matter."""
    return str(error) if isinstance(error, _PARTICIPANT_ERRORS) else None
