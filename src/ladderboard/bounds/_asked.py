"""What is asked of a plan, and what each way to answer makes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard._formatting import round_up
from ladderboard.bounds._alternatives import MEASURED, UNSURE
from ladderboard.bounds._certify import read_beta, read_count
from ladderboard.bounds._search import LARGEST, least, most
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.bounds._alternatives import Alternative

__all__ = ["KNOWN", "Asked", "PlanRow"]

KNOWN = 0.5  # every risk lies within this of 0.5


@dataclass(frozen=True)
class PlanRow:
    """What one way to answer would cost.

    Parameters
    ----------
    name
        Which way.
    found
        The error, or the least n, or the most questions; None where there is none.
    status
        "promised", "promised if" what the sentence says, "measured" or "not promised".
    sentence
        What it is, or why nothing is promised.
    beyond
        Whether the search ended at 10^15: no n up to there will do, or so many questions will.
    """

    name: str
    found: float | None
    status: str
    sentence: str
    beyond: bool = False


@dataclass(frozen=True)
class Asked:
    """Two of three numbers, and beta."""

    n: int | None
    questions: int | None
    error: float | None
    beta: float

    @classmethod
    def read(cls, n: Any, questions: Any, error: Any, beta: Any) -> Asked:
        """Read what a person gave; exactly two of the three."""
        given = {"n": n, "questions": questions, "error": error}
        names = [name for name, value in given.items() if value is not None]
        if len(names) != 2:
            raise InvalidSetting(
                "A plan needs two of n, questions and error, and finds the third; "
                f"got {', '.join(names) or 'none'}. Try n=10_000, questions=1_000."
            )
        return cls(
            None if n is None else read_count("n", n),
            None if questions is None else read_count("questions", questions),
            None if error is None else _settings.number("error", error, above=0, below=KNOWN),
            read_beta(beta),
        )

    @property
    def what(self) -> str:
        """The name of what is to be found."""
        return "n" if self.n is None else "questions" if self.questions is None else "error"

    def solve(self, way: Alternative) -> float | None:
        """Return what one way to answer needs or gives; None where there is none."""
        n, k, error, beta = self.n, self.questions, self.error, self.beta
        if n is None and k is not None and error is not None:
            return least(lambda n: way.will_do(n, k, beta, error))
        if n is not None and k is None and error is not None:
            return most(lambda k: way.will_do(n, k, beta, error), way.first(n, beta))
        assert n is not None  # noqa: S101 - two are given, and error is not
        assert k is not None  # noqa: S101 - same
        found = way.error(n, k, beta)
        return found if math.isfinite(found) else None

    def row(self, way: Alternative) -> PlanRow | None:
        """Return what one way to answer costs, in numbers and words; None if not measured."""
        found = self.solve(way)
        status, sentence, beyond = way.status, way.sentence, False
        if not found and status == MEASURED:
            return None
        if self.what != "error":
            beyond = found == (None if self.what == "n" else LARGEST)
            if not found:
                status, sentence = UNSURE, f"{sentence}; {self._why_not(way)}"
            elif not way.settled:
                sentence = f"{sentence}; about, as its settings go by n and questions"
            elif self.n is not None and way.first(self.n, self.beta) > 1:
                first = way.first(self.n, self.beta)
                sentence = f"{sentence}; for fewer than {first} questions its conditions fail"
        elif found is None:
            status, sentence = UNSURE, way.missing(self.n or 0, self.questions or 0, self.beta)
        elif found >= KNOWN and status != MEASURED:
            status, sentence = UNSURE, f"{sentence}; {KNOWN:g} is known without data"
        return PlanRow(way.name, found, status, sentence, beyond)

    def _why_not(self, way: Alternative) -> str:
        """Return why no number was found."""
        if self.n is None:
            return "no n up to 10^15 has this error"
        first = way.first(self.n, self.beta)
        error = way.error(self.n, first, self.beta)
        if not math.isfinite(error):
            return way.missing(self.n, first, self.beta)
        asked = "one question has" if first == 1 else f"{first} questions have"
        return f"{asked} an error of {round_up(error, 3)}"
