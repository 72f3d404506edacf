"""Warnings: what may be meant, and seldom is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.board._check_enough import would_do
from ladderboard.board._rules import moment
from ladderboard.holdout import UNDECLARED
from ladderboard.mechanisms import Calibrated, OneBit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board._check_promise import Promise
    from ladderboard.board._folder import BoardFolder

__all__ = ["warnings_about"]


def warnings_about(folder: BoardFolder, promise: Promise, now: float) -> Iterator[str]:
    """Tell what an organiser should know before others do, a sentence or two each."""
    rules = folder.rules
    if rules.registration == "open" and rules.ladder == "team":
        yield (
            "Registration is open and every team has a ladder of its own: accounts are answers. "
            "Whoever makes many is told many scores. Use ladder: board, or registration: invited."
        )
    if rules.per_team * rules.teams + rules.asked_baselines > rules.questions:
        yield (
            f"{rules.teams:,} teams with {rules.per_team:,} questions each are more than the "
            f"{rules.questions:,} there are: {rules.share:,} are reserved for each, and the "
            f"other {rules.pool:,} go to whoever asks first."
        )
    if promise.none:
        yield f"Nothing can be promised for {promise.mechanism.name}; leave mechanism out."
    elif promise.hollow:
        ways = would_do(folder)
        on = f"{promise.ladders:,} ladder{'s' * (promise.ladders > 1)}"
        yield (
            f"{promise.worth:,} independent examples are too few for {rules.questions:,} questions "
            f"on {on}: the promise says no more than is known without data. "
            + (
                f"It would say more with {', or '.join(ways)}."
                if ways
                else "Use more examples, fewer questions or fewer teams, or leave mechanism out."
            )
        )
    origin = getattr(promise.mechanism, "origin", None)
    if isinstance(origin, Calibrated) and origin.beyond:
        yield f"The mechanism's settings are {origin.note}: no board so hard was measured."
    if isinstance(promise.mechanism, OneBit):
        yield "one_bit tells no value before the close: standings show only who improved."
    yield from _undeclared(folder)
    if rules.deadline is not None and rules.deadline <= now:
        yield f"The deadline is past: {moment(rules.deadline)}. Nothing would be answered."
    if folder.sample is None:
        who = "participants" if rules.takes == "predictions" else "evaluators"
        yield f"There is no sample_submission.csv: {who} will have to guess the format."
    if not folder.private.any():
        yield (
            "No row is private: there is no final ranking on rows that nobody asked about. A "
            "column split with public and private would give one."
        )


def _undeclared(folder: BoardFolder) -> Iterator[str]:
    loss = folder.rules.loss
    if loss.accepts_any:
        declare = "Declare them, as in loss: {name: accuracy, classes: [cat, dog]}. "
        yield (
            f"No classes are declared. {UNDECLARED} "
            + (declare if loss.name == "zero_one" else "")
            + "Where they are unknown by design, that is what it costs."
        )
