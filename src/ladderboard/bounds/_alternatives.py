"""Alternatives: ways to answer the same questions, and the error of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.bounds._best_ladder import (
    LadderRequirements,
    choose_ladder,
    ladder_error,
    nonadaptive_error,
)
from ladderboard.bounds._certify import certificate
from ladderboard.bounds._paper import paper
from ladderboard.mechanisms import Exact, GrowingLadder, Setup, calibrated_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.mechanisms import Ladder, Mechanism

PROMISED, PROMISED_IF, MEASURED, NOT_PROMISED = (
    "promised",
    "promised if",
    "measured",
    "not promised",
)
# A small number of visible changes.
FEW_CHANGES = 5
# A typical number of visible changes on one ladder; ``board check`` assumes it.
TYPICAL_CHANGES = 8
_CHANGES_PER_LADDER = 3  # on each of several
DEFAULT = f"growing ladder, after {TYPICAL_CHANGES} changes"
# Settings of the certificates of guards and of boards with one ladder.
_GUARD_SETTINGS: dict[str, Any] = {"ladders": 1, "opened": 1, "amendable": True}
# If the paper's theorem covers any number of questions, it covers one below this.
_MAX_FIRST_QUESTION = 65


def typical_changes(ladders: int, questions: int) -> int:
    """Return how many visible changes a board with this many ladders usually has.

    >>> typical_changes(1, 1_000), typical_changes(20, 1_000), typical_changes(20, 5)
    (8, 60, 5)
    """
    return min(TYPICAL_CHANGES if ladders == 1 else _CHANGES_PER_LADDER * ladders, questions)


@dataclass(frozen=True)
class Alternative:
    """One way to answer, and its error.

    Parameters
    ----------
    name
        Its name in tables and figures.
    status
        "promised", "promised if" what the sentence says, or "measured".
    sentence
        What it is.
    error
        Its error for n examples, k questions and beta; infinite if there is none.
    reaches
        Whether that error is at most the last argument, if that is faster than computing it.
    why_missing
        Why there is no error.
    monotone
        Whether more examples are never worse, and more questions, from the first on, never better;
        otherwise a search finds one of several boundaries.
    invertible
        Whether n and questions are searched for; otherwise only the error is computed.
    first_question
        The smallest supported number of questions, given n and beta.
    """

    name: str
    status: str
    sentence: str
    error: Callable[[int, int, float], float]
    reaches: Callable[[int, int, float, float], bool] | None = None
    why_missing: Callable[[int, int, float], str] = lambda *_: "nothing is promised"
    monotone: bool = True
    invertible: bool = True
    first_question: Callable[[int, float], int] = lambda *_: 1

    def achieves(self, n: int, questions: int, beta: float, error: float) -> bool:
        """Return whether its error is at most ``error``."""
        if self.reaches is not None:
            return self.reaches(n, questions, beta, error)
        return self.error(n, questions, beta) <= error


def _best_ladder_alternative(
    name: str, status: str, sentence: str, changes: int | None
) -> Alternative:
    """Return the best Ladder for each n, number of questions and beta."""

    def error(n: int, questions: int, beta: float) -> float:
        return choose_ladder(n, LadderRequirements(questions, beta, changes))[0]

    def reaches(n: int, questions: int, beta: float, target: float) -> bool:
        return (
            choose_ladder(n, LadderRequirements(questions, beta, changes), enough=target)[0]
            <= target
        )

    return Alternative(name, status, sentence, error, reaches)


def ladder_after_changes(changes: int, ladder: Ladder | None = None) -> Alternative:
    """Return a Ladder after ``changes`` changes; by default the best one for the worst case."""

    def error(n: int, questions: int, beta: float) -> float:
        chosen = ladder or choose_ladder(n, LadderRequirements(questions, beta))[1]
        return ladder_error(n, chosen, LadderRequirements(questions, beta, changes))

    return Alternative(
        f"Ladder, after {changes} changes",
        PROMISED_IF,
        f"the same board, if it changes at most {changes} times",
        error,
    )


def _certified_error(
    n: int, questions: int, changes: int | None, mechanism: Mechanism, beta: float, **form: Any
) -> float:
    """Return the largest distance of the released value from the best true risk so far."""
    error = certificate(n, questions, changes, mechanism, beta, **form).error
    return math.inf if error is None else error


def _calibrated_typical(n: int, questions: int, beta: float) -> float:
    mechanism = GrowingLadder.calibrated(n, questions)
    transcript = mechanism.transcript(Setup(n, 0.0, 1.0))
    max_changes = TYPICAL_CHANGES if transcript is None else transcript.values.max_changes
    return _certified_error(
        n,
        questions,
        min(TYPICAL_CHANGES, questions, max_changes),
        mechanism,
        beta,
        **_GUARD_SETTINGS,
    )


def _shaky_measured(n: int, questions: int, _beta: float) -> float:
    settings = calibrated_settings(n, questions)
    return math.inf if settings.beyond else settings.error


def _exact(n: int, questions: int, beta: float) -> float:
    return _certified_error(n, questions, None, Exact(), beta)


def _paper(n: int, questions: int, beta: float) -> float:
    bound = paper(n, questions, beta)
    return bound.bound if bound.holds else math.inf


def _first_question_of_paper(n: int, beta: float) -> int:
    """Return the smallest number of questions that the theorem covers; 1 if none up to 64.

    Its condition on n is stricter for small ln(k / beta): one question may be too few.
    """
    return next((k for k in range(1, _MAX_FIRST_QUESTION) if paper(n, k, beta).holds), 1)


def _split(n: int, questions: int, beta: float) -> float:
    part = n // questions
    return nonadaptive_error(part, questions, beta) if part else math.inf


WORST_CASE = _best_ladder_alternative(
    "Ladder", PROMISED, "worst case before the data, whatever is asked", None
)
ALTERNATIVES = (
    _best_ladder_alternative(
        f"Ladder made for {FEW_CHANGES} changes",
        PROMISED_IF,
        f"another grid, chosen for this, if the board changes at most {FEW_CHANGES} times",
        FEW_CHANGES,
    ),
    Alternative(
        DEFAULT,
        PROMISED_IF,
        f"calibrated, the default, if the board changes at most {TYPICAL_CHANGES} times",
        _calibrated_typical,
        monotone=False,
        invertible=False,
    ),
    Alternative(
        "Shaky Ladder, measured",
        MEASURED,
        "constant steps; mean error against the worst analyst of the arena, not a bound",
        _shaky_measured,
        monotone=False,
    ),
    Alternative(
        "exact scores",
        PROMISED_IF,
        "every score released, about k ln(n + 1) nats, if the loss is zero-one",
        _exact,
    ),
    Alternative(
        "the paper's settings",
        PROMISED_IF,
        "its theorem with the constants of its proof, if it holds as printed",
        _paper,
        why_missing=lambda *size: f"conditions fail: {'; '.join(paper(*size).conditions)}",
        first_question=_first_question_of_paper,
    ),
    Alternative(
        "splitting the data",
        PROMISED,
        "a fresh part of n/k examples for every question",
        _split,
        why_missing=lambda *_: "there are fewer examples than questions",
    ),
    Alternative(
        "no peeking",
        PROMISED_IF,
        "the floor in the Hoeffding form, if all models are chosen before the first answer",
        nonadaptive_error,
    ),
)
