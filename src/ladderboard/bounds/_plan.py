"""Plans: of examples, questions and error two are given, the third is found."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard._formatting import format_confidence, format_count, round_up, round_up_to
from ladderboard.bounds._alternatives import (
    ALTERNATIVES,
    MEASURED,
    NOT_PROMISED,
    SHAKY,
    SHAKY_MEASURED,
    SHAKY_TYPICAL,
    TYPICAL_CHANGES,
    WORST_CASE,
    ladder_after_changes,
)
from ladderboard.bounds._best_ladder import LadderRequirements, choose_ladder
from ladderboard.bounds._certificate import certificate, read_beta, read_count
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.bounds._alternatives import Alternative
    from ladderboard.bounds._certificate import Certificate
    from ladderboard.mechanisms import Ladder

LARGEST = 10**15
TRIVIAL_ERROR = 0.5  # every risk lies within this of 0.5

_TABLE_HEADS = {"n": "examples", "questions": "questions", "error": "error"}
_CHANGES = (3, 5, 10)


def smallest_sufficient(does: Callable[[int], bool]) -> int | None:
    """Return the least number that will do, if all above it will too; None beyond 10^15.

    >>> smallest_sufficient(lambda x: x * x >= 50)
    8
    """
    high = 1
    while not does(high):
        if high == LARGEST:
            return None
        high = min(2 * high, LARGEST)
    return _bisect(does, high, high // 2)


def largest_sufficient(does: Callable[[int], bool], first: int = 1) -> int:
    """Return the largest number that will do, if all from the first to it will too; 0 if none.

    10^15 at most.

    >>> largest_sufficient(lambda x: x * x <= 50)
    7
    """
    if does(LARGEST):
        return LARGEST
    if not does(first):
        return 0
    low, high = first, min(2 * first, LARGEST)
    while does(high):
        low, high = high, min(2 * high, LARGEST)
    return _bisect(does, low, high)


def _bisect(does: Callable[[int], bool], good: int, bad: int) -> int:
    """Return the last number that will do on the way from one that does to one that does not."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if does(middle) else (good, middle)
    return good


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
class PlanRequest:
    """Two of three numbers, and beta."""

    n: int | None
    questions: int | None
    error: float | None
    beta: float

    @classmethod
    def read(cls, n: Any, questions: Any, error: Any, beta: Any) -> PlanRequest:
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
            None
            if error is None
            else _settings.number("error", error, above=0, below=TRIVIAL_ERROR),
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
            return smallest_sufficient(lambda n: way.achieves(n, k, beta, error))
        if n is not None and k is None and error is not None:
            return largest_sufficient(
                lambda k: way.achieves(n, k, beta, error), way.first_question(n, beta)
            )
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
                status, sentence = NOT_PROMISED, f"{sentence}; {self._why_not(way)}"
            elif not way.monotone:
                sentence = f"{sentence}; about, as its settings go by n and questions"
            elif self.n is not None and way.first_question(self.n, self.beta) > 1:
                first = way.first_question(self.n, self.beta)
                sentence = f"{sentence}; for fewer than {first} questions its conditions fail"
        elif found is None:
            status, sentence = (
                NOT_PROMISED,
                way.why_missing(self.n or 0, self.questions or 0, self.beta),
            )
        elif found >= TRIVIAL_ERROR and status != MEASURED:
            status, sentence = NOT_PROMISED, f"{sentence}; {TRIVIAL_ERROR:g} is known without data"
        return PlanRow(way.name, found, status, sentence, beyond)

    def _why_not(self, way: Alternative) -> str:
        """Return why no number was found."""
        if self.n is None:
            return "no n up to 10^15 has this error"
        first = way.first_question(self.n, self.beta)
        error = way.error(self.n, first, self.beta)
        if not math.isfinite(error):
            return way.why_missing(self.n, first, self.beta)
        asked = "one question has" if first == 1 else f"{first} questions have"
        return f"{asked} an error of {round_up(error, 3)}"


