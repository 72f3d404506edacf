"""Plans: given two of examples, questions and error, find the third."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard._formatting import (
    format_confidence,
    format_count,
    format_digits,
    round_up,
    round_up_to,
)
from ladderboard.bounds._alternatives import (
    ALTERNATIVES,
    DEFAULT,
    MEASURED,
    NOT_PROMISED,
    TYPICAL_CHANGES,
    WORST_CASE,
    ladder_after_changes,
    typical_changes,
)
from ladderboard.bounds._best_ladder import LadderRequirements, choose_ladder
from ladderboard.bounds._certificate import NOTHING_TO_PLAN_WITH, USEFUL_ERROR
from ladderboard.bounds._certify import certificate, read_beta, read_count
from ladderboard.bounds._resolution import (
    MORE_ROWS,
    RECORDS,
    TYPICAL_LOSS,
    describe_resolution,
    resolution,
    unknown_standard_error,
)
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import GrowingLadder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.bounds._alternatives import Alternative
    from ladderboard.bounds._certificate import Certificate
    from ladderboard.bounds._resolution import Resolution
    from ladderboard.losses import Metric
    from ladderboard.mechanisms import Ladder, Mechanism

LARGEST = 10**15
TRIVIAL_ERROR = 0.5  # every risk lies within this of 0.5

_TABLE_HEADS = {"n": "examples", "questions": "questions", "error": "error"}
_CHANGES = (3, 5, 10)
_USUAL_POSITIVES = 0.5


def smallest_sufficient(condition: Callable[[int], bool]) -> int | None:
    """Return the smallest number for which a monotone condition holds; None if above 10^15.

    >>> smallest_sufficient(lambda x: x * x >= 50)
    8
    """
    high = 1
    while not condition(high):
        if high == LARGEST:
            return None
        high = min(2 * high, LARGEST)
    return _bisect(condition, high, high // 2)


def largest_sufficient(condition: Callable[[int], bool], first: int = 1) -> int:
    """Return the largest number from ``first`` on for which the condition holds; 0 if none.

    At most 10^15. The condition must hold from ``first`` up to that number.

    >>> largest_sufficient(lambda x: x * x <= 50)
    7
    """
    if condition(LARGEST):
        return LARGEST
    if not condition(first):
        return 0
    low, high = first, min(2 * first, LARGEST)
    while condition(high):
        low, high = high, min(2 * high, LARGEST)
    return _bisect(condition, low, high)


def _bisect(condition: Callable[[int], bool], good: int, bad: int) -> int:
    """Return the last number from ``good`` towards ``bad`` for which the condition holds."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if condition(middle) else (good, middle)
    return good


@dataclass(frozen=True)
class PlanRow:
    """The result for one alternative.

    Parameters
    ----------
    name
        The alternative.
    found
        The error, the smallest n or the largest number of questions; None if there is none.
    status
        "promised", "promised if" what the sentence says, "measured" or "not promised".
    sentence
        A description, or why nothing is promised.
    beyond
        Whether the search ended at 10^15: no n up to it is enough, or that many questions are fine.
    """

    name: str
    found: float | None
    status: str
    sentence: str
    beyond: bool = False


