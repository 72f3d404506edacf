"""The answer to a submission."""

from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any

from ladderboard.client._replies import Bound, Display, Limit, TeamName
from ladderboard.holdout import Reply

__all__ = ["DisplayedReply", "Submitted"]

_WORST = 1.0  # what stands on a ladder before anything was seen
_DIGITS = 15


@dataclass(frozen=True)
class DisplayedReply(Display):
    """How losses are shown, with those of a reply."""

    released: float | None
    score: float | None

    def __post_init__(self) -> None:
        # It is part of a sentence, which a terminal might obey.
        if not (self.name.isprintable() and 0 <= self.digits <= _DIGITS):
            raise ValueError("a server of ours shows losses in another way")

    def text(self, value: float | None) -> str:
        """Return a number as people are told it, with its name."""
        return "-" if value is None else f"{self.name} {value:.{self.digits}f}"


@dataclass(frozen=True, kw_only=True)
class Submitted(Reply):
    """The answer to a submission: a guard's reply, and what a board adds; prints as one sentence.

    ``released``, ``score`` and ``bound`` are in the board's metric; ``loss`` and ``score_loss`` are
    the losses behind them. ``bound`` is about the best on this ladder, None where it would tell of
    others.
    ``ladder`` says whose it is, ``team`` or ``board``. ``remaining`` is what is left of the
    tightest of ``limits``, which is ``limit``; ``next_submission_at`` is None where no question
    will ever be left. ``receipt`` is what proves later that it was answered. ``said`` is all
    of it, as it came.
    """

    score: float | None = field()  # a board says all of these
    loss: float | None = field()
    score_loss: float | None = field()
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
    bound: Bound | None = field()  # type: ignore[assignment]
    display: DisplayedReply
    receipt: dict[str, Any] = field(repr=False)
    said: dict[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{_told(self)}; {_left(self)}."

    def describe(self) -> dict[str, Any]:
        """Return everything that the server said, JSON-able."""
        return self.said

    def _repr_html_(self) -> str:
        """Show the sentence, and the interval where there is one, in a notebook."""
        told = "Improved" if self.improved else "Not improved"
        bound = "" if self.bound is None else f"<p>{escape(str(self.bound))}</p>"
        return f"<p><b>{told}.</b> {escape(str(self))}</p>{bound}"


def _told(said: Submitted) -> str:
    """Return what was said of the best, and of this model where the mechanism says that too.

    It is never said that a model is no better: only that it was not seen to be.
    """
    best = _then(said) if said.again else _now(said)
    if said.score is not None and said.score != said.released:
        this = "then this" if said.again else "this"
        score = said.display.text(said.display.score)
        best = f"{this} model was put at {score}; {best}"
    if said.again:
        return (
            f"The same predictions were answered before, as submission {said.number}, and nothing "
            f"was counted; {best}"
        )
    return f"{best[0].upper()}{best[1:]}"


def _now(said: Submitted) -> str:
    whose, value = _whose(said), said.display.text(said.display.released)
    if said.improved:
        best = "a new best" if said.ladder == "team" else "a new best of the whole board"
        return f"{best}; its value is not told now" if said.released is None else f"{best}: {value}"
    if said.released is None:
        return f"{whose} stays what it was: this one was not seen to be better"
    if said.loss is not None and said.loss >= _WORST:
        return "there is no best yet: no gain large enough was seen"
    if said.score is not None:
        return f"{whose} stays {value}"
    return f"{whose} stays {value}: this one was not seen to be better"


def _then(said: Submitted) -> str:
    if said.released is None:
        return f"then {_whose(said)} {'improved' if said.improved else 'stayed what it was'}"
    if said.loss is not None and said.loss >= _WORST and not said.improved:
        return "then there was no best yet"
    verb = "became" if said.improved else "stayed"
    return f"then {_whose(said)} {verb} {said.display.text(said.display.released)}"


def _whose(said: Submitted) -> str:
    return "your best" if said.ladder == "team" else "the best of the whole board"


def _left(said: Submitted) -> str:
    """Return how many questions are left, and when the next may come if not now."""
    lasting = [each.remaining for each in said.limits if each.name != "window"]
    rest, following = min(lasting, default=said.remaining), said.next_submission_at
    if not rest:
        hidden = "your share is used up; whether others left any over is not shown"
        return "no questions left" if following is None else hidden
    told = f"{rest:,} question{'' if rest == 1 else 's'} left"
    if said.remaining >= rest:
        return told
    if said.remaining:
        return f"{told}, {said.remaining} of them now"
    return told + (
        ", none of them now" if following is None else f"; the next at {_time(following)}"
    )


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
