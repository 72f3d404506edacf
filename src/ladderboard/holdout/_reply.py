"""Replies: the answer to a question, in numbers and as a sentence.

The sentences hold under noise, and reveal no more than the release does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from ladderboard._formatting import format_undetected_gains
from ladderboard.errors import InvalidState

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.bounds import Certificate
    from ladderboard.holdout._status import Meter
    from ladderboard.mechanisms import Release

UNDECLARED_CLASSES = (
    "Predictions outside the classes are accepted and count as wrong. The abstaining attack "
    "exploits this: it gains about 1.5 times as much as an attacker that knows half of the labels."
)
"""A warning about what undeclared classes allow."""


@dataclass(frozen=True)
class Reply:
    """The answer to a question; prints as one sentence.

    Parameters
    ----------
    released
        The estimate after the question, the best so far; None if it is published at the close only.
    improved
        Whether the estimate went down.
    question
        The question's number on its ladder, from 1.
    remaining
        How many questions are left, over all ladders.
    reason
        The answer as a sentence.
    score
        The released score of this model; None if there is none.
    ladder
        The ladder's name; empty for the first.
    again
        Whether the same predictions were asked before, so that this question is free.

    ``bound`` is the certificate for the best model asked so far on this ladder.
    """

    released: float | None
    improved: bool
    question: int
    remaining: int
    reason: str
    score: float | None = None
    ladder: str = ""
    again: bool = False
    certify: Callable[[], Certificate] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def bound(self) -> Certificate:
        """An interval for the best true risk so far, with its confidence and assumptions."""
        if self.certify is None:
            raise InvalidState("This reply came without a certificate.")
        return self.certify()

    @cached_property
    def loss(self) -> float | None:
        """The loss of the released value: the same for a guard, while a board releases a metric."""
        return self.released

    def __str__(self) -> str:
        return self.reason

    def describe(self) -> dict[str, Any]:
        """Return all fields as JSON-able values."""
        bound = self.bound
        return {
            "released": self.released,
            "improved": self.improved,
            "question": self.question,
            "remaining": self.remaining,
            "bound": bound.describe(),
            "reason": self.reason,
            "score": self.score,
            "ladder": self.ladder,
            "again": self.again,
        }

    def _repr_html_(self) -> str:
        """Show the sentence and the interval in a notebook."""
        from ladderboard._formatting import round_outwards  # noqa: PLC0415 - a question need not wait

        parts = [f"<p><b>{'Improved' if self.improved else 'Not improved'}.</b> "]
        parts.append(f"{escape(str(self))}</p>")
        if not self.bound.differences:
            parts.append(
                f"<p>The true risk of the best model so far lies in "
                f"[{', '.join(round_outwards(self.bound.low, self.bound.high, 3))}] "
                f"with probability at least {1 - self.bound.beta:.0%}.</p>"
            )
        return "".join(parts)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the certificate instead of the function that computes it."""
        return {**self.__dict__, "bound": self.bound, "certify": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class ValueFormat(Protocol):
    """Formats values and gains for messages."""

    def text(self, loss: float | None) -> str:
        """Format a loss."""

    def gain_text(self, gain: float, best: float | None) -> str | None:
        """Format a gain in loss over the best so far; None if there is none."""


class LossFormat:
    """Formats losses without conversion."""

    def text(self, loss: float | None) -> str:
        """Format a loss."""
        return "-" if loss is None else f"{loss:.6g}"

    def gain_text(self, gain: float, best: float | None) -> str | None:
        """Format a gain."""
        return f"{gain:.2g}" if gain else None


def format_reply(
    release: Release,
    meter: Meter,
    *,
    again: bool,
    remaining: int | None = None,
    value_format: ValueFormat | None = None,
) -> str:
    """Return the sentences of a reply; in the past tense if it repeats an earlier answer.

    ``remaining`` is the number of questions left if a tighter limit than the meter's applies;
    ``value_format`` formats values and gains in the unit shown to people, losses if it is None.
    """
    value_format = LossFormat() if value_format is None else value_format
    sentences = []
    has_own_score = release.score is not None and release.score != release.value
    if has_own_score:
        sentences.append(f"This model's score: {value_format.text(release.score)}.")
    if again:
        sentences.insert(0, f"Duplicate of question {release.question}; not counted.")
        sentences.append(_describe_past_best(release, value_format))
    else:
        unchanged = not release.improved and not has_own_score
        if unchanged:
            sentences.append("No measurable improvement.")
        sentences += _describe_best(release, value_format)
        if unchanged:
            visible = meter.smallest_visible_gain(release.value)
            gain = value_format.gain_text(visible, release.value)
            sentences += [] if gain is None else [format_undetected_gains(gain)]
    left = format_remaining(meter.remaining if remaining is None else remaining)
    return f"{' '.join(sentences)} {left[0].upper()}{left[1:]}."


def _describe_best(release: Release, value_format: ValueFormat) -> list[str]:
    if release.value is None:
        return ["The best improved; its value is published at the close."] * release.improved
    verb = " is now" if release.improved else ":"
    return [f"The best{verb} {value_format.text(release.value)}."]


def _describe_past_best(release: Release, value_format: ValueFormat) -> str:
    if release.value is None:
        change = (
            "the best improved; its value is published at the close"
            if release.improved
            else "there was no measurable improvement"
        )
        return f"At that time {change}."
    verb = "became" if release.improved else "stayed"
    return f"At that time the best {verb} {value_format.text(release.value)}."


def format_remaining(remaining: int) -> str:
    """Return the number of questions left, as text."""
    return f"{remaining or 'no'} question{'' if remaining == 1 else 's'} left"
