"""Replies: what a guard says after a question."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.bounds import Certificate

__all__ = ["Reply"]


@dataclass(frozen=True)
class Reply:
    """What a guard says after a question; prints as one sentence.

    Parameters
    ----------
    released
        The estimate after the question, the best so far; None where it is told at the close only.
    improved
        Whether it went down.
    question
        The question's number on its ladder, from 1.
    remaining
        How many questions are left, over all ladders.
    reason
        Why the answer is what it is, in words.
    score
        What is said about this very model; None if nothing is.
    ladder
        The ladder's name; empty for the first.
    again
        Whether the same predictions had been asked before, so that nothing was spent.

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
        """Where the best true risk so far lies, with which confidence, on which assumptions."""
        assert self.certify is not None  # noqa: S101 - every guard gives it
        return self.certify()

    @cached_property
    def loss(self) -> float | None:
        """The loss of what was released: of a guard the same; a board releases its metric."""
        return self.released

    def __str__(self) -> str:
        return self.reason

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
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

        said = [f"<p><b>{'Improved' if self.improved else 'Not improved'}.</b> "]
        said.append(f"{escape(str(self))}</p>")
        if not self.bound.differences:
            said.append(
                f"<p>The true risk of the best model so far lies in "
                f"[{', '.join(round_outwards(self.bound.low, self.bound.high, 3))}] "
                f"with probability at least {1 - self.bound.beta:.0%}.</p>"
            )
        return "".join(said)

    def __getstate__(self) -> dict[str, Any]:
        """Take the certificate along instead of what makes it."""
        return {**self.__dict__, "bound": self.bound, "certify": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