@dataclass(frozen=True)
class PlanRequest:
    """The arguments of a plan: two of three numbers, and beta."""

    n: int | None
    questions: int | None
    error: float | None
    beta: float

    @classmethod
    def read(cls, n: Any, questions: Any, error: Any, beta: Any) -> PlanRequest:
        """Return the checked arguments; exactly two of the three must be given."""
        values = {"n": n, "questions": questions, "error": error}
        names = [name for name, value in values.items() if value is not None]
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
    def unknown(self) -> str:
        """The name of the number to find."""
        return "n" if self.n is None else "questions" if self.questions is None else "error"

    def solve(self, alternative: Alternative) -> float | None:
        """Return the number to find for an alternative; None if there is none."""
        n, k = self.n or 0, self.questions or 0  # at most one is missing, and found below
        error, beta = self.error, self.beta
        if error is None:
            error_found = alternative.error(n, k, beta)
            return error_found if math.isfinite(error_found) else None
        if self.n is None:
            return smallest_sufficient(lambda n: alternative.achieves(n, k, beta, error))
        return largest_sufficient(
            lambda k: alternative.achieves(n, k, beta, error),
            alternative.first_question(n, beta),
        )

    def row(self, alternative: Alternative) -> PlanRow:
        """Return the table row of an alternative."""
        result = self.solve(alternative)
        status, sentence, beyond = alternative.status, alternative.sentence, False
        if self.unknown != "error":
            beyond = result == (None if self.unknown == "n" else LARGEST)
            if not result:
                status, sentence = NOT_PROMISED, f"{sentence}; {self._missing_reason(alternative)}"
            elif not alternative.monotone:
                sentence = f"{sentence}; approximate, as its settings depend on n and questions"
            elif self.n is not None and alternative.first_question(self.n, self.beta) > 1:
                first = alternative.first_question(self.n, self.beta)
                sentence = f"{sentence}; for fewer than {first:,} questions its conditions fail"
        elif result is None:
            status, sentence = (
                NOT_PROMISED,
                alternative.why_missing(self.n or 0, self.questions or 0, self.beta),
            )
        elif result >= TRIVIAL_ERROR and status != MEASURED:
            status, sentence = NOT_PROMISED, f"{sentence}; {TRIVIAL_ERROR:g} is known without data"
        return PlanRow(alternative.name, result, status, sentence, beyond)

    def _missing_reason(self, alternative: Alternative) -> str:
        """Return why there is no number."""
        if self.n is None:
            return "no n up to 10^15 has this error"
        first = alternative.first_question(self.n, self.beta)
        error = alternative.error(self.n, first, self.beta)
        if not math.isfinite(error):
            return alternative.why_missing(self.n, first, self.beta)
        subject = "one question has" if first == 1 else f"{first:,} questions have"
        return f"{subject} an error of {round_up(error, 3)}"


def answer_sentence(plan: Plan) -> str:
    """Return the answer in one or two sentences."""
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
        sentence = f"{questions} with an error of at most {error} need {examples}."
    else:
        or_more = " or more" if plan.beyond else ""
        sentence = f"{examples} answer {questions}{or_more} with an error of at most {error}."
    return (
        f"{sentence} Promised beforehand with confidence {format_confidence(plan.beta)}, "
        f"whatever is asked, by a Ladder with steps of {format_digits(plan.mechanism.step, 2)}."
    )


def default_mechanism_sentence(plan: Plan) -> str:
    """Return what the default mechanism of guards and boards promises; empty for other plans."""
    row = next((row for row in plan.rows if row.name == DEFAULT), None)
    if row is None or row.found is None:
        return ""
    error, changes = row.found, TYPICAL_CHANGES
    if plan.people.teams > 1:
        changes = typical_changes(plan.people.teams, plan.questions)
        error = plan.people.error_after(changes, plan.n or 1, plan.questions, plan.beta)
    if error >= USEFUL_ERROR:
        return f"The default mechanism is a calibrated growing ladder. {NOTHING_TO_PLAN_WITH}"
    return (
        "The default mechanism, a calibrated growing ladder, promises an error of at most "
        f"{round_up_to(error, 3)} if the board changes at most {changes:,} times."
    )


def _assume_spread(metric: Metric, best: Any, positives: Any) -> dict[str, float]:
    """Return what is known about a score whose standard error follows from the positives."""
    if positives is not None:
        _settings.number("positives", positives, above=0, below=1)
    share = _USUAL_POSITIVES if positives is None else float(positives)
    score = 1 - TYPICAL_LOSS if best is None else _settings.number("best", best)
    spread = metric.loss.planned_error(score, share)
    if spread is not None:
        return {"best": score, "positives": share, "spread": spread}
    if positives is not None:
        raise InvalidSetting(
            f"The standard error of {metric.label} does not follow from the share of positives; "
            "leave positives out."
        )
    return {}


