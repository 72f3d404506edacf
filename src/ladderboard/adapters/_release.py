"""What a bridge publishes on another leaderboard: a reply's release, and nothing else."""

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
from ladderboard.holdout import format_remaining

if TYPE_CHECKING:
    from ladderboard.client import BoardInfo
    from ladderboard.holdout import Reply

RELEASE_FIELDS = ("released", "improved", "remaining")
"""The published numbers, by name."""
# Errors that participants can fix or must know about; their messages are written for participants.
# All others go to the organiser.
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
    """The release of a reply; prints as one sentence.

    The reply's own sentence is not used: it may include this model's score. The past tense keeps
    the sentence true when the same predictions are submitted again.

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
        """Return the public part of a reply."""
        return cls(reply.loss, reply.improved, reply.remaining)

    def numbers(self) -> dict[str, float]:
        """Return the numbers by name, without ``released`` if the mechanism withholds it."""
        released = {} if self.released is None else {"released": float(self.released)}
        return {**released, "improved": int(self.improved), "remaining": int(self.remaining)}

    def __str__(self) -> str:
        if self.released is None:
            moved = (
                "improved; its value is published at the close"
                if self.improved
                else "did not change"
            )
        else:
            moved = f"{'went down to' if self.improved else 'stayed'} {self.released:.6g}"
        return f"With this question the best {moved}; {format_remaining(self.remaining)}."


class UnsupportedTarget(InvalidSetting):
    """A guard or a board that a bridge cannot use; the message repeats no address or setting."""


def check_bridge_board(board: BoardInfo) -> None:
    """Refuse a board of scores, and one whose releases are not public team by team."""
    if board.ladder != "team" or board.visibility in {"hidden", "frozen"}:
        raise UnsupportedTarget(
            "A bridge needs a board with ladder: team that is neither hidden nor frozen; "
            f"got ladder {board.ladder}, visibility {board.visibility}."
        )
    check_takes_predictions(board.takes)


def check_takes_predictions(takes: str) -> None:
    """Refuse a guard or a board of scores: participants would score themselves."""
    if takes != "predictions":
        raise UnsupportedTarget(
            "This guard or board takes scores, so participants would score themselves. Use one "
            "that takes predictions."
        )


def check_ladders(ladders: int, teams: int) -> None:
    """Refuse a guard with fewer ladders than teams."""
    if ladders < teams:
        raise UnsupportedTarget(
            f"Every team needs its own ladder: at least {teams} ladders, and this guard has "
            f"{ladders}. Create one with a ladder for each team: "
            f"ladderboard guard create FILE --ladders {teams}"
        )


def participant_message(error: LadderboardError) -> str | None:
    """Return the message for participants; None if the error is for the organiser."""
    return str(error) if isinstance(error, _PARTICIPANT_ERRORS) else None