def answer_sentence(plan: Plan) -> str:
    """Return the answer in a sentence or two."""
    questions = format_count(plan.questions, "question")
    if plan.n is None:
        return f"{questions} with an error of {plan.error} would need more than 10^15 examples."
    examples = format_count(plan.n, "example")
    if plan.mechanism is None:
        return (
            f"An error of {plan.error} cannot be promised with {examples} for even one "
            f"question{_enough_for_one(plan)}."
        )
    if plan.asked_for == "error":
        error = round_up_to(plan.error, _decimals(plan.error))
        if not plan.promised:
            return (
                f"Nothing can be promised beforehand about {questions} on {examples}: "
                f"an error of {error} says no more than 0.5, which is known without data."
            )
    else:
        error = f"{plan.error}"
    if plan.asked_for == "n":
        said = f"{questions} with an error of at most {error} need {examples}."
    else:
        more = " or more" if plan.beyond else ""
        said = f"{examples} answer {questions}{more} with an error of at most {error}."
    return (
        f"{said} Promised beforehand with probability {format_confidence(plan.beta)}, "
        f"whatever is asked, by {plan.mechanism}."
    )


def default_mechanism_sentence(plan: Plan) -> str:
    """Say the same for the mechanism that guards and boards use, promise by promise."""
    rows = {row.name: row for row in plan.rows}
    worst, typical, measured = (
        _format_result(plan, rows.get(each)) for each in (SHAKY, SHAKY_TYPICAL, SHAKY_MEASURED)
    )
    wanted = {"error": "error", "questions": "questions", "n": "examples"}[plan.asked_for]
    said = (
        f"{wanted.capitalize()} with the default mechanism, a calibrated Shaky Ladder: {worst} "
        f"promised whatever is asked; {typical} promised if the board changes at most "
        f"{TYPICAL_CHANGES} times, as `board check` supposes of one ladder"
    )
    if measured is not None:
        said += f"; {measured} measured on average in games against attackers, not promised"
    if plan.asked_for == "questions" and plan.n is not None:
        said += f". What 1,000 questions cost: plan with n={plan.n} and questions=1000"
    return f"{said}."


def _format_result(plan: Plan, row: PlanRow | None) -> str | None:
    if row is None or (row.found is None and not row.beyond):
        return None
    if plan.asked_for == "error":
        assert row.found is not None  # noqa: S101 - errors have no end of a search
        return (
            round_up_to(row.found, 2 if row.found > 0.1 else 3)
            if row.found < TRIVIAL_ERROR
            else "nothing"
        )
    return "more than 10^15" if row.found is None else f"{int(row.found):,}"


def table_rows(plan: Plan) -> list[tuple[str, ...]]:
    """Return the table, heads first: name, what was found, status, sentence."""
    errors = plan.asked_for == "error"
    decimals = max(_decimals(row.found) for row in plan.rows if row.found) if errors else 0

    def shown(found: float | None, beyond: bool) -> str:
        if errors:
            return "-" if found is None else round_up_to(found, decimals)
        if found is None:
            return "> 10^15"
        return "10^15 or more" if beyond else f"{found:,}"

    rows = [(row.name, shown(row.found, row.beyond), row.status, row.sentence) for row in plan.rows]
    return [("", _TABLE_HEADS[plan.asked_for], "", ""), *rows]


def _decimals(value: float) -> int:
    """Return how many decimals show three digits, and at least four; a promise is below 0.5."""
    decimals = max(4, 2 - math.floor(math.log10(value)))
    while value < TRIVIAL_ERROR <= float(round_up_to(value, decimals)):
        decimals += 1
    return decimals


def _enough_for_one(plan: Plan) -> str:
    job = LadderRequirements(1, plan.beta)
    needed = smallest_sufficient(
        lambda n: choose_ladder(n, job, enough=plan.error)[0] <= plan.error
    )
    return "" if needed is None else f"; that needs {format_count(needed, 'example')}"


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
        return self.mechanism is not None and self.error < TRIVIAL_ERROR

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return answer_sentence(self)

    @property
    def default(self) -> str:
        """The same for the mechanism that guards and boards use, in words."""
        return default_mechanism_sentence(self)

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
        return table_rows(self)

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
    asked = PlanRequest.read(n, questions, error, beta)
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
        ladder = choose_ladder(int(size), LadderRequirements(int(allowed), asked.beta))[1]
        found = certificate(int(size), int(allowed), None, ladder, asked.beta)
    same = () if ladder is None else tuple(ladder_after_changes(b, ladder) for b in _CHANGES)
    others = map(asked.row, (*same, *ALTERNATIVES))
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