@dataclass(frozen=True)
class PlannedMetric:
    """The metric of a plan, and what is known about a good model's score, in the metric's unit.

    A score is a cost, such as 1 - AUC, RMSE squared or MAE itself, on a scale of its own. Steps of
    the default mechanism are multiples of the standard error, so the range of losses is not needed.

    ``spread`` is the standard error times sqrt(n), if it follows from the share of positives.
    """

    metric: Metric
    best: float | None = None
    standard_error: float | None = None
    positives: float | None = None
    spread: float | None = None

    @classmethod
    def read(
        cls, metric: Any, best: Any, standard_error: Any, positives: Any
    ) -> PlannedMetric | None:
        """Return the checked arguments; None without a metric."""
        if metric is None:
            if any(value is not None for value in (best, standard_error, positives)):
                raise InvalidSetting("best, standard_error and positives need a metric.")
            return None
        from ladderboard.losses import metric as make_metric  # noqa: PLC0415 - most plans have none

        chosen: Metric = make_metric(metric) if isinstance(metric, str) else metric
        if standard_error is not None:
            if chosen.loss.is_binary:
                raise InvalidSetting(
                    f"The standard error of {chosen.label} follows from its value; give best alone."
                )
            standard_error = _settings.number("standard_error", standard_error, above=0)
            if best is None and chosen.shown_as == "root":
                raise InvalidSetting(
                    f"A gain in {chosen.label} depends on where it is made; give best, too: the "
                    "score of a good model."
                )
        if standard_error is None:
            planned = cls(chosen, **_assume_spread(chosen, best, positives))
        elif positives is not None:
            raise InvalidSetting("Give standard_error or positives, not both.")
        else:
            planned = cls(chosen, None, standard_error)
        if best is None:
            return planned
        best = _settings.number("best", best)
        cost = planned._cost(best)
        if cost <= 0 or (chosen.loss.is_binary and cost >= 1):
            raise InvalidSetting(
                f"best must be a score of {chosen.label} that can be improved; got {best:g}."
            )
        return replace(planned, best=best)

    @property
    def in_standard_errors(self) -> bool:
        """Whether gains are stated in standard errors, because none is known."""
        return not self.metric.loss.is_binary and self.standard_error is self.spread is None

    def _cost(self, score: float) -> float:
        """Return a score as a cost, 0 being perfect."""
        costs = {"complement": 1 - score, "percent": 1 - score / 100, "root": score * score}
        return costs.get(self.metric.shown_as, score)

    def _error(self, n: int) -> float | None:
        """Return the standard error on n examples; None if gains are stated in standard errors."""
        return self.standard_error if self.spread is None else self.spread / math.sqrt(n)

    @property
    def _released(self) -> float:
        if self.best is not None:
            return self._cost(self.best)
        return TYPICAL_LOSS if self.metric.loss.is_binary else 1.0

    @property
    def _scale(self) -> float:
        """What a loss of 1 costs; losses lie in [0, 1], costs need not."""
        return max(self._released, 1.0)

    def resolution(self, mechanism: Mechanism, n: int, rows: int, **sizes: int) -> Resolution:
        """Return what a mechanism shows on ``rows`` examples; the standard error is of ``n``."""
        error = None
        if not self.metric.loss.is_binary:
            error = self._error(n)
            if error is None:
                error = unknown_standard_error(n)
            else:
                factors = {"percent": 0.01, "root": 2 * (self.best or 0.0)}
                error *= factors.get(self.metric.shown_as, 1.0) / self._scale
            error *= math.sqrt(n / rows)
        released = self._released / self._scale
        return resolution(mechanism, n=rows, released=released, standard_error=error, **sizes)

    def gain(self, loss: float, n: int) -> float | None:
        """Return a gain in loss in the metric, or in standard errors of ``n`` examples.

        None if it is more than is left to gain.
        """
        if self.in_standard_errors:
            return loss / unknown_standard_error(n)
        cost = loss * self._scale
        if self.metric.shown_as == "root":
            left = (self.best or 0.0) ** 2 - cost
            return None if left < 0 else (self.best or 0.0) - math.sqrt(left)
        return 100 * cost if self.metric.shown_as == "percent" else cost

    def gain_text(self, loss: float, n: int) -> str:
        """Return a gain in words."""
        gain = self.gain(loss, n)
        if gain is None:
            return "more than is left to gain"
        return f"{gain:.2g} standard errors" if self.in_standard_errors else f"{gain:.2g}"

    @property
    def near(self) -> str:
        """The score near which gains are stated."""
        if self.best is not None:
            return f"{self.metric.label} {self.best:g}"
        if self.metric.loss.is_binary:
            return f"{self.metric.label} {self.metric.display(TYPICAL_LOSS):.2f}"
        return f"any {self.metric.label}"

    def notes(self, n: int) -> list[str]:
        """Return what is assumed or missing for numbers in the metric, and what is not promised."""
        label, notes = self.metric.label, []
        if self.spread is not None:
            share, error = 100 * (self.positives or 0), self._error(n)
            notes.append(
                f"Assumed: {share:.3g}% of the {n:,} rows are positive, which gives {self.near} a "
                f"standard error of {error:.2g}. Set positives for another share."
            )
        if self.in_standard_errors:
            if self.metric.shown_as == "complement" and self.metric.loss.is_mean:
                largest = 0.5 / math.sqrt(n)  # of a mean of numbers in [0, 1]
                notes.append(f"A standard error of {label} is at most {largest:.2g} on {n:,} rows.")
            notes.append(
                f"To see them in {label}, give the score of a good model and its standard error "
                "on this many rows (best, standard_error), for instance from a bootstrap of its "
                "predictions."
            )
        if not self.metric.loss.is_binary:
            notes.append(
                f"What is promised below is about a mean of losses in [0, 1], as accuracy is. For "
                f"{label} go by the simulated attacks; `guard status` says what its answers prove."
            )
        return notes

    def describe(self, result: Resolution) -> dict[str, Any]:
        """Return the metric, what was given, and the gains in its unit, JSON-able."""
        gains = {
            str(records): self.gain(gain, result.n)
            for records, gain in zip(RECORDS, result.gains, strict=True)
        }
        return {
            "name": self.metric.name,
            "title": self.metric.label,
            "direction": self.metric.direction,
            "best": self.best,
            "standard_error": self._error(result.n),
            "positives": self.positives,
            "in_standard_errors": self.in_standard_errors,
            "gains": gains,
            "attacker_gain": None
            if result.attacker_gain is None
            else self.gain(result.attacker_gain, result.n),
        }


