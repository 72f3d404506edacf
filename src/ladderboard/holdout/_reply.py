"""Replies: the answer to a question, in numbers and as a sentence.

The sentences hold under noise, and reveal no more than the release does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import (
    format_confidence,
    format_count,
    format_digits,
    format_ends,
    format_promise,
    format_undetected_gains,
    printable,
    round_up,
)
from ladderboard.errors import InvalidState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.bounds import Certificate
    from ladderboard.mechanisms import Release

Interval = tuple[float, float]

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
        The loss of the best so far, after the question; None if it is published at the close only.
    improved
        Whether this model is a new best.
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
    proven
        Whether a new best is proven better than the one before on its ladder: no such proof is ever
        false, with the guard's probability 1 - beta. None if it was not tested.
    metric
        The name of the guard's metric; None if it has a loss only.
    value
        ``released`` in that metric; the loss itself without one.

    ``bound`` is the certificate for the best model asked so far on this ladder, about its loss;
    ``interval`` is the same interval in the metric. Both are about the best now, also if
    ``released`` and ``value`` repeat an earlier answer.
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
    proven: bool | None = None
    metric: str | None = None
    value: float | None = None
    locate: Callable[[Certificate], Interval | None] | None = field(
        default=None, repr=False, compare=False
    )

    @cached_property
    def bound(self) -> Certificate:
        """An interval for the best true risk so far, with its confidence and assumptions."""
        if self.certify is None:
            raise InvalidState("This reply came without a certificate.")
        return self.certify()

    @cached_property
    def interval(self) -> Interval | None:
        """Where the best true value lies: the ends of ``bound`` in the guard's metric.

        None if the released value is withheld, or if nothing is promised.
        """
        return None if self.locate is None else self.locate(self.bound)

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
            "loss": self.released,
            **(
                {}
                if self.metric is None
                else {"metric": self.metric, "value": self.value, "interval": self.interval}
            ),
            "improved": self.improved,
            "question": self.question,
            "remaining": self.remaining,
            "bound": bound.describe(),
            "reason": self.reason,
            "score": self.score,
            "ladder": self.ladder,
            "again": self.again,
            **({} if self.proven is None else {"proven": self.proven}),
        }

    def _repr_html_(self) -> str:
        """Show the sentence and the interval in a notebook."""
        name = "loss" if self.metric is None else escape(self.metric)
        parts = [f"<p><b>{'Improved' if self.improved else 'Not improved'}.</b> "]
        parts.append(f"{escape(str(self))}</p>")
        if self.interval is not None:
            parts.append(
                f"<p>With confidence {format_confidence(self.bound.beta)}, the true "
                f"{name} of the best model lies in {format_ends(*self.interval)}.</p>"
            )
        return "".join(parts)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the certificate and its interval instead of the functions that compute them."""
        computed = {"bound": self.bound, "interval": self.interval}
        return {**self.__dict__, **computed, "certify": None, "locate": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class ReplyTexts(NamedTuple):
    """The numbers of a reply as text, in the unit that is shown to people.

    ``best`` is the released value and ``score`` that of this model; ``gain`` is the smallest gain
    that is surely shown, None if there is nothing to say about it.
    """

    best: str
    score: str
    gain: str | None


def loss_texts(
    release: Release, smallest_gain: float | None, shown: Mapping[str, Any] | None = None
) -> ReplyTexts:
    """Return the numbers of a guard's reply: in the metric ``shown`` if it has one, else losses."""
    best = format_risk(release.value, shown)
    score = best if release.score == release.value else format_risk(release.score, shown)
    if not smallest_gain or not is_unchanged(release):
        return ReplyTexts(best, score, None)
    return ReplyTexts(best, score, format_risk_gain(smallest_gain, release.value, shown))


def metric_value(risk: float | None, shown: Mapping[str, Any] | None) -> float | None:
    """Return a released risk in a metric, with the digits that it carries; a loss without one.

    >>> metric_value(0.184, {"title": "AUC", "as": "complement", "unit": 1.0})
    0.816
    >>> metric_value(0.0072, {"title": "RMSE", "as": "root", "unit": 1e4})
    8.49
    """
    if risk is None or shown is None:
        return risk
    from ladderboard.losses import display_release  # noqa: PLC0415 - clients need no losses

    return display_release(shown["as"], risk, shown["unit"])


def format_risk(risk: float | None, shown: Mapping[str, Any] | None) -> str:
    """Return a released risk as text: in the metric by its name, or as a loss that says so.

    >>> format_risk(0.25, None)
    'loss 0.25'
    """
    value = metric_value(risk, shown)
    return "-" if value is None else f"{'loss' if shown is None else shown['title']} {value:.6g}"


def format_risk_gain(
    gain: float, released: float | None, shown: Mapping[str, Any] | None
) -> str | None:
    """Return a gain in loss as text, in the unit that is shown; None if there is none to name."""
    if shown is None or shown["as"] != "root":  # it changes by this much with the loss, everywhere
        return format_digits(gain * abs(_display(1.0, shown) - _display(0.0, shown)), 2)
    if released is None:
        return None  # a gain in a root depends on the best
    before, after = (_display(risk, shown) for risk in (released, max(released - gain, 0.0)))
    return format_digits(before - after, 2) if before > after else None


def _display(risk: float, shown: Mapping[str, Any] | None) -> float:
    """Return any risk in a metric; a loss without one."""
    if shown is None:
        return risk
    from ladderboard.losses import display_risk  # noqa: PLC0415 - same

    return display_risk(shown["as"], risk, shown["unit"])


def metric_interval(
    bound: Certificate, *, shown: Mapping[str, Any] | None, released: float | None
) -> Interval | None:
    """Return the interval of a certificate in a metric; None if there is none to name."""
    if bound.promises_nothing or (bound.differences and released is None):
        return None
    low, high = sorted(_displayed_ends(bound, shown, released or 0.0))
    return low, high


def best_interval(
    bound: Certificate, *, shown: Mapping[str, Any] | None, released: float | None
) -> Interval | None:
    """Return the interval of the best so far; None also while the loss is 1, as at the start."""
    if released is not None and released >= 1:
        return None
    return metric_interval(bound, shown=shown, released=released)


def _displayed_ends(
    bound: Certificate, shown: Mapping[str, Any] | None, released: float
) -> Interval:
    """Return the best and the worst end of a certificate in a metric."""
    centre, (smallest, largest) = released if bound.differences else 0.0, bound.span
    best, worst = max(centre + bound.low, smallest), min(centre + bound.high, largest)
    return _display(best, shown), _display(worst, shown)


def describe_bound(
    bound: Certificate,
    shown: Mapping[str, Any] | None = None,
    released: float | None = None,
) -> str:
    """Return what a certificate guarantees, in a sentence or two.

    With ``shown``, in the metric, if it is known what was ``released``; otherwise about a loss.
    """
    best = "the true loss of the best model"
    if bound.promises_nothing:
        reason = bound.assumptions[0] if bound.assumptions else ""
        return f"No guarantee: {best} may be anything. {reason}"
    sure = f"With confidence {format_confidence(bound.beta)}"
    if bound.as_printed:
        sure = f"Except with probability of a constant times {bound.beta:g}"
    interval = metric_interval(bound, shown=shown, released=released)
    if shown is not None and interval is not None:
        name = printable(shown["title"])
        if is_too_wide(bound, shown, released):
            return (
                f"With so few examples, the proven interval for the true {name} is too wide to be "
                "useful; --json shows it."
            )
        text = f"{sure}, the true {name} of the best model lies in {format_ends(*interval)}."
        return text if released is None else f"{text} {_metric_promise(bound, shown, released)}"
    ends = format_ends(bound.low, bound.high)
    if bound.differences:
        text = (
            f"{sure}, {best} less the released value lies in {ends}: the error is at most "
            f"{round_up(bound.error or 0, 2)}."
        )
    else:
        text = f"{sure}, {best} lies in {ends}."
    return f"{text} {bound.promise}"


def is_too_wide(
    bound: Certificate, shown: Mapping[str, Any] | None, released: float | None
) -> bool:
    """Return whether an interval says next to nothing in a metric without an upper limit.

    Such as an RMSE that may be 0, or more than twice the released one.
    """
    if shown is None or released is None or shown["as"] not in {"scaled", "root"}:
        return False
    interval = metric_interval(bound, shown=shown, released=released)
    return interval is not None and interval[0] <= 0 and interval[1] > 2 * _display(released, shown)


def _metric_promise(bound: Certificate, shown: Mapping[str, Any], released: float) -> str:
    """Return what a certificate says about the released value, in a metric."""
    value = _display(released, shown)
    best, worst = (abs(end - value) for end in _displayed_ends(bound, shown, released))
    return format_promise(
        worst if bound.overfitting else bound.overfitting, best if bound.hidden else bound.hidden
    )


def is_unchanged(release: Release) -> bool:
    """Tell whether a release says neither a new best nor a score of this model."""
    score = release.score
    return not release.improved and (score is None or score == release.value)


def format_reply(
    release: Release,
    texts: ReplyTexts,
    *,
    again: bool,
    remaining: int,
    advice: str = "",
    noun: str = "question",
    number: int | None = None,
) -> str:
    """Return the sentences of a reply; in the past tense if it repeats an earlier answer.

    ``noun`` is what is asked or sent, and ``number`` its number if that is not the question's.
    """
    sentences = []
    if release.score is not None and release.score != release.value:
        sentences.append(f"This model's score: {texts.score}.")
    if again:
        earlier = f"{noun} {number or release.question:,}"
        sentences.insert(0, f"Duplicate of {earlier}; not counted.")
        sentences.append(_describe_past_best(release, texts.best, earlier))
    else:
        unchanged = is_unchanged(release)
        if unchanged:
            sentences.append("No measurable improvement.")
        sentences += _describe_best(release, texts.best)
        if unchanged and texts.gain is not None:
            sentences.append(format_undetected_gains(texts.gain))
    left = format_remaining(remaining, noun)
    sentences.append(f"{left[0].upper()}{left[1:]}.")
    return " ".join([*sentences, advice] if advice else sentences)


def _describe_best(release: Release, best: str) -> list[str]:
    if release.value is None:
        return ["The best improved; its value is published at the close."] * release.improved
    verb = " is now" if release.improved else ":"
    proven = ["It is proven better than the best before."] if release.proven else []
    return [f"The best{verb} {best}.", *proven]


def _describe_past_best(release: Release, best: str, earlier: str) -> str:
    if release.value is not None:
        return f"After {earlier} the best was {best}."
    if release.improved:
        return f"{earlier.capitalize()} improved the best; its value is published at the close."
    return f"{earlier.capitalize()} was no measurable improvement."


class BoardAnswer(NamedTuple):
    """A board's answer to a submission; its numbers are texts in the board's metric.

    ``best`` is None if it is withheld, and ``score`` unless it is released and not the best;
    ``has_best`` is false before the first release. ``ladder`` is ``team`` or ``board``,
    ``previous`` the best before, without the metric's name and None if it reads like the new one.
    ``gain`` is the smallest gain that is surely shown, None if there is nothing to say about it.
    ``new_withheld`` and ``withheld`` say why a new and an old best are not shown; ``owner`` is who
    has no score yet. ``proven`` is whether a new best is proven better than the one before.
    """

    improved: bool
    again: bool
    number: int
    ladder: str
    best: str | None
    score: str | None
    has_best: bool
    previous: str | None = None
    gain: str | None = None
    new_withheld: str = "its score is not shown now"
    withheld: str = ""
    owner: str = ""
    proven: bool | None = None


RESERVED_USED_UP = (
    "your reserved submissions are used up; you may still submit while the shared pool lasts, "
    "whose size is hidden"
)
"""What is left of a team's submissions, if how many are left depends on others."""


def describe_board_answer(answer: BoardAnswer) -> list[str]:
    """Return sentences about the best score, and about this submission's if it is released.

    No model is called worse: it was only not measurably better.
    """
    sentences = [] if answer.score is None else [f"This submission scored {answer.score}."]
    if answer.again:
        duplicate = f"Duplicate of submission {answer.number:,}; not counted."
        return [duplicate, *sentences, _describe_earlier_answer(answer)]
    unchanged = not answer.improved and answer.score is None
    if unchanged and answer.has_best:
        sentences.append("No measurable improvement.")
    sentences.append(_describe_new_answer(answer))
    if answer.proven:
        whose = "your best" if answer.ladder == "team" else "the board's best"
        sentences.append(f"It is proven better than {whose} before.")
    if unchanged and answer.gain is not None:
        sentences.append(format_undetected_gains(answer.gain))
    return sentences


def _describe_new_answer(answer: BoardAnswer) -> str:
    is_team = answer.ladder == "team"
    if answer.improved:
        new = "A new best" if is_team else "A new best of the whole board"
        if answer.best is None:
            return f"{new}; {answer.new_withheld}."
        was = "" if answer.previous is None else f" (was {answer.previous})"
        return f"{new}: {answer.best}{was}."
    whose = "Your best" if is_team else "The best of the whole board"
    if answer.best is None:
        return f"{whose} is unchanged{f'; {answer.withheld}' if answer.withheld else ''}."
    if not answer.has_best:
        nothing = f"{answer.owner} has no score yet" if answer.owner else "No score yet"
        return f"{nothing}: not measurably better than the worst possible score."
    return f"{whose}: {answer.best}."


def _describe_earlier_answer(answer: BoardAnswer) -> str:
    whose = "your best" if answer.ladder == "team" else "the best of the whole board"
    earlier = f"submission {answer.number:,}"
    if answer.best is None:
        change = "improved" if answer.improved else "did not change"
        why = f"; {answer.withheld}" if answer.withheld else ""
        return f"{earlier.capitalize()} {change} {whose}{why}."
    if not answer.has_best:
        return f"After {earlier} there was no score yet."
    return f"After {earlier} {whose} was {answer.best}."


def format_remaining(remaining: int, noun: str = "question") -> str:
    """Return the number of questions or submissions left, as text.

    >>> format_remaining(9_999), format_remaining(1), format_remaining(0, "submission")
    ('9,999 questions left', '1 question left', 'no submissions left')
    """
    return f"{format_count(remaining, noun) if remaining else f'no {noun}s'} left"
