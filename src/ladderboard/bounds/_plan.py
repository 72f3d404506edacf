"""Plans: of examples, questions and error two are given, the third is found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.bounds._alternatives import OTHERS, WORST_CASE, after
from ladderboard.bounds._asked import KNOWN, Asked, PlanRow
from ladderboard.bounds._certify import certificate
from ladderboard.bounds._choice import Job, choose
from ladderboard.bounds._plan_words import answer, cells, default

if TYPE_CHECKING:
    from ladderboard.bounds._certificate import Certificate
    from ladderboard.mechanisms import Ladder

__all__ = ["Plan", "plan"]

_CHANGES = (3, 5, 10)


@dataclass(frozen=True)
class Plan:
    """How many examples, how many questions, which error: two were given, one was found.

    Parameters
    ----------
    asked_for
        Which was found: "n", "questions" or "error".
    n
        Examples in the holdout; None if more than 10^15 are needed.
    questions
        How many questions can be asked; 0 if the error cannot be promised even for one.
    error
        The leaderboard error: how far at most the released value is from the best true risk so far.
    beta
        The probability with which the promise may fail.
    mechanism
        The Ladder that keeps the promise; None where there is none.
    certificate
        Its certificate, worst case before the data.
    rows
        What the alternatives would cost for the same job; the first is the answer.
    beyond
        Whether the search ended at 10^15: no n up to there will do, or so many questions will.
    """

    asked_for: str
    n: int | None
    questions: int
    error: float
    beta: float
    mechanism: Ladder | None
    certificate: Certificate | None
    rows: tuple[PlanRow, ...]
    beyond: bool = False

    @property
    def promised(self) -> bool:
        """Whether there is a promise, and it says more than is known without data."""
        return self.mechanism is not None and self.error < KNOWN

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return answer(self)

    @property
    def default(self) -> str:
        """The same for the mechanism that guards and boards use, in words."""
        return default(self)

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        ladder, found = self.mechanism, self.certificate
        return {
            "asked_for": self.asked_for,
            "n": self.n,
            "questions": self.questions,
            "error": self.error,
            "beta": self.beta,
            "promised": self.promised,
            "beyond": self.beyond,
            "sentence": self.sentence,
            "default": self.default,
            "mechanism": None if ladder is None else ladder.describe(),
            "certificate": None if found is None else found.describe(),
            "rows": [asdict(row) for row in self.rows],
        }

    def table(self) -> list[tuple[str, ...]]:
        """Return the rows as they are printed, heads first: name, found, status, sentence."""
        return cells(self)

    def __str__(self) -> str:
        table = self.table()
        widths = [max(map(len, column)) for column in list(zip(*table, strict=True))[:3]]
        name, found, status = widths
        lines = [
            f"  {row[0]:<{name}}  {row[1]:>{found}}  {row[2]:<{status}}  {row[3]}" for row in table
        ]
        return "\n".join([self.sentence, self.default, "", *lines])


def plan(
    n: int | None = None,
    questions: int | None = None,
    error: float | None = None,
    beta: float = 0.05,
) -> Plan:
    """Return how many examples, how many questions or which error: give two, get the third.

    The answer is the worst case before the data of the Ladder that promises most. With probability
    at least 1 - beta its released value is within ``error`` of the best true risk so far, at all
    times, whatever is asked.

    Parameters
    ----------
    n
        Examples in the holdout.
    questions
        How many questions are allowed.
    error
        The leaderboard error, below 0.5: every risk is within 0.5 of 0.5.
    beta
        The probability with which the promise may fail.

    Examples
    --------
    >>> round(plan(n=10_000, questions=1_000).error, 3)
    0.099
    >>> plan(questions=1_000, error=0.05).n
    63891
    >>> plan(n=10_000, error=0.1).questions
    1173
    """
    asked = Asked.read(n, questions, error, beta)
    first = asked.row(WORST_CASE)
    assert first is not None  # noqa: S101 - it is computed, not measured
    # What was found stands where nothing was given.
    size = first.found if asked.n is None else asked.n
    allowed = first.found if asked.questions is None else asked.questions
    width = first.found if asked.error is None else asked.error
    assert allowed is not None  # noqa: S101 - the most questions are a number, if only 0
    assert width is not None  # noqa: S101 - a Ladder always has an error
    ladder = found = None
    if size is not None and allowed:
        ladder = choose(int(size), Job(int(allowed), asked.beta))[1]
        found = certificate(int(size), int(allowed), None, ladder, asked.beta)
    same = () if ladder is None else tuple(after(b, ladder) for b in _CHANGES)
    others = map(asked.row, (*same, *OTHERS))
    return Plan(
        asked_for=asked.what,
        n=None if size is None else int(size),
        questions=int(allowed),
        error=width,
        beta=asked.beta,
        mechanism=ladder,
        certificate=found,
        rows=(first, *(row for row in others if row is not None)),
        beyond=first.beyond,
    )