@dataclass(frozen=True)
class People:
    """Who asks: teams with a ladder each, how many of them one attacker may hold, protection.

    ``metric`` is what is shown to them; accuracy if left out.
    """

    teams: int = 1
    accounts: int | None = None
    protection: str = "balanced"
    metric: PlannedMetric | None = None

    def resolution(self, n: int, questions: int, rows: int | None = None) -> Resolution:
        """Return what the default mechanism shows, and what it leaves to an attacker.

        It is for ``rows`` examples, if given; a standard error is that of ``n``.
        """
        rows, metric = n if rows is None else rows, self.metric
        mechanism = self._mechanism(rows, questions)
        sizes = {"questions": questions, "teams": self.teams, "accounts": mechanism.accounts}
        if metric is None:
            return resolution(mechanism, n=rows, **sizes)
        return metric.resolution(mechanism, n, rows, **sizes)

    def _mechanism(self, n: int, questions: int) -> GrowingLadder:
        by_value = self.metric is None or self.metric.metric.loss.is_binary
        return GrowingLadder.calibrated(
            n,
            questions,
            self.teams,
            self.accounts,
            self.protection,
            scale="value" if by_value else "model",
        ).for_board()

    def error_after(self, changes: int, n: int, questions: int, beta: float) -> float:
        """Return the error that the default mechanism promises after some changes of all teams."""
        mechanism = self._mechanism(n, questions)
        bound = certificate(
            n,
            questions,
            changes,
            mechanism,
            beta,
            ladders=None,
            opened=min(self.teams, questions),
            amendable=True,
        )
        return math.inf if bound.error is None else bound.error

    def describe(self, n: int, questions: int) -> list[str]:
        """Return the same in sentences, with what four times the examples would bring."""
        metric, result = self.metric, self.resolution(n, questions)
        more = self.resolution(n, questions, MORE_ROWS * n)
        if metric is None:
            near = f"accuracy {1 - TYPICAL_LOSS:.2f}"
            return describe_resolution(result, near=near, with_more_rows=more)
        lines = describe_resolution(
            result,
            near=metric.near,
            gain_text=lambda loss: metric.gain_text(loss, n),
            with_more_rows=None if metric.in_standard_errors else more,  # they would be others
        )
        return [*lines, *metric.notes(n)]


