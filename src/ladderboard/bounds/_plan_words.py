"""A plan in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ladderboard._formatting import format_confidence, round_up_to
from ladderboard.bounds._alternatives import SHAKY, SHAKY_MEASURED, SHAKY_TYPICAL, TYPICAL
from ladderboard.bounds._asked import KNOWN
from ladderboard.bounds._choice import Job, choose
from ladderboard.bounds._search import least

if TYPE_CHECKING:
    from ladderboard.bounds._asked import PlanRow
    from ladderboard.bounds._plan import Plan

__all__ = ["answer", "cells", "default"]

_HEADS = {"n": "examples", "questions": "questions", "error": "error"}


def answer(plan: Plan) -> str:
    """Return the answer in a sentence or two."""
    questions = _count(plan.questions, "question")
    if plan.n is None:
        return f"{questions} with an error of {plan.error} would need more than 10^15 examples."
    examples = _count(plan.n, "example")
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


def default(plan: Plan) -> str:
    """Say the same for the mechanism that guards and boards use, promise by promise."""
    rows = {row.name: row for row in plan.rows}
    worst, typical, measured = (
        _found(plan, rows.get(each)) for each in (SHAKY, SHAKY_TYPICAL, SHAKY_MEASURED)
    )
    wanted = {"error": "error", "questions": "questions", "n": "examples"}[plan.asked_for]
    said = (
        f"{wanted.capitalize()} with the default mechanism, a calibrated Shaky Ladder: {worst} "
        f"promised whatever is asked; {typical} promised if the board changes at most {TYPICAL} "
        "times, as `board check` supposes of one ladder"
    )
    if measured is not None:
        said += f"; {measured} measured on average in games against attackers, not promised"
    if plan.asked_for == "questions" and plan.n is not None:
        said += f". What 1,000 questions cost: plan with n={plan.n} and questions=1000"
    return f"{said}."


def _found(plan: Plan, row: PlanRow | None) -> str | None:
    if row is None or (row.found is None and not row.beyond):
        return None
    if plan.asked_for == "error":
        assert row.found is not None  # noqa: S101 - errors have no end of a search
        return (
            round_up_to(row.found, 2 if row.found > 0.1 else 3) if row.found < KNOWN else "nothing"
        )
    return "more than 10^15" if row.found is None else f"{int(row.found):,}"


def cells(plan: Plan) -> list[tuple[str, ...]]:
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
    return [("", _HEADS[plan.asked_for], "", ""), *rows]


def _decimals(value: float) -> int:
    """Return how many decimals show three digits, and at least four; a promise is below 0.5."""
    decimals = max(4, 2 - math.floor(math.log10(value)))
    while value < KNOWN <= float(round_up_to(value, decimals)):
        decimals += 1
    return decimals


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _enough_for_one(plan: Plan) -> str:
    job = Job(1, plan.beta)
    needed = least(lambda n: choose(n, job, enough=plan.error)[0] <= plan.error)
    return "" if needed is None else f"; that needs {_count(needed, 'example')}"
