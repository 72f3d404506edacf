"""The answer to a submission."""

from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any

from ladderboard.bounds import Certificate
from ladderboard.client._replies import Display, Limit, TeamName
from ladderboard.holdout import Reply

__all__ = ["DisplayedReply", "Submitted"]


@dataclass(frozen=True)
class DisplayedReply(Display):
    """How losses are shown, with those of a reply."""

    released: float | None
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Submitted(Reply):
    """The answer to a submission: a guard's reply, and what a board adds; prints as one sentence.

    ``bound`` is the certificate for the best on this ladder, None where it would tell of others.
    ``ladder`` says whose it is, ``team`` or ``board``. ``remaining`` is what is left of the
    tightest of ``limits``, which is ``limit``; ``next_submission_at`` is None where no question
    will ever be left. ``said`` is all of it, as it came.
    """

    score: float | None = field()  # a board says all of these
    ladder: str = field()
    again: bool = field()
    id: str
    number: int
    time: datetime
    entry: int | None
    team: TeamName
    limit: str
    limits: tuple[Limit, ...]
    next_submission_at: datetime | None
    # A guard that is no board's always tells, and makes it when it is looked at.
    bound: Certificate | None = field()  # type: ignore[assignment]
    display: DisplayedReply
    said: dict[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.reason

    def describe(self) -> dict[str, Any]:
        """Return everything that the server said, JSON-able."""
        return self.said

    def _repr_html_(self) -> str:
        """Show the sentence, and the interval where there is one, in a notebook."""
        if self.bound is not None:
            return super()._repr_html_()
        told = "Improved" if self.improved else "Not improved"
        return f"<p><b>{told}.</b> {escape(self.reason)}</p>"