def table_rows(plan: Plan) -> list[tuple[str, ...]]:
    """Return the table, headings first: name, result, status, sentence."""
    errors = plan.asked_for == "error"
    decimals = max(_decimals(row.found) for row in plan.rows if row.found) if errors else 0

    def format_found(value: float | None, beyond: bool) -> str:
        if errors:
            if value is None or value >= TRIVIAL_ERROR:
                return "none"
            return round_up_to(value, decimals)
        if value is None:
            return "> 10^15"
        return "10^15 or more" if beyond else f"{value:,}"

    rows = [
        (row.name, format_found(row.found, row.beyond), row.status, row.sentence)
        for row in plan.rows
    ]
    return [("", _TABLE_HEADS[plan.asked_for], "", ""), *rows]


def _decimals(value: float) -> int:
    """Return the decimals for two digits, at least three; a promise stays below 0.5."""
    decimals = max(3, 1 - math.floor(math.log10(value)))
    while value < TRIVIAL_ERROR <= float(round_up_to(value, decimals)):
        decimals += 1
    return decimals


def _enough_for_one(plan: Plan) -> str:
    requirements = LadderRequirements(1, plan.beta)
    needed = smallest_sufficient(
        lambda n: choose_ladder(n, requirements, enough=plan.error)[0] <= plan.error
    )
    return "" if needed is None else f"; that needs {format_count(needed, 'example')}"


