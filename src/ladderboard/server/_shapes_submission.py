"""The shapes of what is said about submissions."""

from typing import Annotated, Literal

from pydantic import Field

from ladderboard.server._shapes import (
    Bound,
    DisplayedReply,
    Id,
    Limit,
    Loss,
    Metric,
    Moment,
    Shape,
    Shown,
    TeamName,
)

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Receipt(Shape):
    """What proves that a question was answered: it opens one's own part of an entry."""

    format: Literal[1]
    book: Id
    entry: int | None
    hash: Hash
    submission: Hash
    salt: Hash


class SubmissionReply(Shape):
    """The answer to a submission."""

    id: Id
    number: int
    time: Moment
    entry: int | None
    team: TeamName
    released: Metric
    loss: Loss
    improved: bool
    question: int
    remaining: int
    limit: str
    limits: list[Limit]
    next_submission_at: Moment | None
    bound: Bound | None
    reason: str
    score: Metric
    score_loss: Loss
    ladder: Literal["team", "board"]
    again: bool
    receipt: Receipt
    display: DisplayedReply


class Submission(Shape):
    """A submission, as it was answered."""

    id: Id
    number: int
    entry: int | None
    time: Moment
    message: Annotated[str, Field(description="Untrusted text.")]
    size: Annotated[int | None, Field(description="Bytes that are kept of it.")]
    selected: bool
    epoch: int
    released: Metric
    loss: Loss
    score: Metric
    score_loss: Loss
    improved: bool
    question: int
    display: Shown


class OneSubmission(Submission):
    """A submission with its receipt, which is null to a team whose scores evaluators hand in."""

    receipt: Receipt | None


class SubmissionList(Shape):
    """Submissions, newest first; ``next`` is the ``before`` of the next page."""

    submissions: list[Submission]
    next: int | None