@dataclass(frozen=True)
class Plan:
    """A number of examples, a number of questions and an error: two were given, one was found.

    Parameters
    ----------
    asked_for
        Which one was found: "n", "questions" or "error".
    n
        Examples in the holdout; None if more than 10^15 are needed.
    questions
        How many questions can be asked; 0 if the error cannot be promised even for one.
    error
        The leaderboard error: how far at most the released value is from the best true risk so far.
    beta
        The probability with which the promise may fail.
    mechanism
        The Ladder that keeps the promise; None if there is none.
    certificate
        Its certificate, worst case before the data.
    rows
        The results for the alternatives; the first is the answer.
    beyond
        Whether the search ended at 10^15: no n up to it is enough, or that many questions are fine.
    people
        Who asks, for what the default mechanism shows and leaves to an attacker.
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
    people: People = field(default_factory=People)

    @property
    def resolution(self) -> Resolution | None:
        """What the default mechanism shows, and what it leaves to an attacker."""
        return self.people.resolution(self.n, self.questions) if self.n and self.questions else None

    @property
    def shown(self) -> list[str]:
        """The resolution in words."""
        return self.people.describe(self.n, self.questions) if self.n and self.questions else []

    @property
    def sentences(self) -> list[str]:
        """What the default mechanism shows, the answer, and what the default promises, in words."""
        return [*self.shown, self.sentence, *filter(None, [self.default])]

    @property
    def promised(self) -> bool:
        """Whether there is a promise that says more than is known without data."""
        return self.mechanism is not None and self.error < TRIVIAL_ERROR

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return answer_sentence(self)

    @property
    def default(self) -> str:
        """The answer for the default mechanism of guards and boards, in words."""
        return default_mechanism_sentence(self)

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        ladder, cert = self.mechanism, self.certificate
        result, metric = self.resolution, self.people.metric
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
            "shown": self.shown,
            "resolution": None if result is None else result.describe(),
            "metric": None if result is None or metric is None else metric.describe(result),
            "mechanism": None if ladder is None else ladder.describe(),
            "certificate": None if cert is None else cert.describe(),
            "rows": [asdict(row) for row in self.rows],
        }

    def table(self) -> list[tuple[str, ...]]:
        """Return the rows as printed, headings first: name, result, status, sentence."""
        return table_rows(self)

    def __str__(self) -> str:
        table = self.table()
        widths = [max(map(len, column)) for column in list(zip(*table, strict=True))[:3]]
        name, result, status = widths
        lines = [
            f"  {row[0]:<{name}}  {row[1]:>{result}}  {row[2]:<{status}}  {row[3]}" for row in table
        ]
        return "\n".join([*self.sentences, "", *lines])


def plan(
    n: int | None = None,
    questions: int | None = None,
    error: float | None = None,
    beta: float = 0.05,
    *,
    teams: int = 1,
    accounts: int | None = None,
    protection: str = "balanced",
    metric: Metric | str | None = None,
    best: float | None = None,
    standard_error: float | None = None,
    positives: float | None = None,
) -> Plan:
    """Return a plan: give two of examples, questions and error, get the third.

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
    teams, accounts, protection
        Teams with a ladder each, how many of them one attacker may hold, and the protection, for
        what the default mechanism shows; the promise is about one ladder.
    metric, best, standard_error, positives
        The metric in whose unit the default's gains are stated, the score of a good model, and its
        standard error on ``n`` examples. Right-or-wrong metrics need no standard error. That of AUC
        follows from the share of positives, 0.5 if left out. For others gains are in standard
        errors if it is left out.

    Examples
    --------
    >>> round(plan(n=10_000, questions=1_000).error, 3)
    0.099
    >>> plan(questions=1_000, error=0.05).n
    63891
    >>> plan(n=10_000, error=0.1).questions
    1173
    >>> auc = plan(n=5_000, questions=1_000, metric="roc_auc", best=0.9, standard_error=0.008)
    >>> print(auc.shown[0])
    Near AUC 0.9, gains smaller than about 0.014 may not show after the first new best, 0.028 after
    the third, 0.064 after the eighth.
    """
    request = PlanRequest.read(n, questions, error, beta)
    planned = PlannedMetric.read(metric, best, standard_error, positives)
    people = People(teams, accounts, protection, planned)
    people.resolution(1, 1)  # refuse wrong settings first
    first = request.row(WORST_CASE)
    # The number found takes the place of the missing argument; n may be None beyond 10^15.
    n, questions = request.n or int(first.found or 0) or None, request.questions
    if questions is None:
        questions = int(first.found or 0)
    ladder = cert = None
    if n is not None and questions:
        ladder = choose_ladder(n, LadderRequirements(questions, request.beta))[1]
        cert = certificate(n, questions, None, ladder, request.beta)
    after_changes = (
        () if ladder is None else tuple(ladder_after_changes(b, ladder) for b in _CHANGES)
    )
    others = [
        request.row(alternative)
        for alternative in (*after_changes, *ALTERNATIVES)
        if (alternative.invertible or request.unknown == "error")
        and (alternative.status != MEASURED or request.solve(alternative))
    ]
    return Plan(
        asked_for=request.unknown,
        n=n,
        questions=questions,
        error=request.error or first.found or math.inf,
        beta=request.beta,
        mechanism=ladder,
        certificate=cert,
        rows=(first, *others),
        beyond=first.beyond,
        people=people,
    )
