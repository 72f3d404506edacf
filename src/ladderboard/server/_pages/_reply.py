"""Texts on the pages: the reply to a submission, and refusals."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ladderboard._formatting import (
    format_count,
    format_fixed,
    format_gain,
    parse_number,
    shared_decimals,
)
from ladderboard.holdout import RESERVED_USED_UP, BoardAnswer, describe_board_answer
from ladderboard.server._pages._wording import (
    exact_duration,
    metric_title,
    next_minute,
    time_element,
)
from ladderboard.server._problems import problem_from_exception

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.board import DisplayRules

_WORST_LOSS = 1.0  # the best of a ladder before the first release
_MAX_ITEMS = 20  # of the errors in a file
_TIPS = {
    "missing_column": "Name the columns as shown under “File format”.",
    "missing_id": "Include every id exactly once.",
    "duplicate_id": "Keep one row for each id.",
    "unknown_id": "Copy the ids from the sample submission.",
    "missing_value": "Check joins and divisions in your script; they may produce empty values.",
    "unknown_class": "Write the class itself, not its probability.",
    "ragged": "A text may hold the separator: write it within quotes.",
}


class ReplyText(NamedTuple):
    """A reply in words: a headline, why, and what is left.

    ``good`` is whether there is a new best; then ``rank`` is the team's, if it is known.
    """

    good: bool
    headline: str
    why: str
    left: Markup
    rank: str | None = None


class ReplyContext(NamedTuple):
    """What a reply's text depends on besides the answer; all of it is public or the team's own.

    ``previous_best`` is the best loss before this submission, ``restriction`` the board's
    visibility while it hides what other teams do, ``now`` the time of the reply. ``decimals`` are
    those of the team's scores, ``rank`` is its rank now.
    """

    display: DisplayRules
    previous_best: float | None = None
    window_seconds: int | None = None
    restriction: str | None = None
    now: str = ""
    decimals: int = 0
    rank: str | None = None

    def text(self, loss: float | None) -> str:
        """Return a released loss in the metric, with as many decimals as the team's scores."""
        text = self.display.text(loss)
        if loss is None or "e" in text:
            return text
        decimals = max(self.decimals, len(text.partition(".")[2]))
        return format_fixed(parse_number(text), decimals)

    def named_text(self, loss: float) -> str:
        """Return ``text`` with the metric's name before it."""
        return f"{self.display.name} {self.text(loss)}"


def describe_reply(answer: Mapping[str, Any], context: ReplyContext) -> ReplyText:
    """Return the text for an answer, given as ``SubmissionAnswer.describe`` returns it.

    It never says that a model is not better, only that no gain was detected and how large a gain
    must be to be detected.

    >>> from ladderboard.board import DisplayRules
    >>> accuracy = DisplayRules("accuracy", 3, "complement")
    >>> context = ReplyContext(accuracy, previous_best=0.22, window_seconds=86400)
    >>> team = {"name": "team", "remaining": 43, "allowed": 50}
    >>> window = {"name": "window", "remaining": 5, "allowed": 8}
    >>> answer = {"loss": 0.214, "improved": False, "again": False, "score_loss": None, "number": 7}
    >>> answer |= {"ladder": "team", "limits": [window, team], "next_submission_at": None}
    >>> answer |= {"visible_gain": 0.02}
    >>> def show(answer, context):
    ...     reply = describe_reply(answer, context)
    ...     print(reply.headline, reply.why, reply.left, sep=" | ")
    >>> show(answer, context)
    No measurable improvement | Your best: accuracy 0.786. Improvements smaller than about 0.02 may
    not be detected. | 43 submissions left, 5 available now (at most 8 in any 24 hours).
    >>> answer["improved"] = True
    >>> show(answer, context)
    New best: 0.786 | Accuracy went from 0.780 to 0.786. | 43 submissions left, 5 available now (at
    most 8 in any 24 hours).
    >>> show({**answer, "again": True, "limits": [team]}, context)
    Duplicate of submission 7 | Not counted. After submission 7 your best was accuracy 0.786. | 43
    submissions left.
    >>> hidden = {**answer, "loss": None, "improved": False, "ladder": "board", "limits": [team]}
    >>> show(hidden, context._replace(restriction="hidden"))
    No measurable improvement | The best of the whole board is unchanged; it is not shown while
    the standings are hidden. Improvements smaller than about 0.02 may not be detected. | 43
    submissions left.
    >>> show({**answer, "loss": 1.0, "improved": False, "limits": [team]}, context)
    No score yet | No measurable improvement so far. Improvements smaller than about 0.02 may not be
    detected. | 43 submissions left.
    """
    left = remaining_text(
        answer["limits"], context.window_seconds, answer["next_submission_at"], context.now
    )
    headline, sentences = _describe_best(answer, context)
    is_new_best = answer["improved"] and not answer["again"]
    return ReplyText(
        is_new_best,
        headline,
        " ".join(sentences),
        Markup("{}{}.").format(left[0].upper(), left[1:]),
        context.rank if is_new_best else None,
    )


def _describe_best(answer: Mapping[str, Any], context: ReplyContext) -> tuple[str, list[str]]:
    """Return a headline, and sentences on the best and on this model's score if it is released."""
    loss = answer["loss"]
    board_answer = BoardAnswer(
        improved=answer["improved"],
        again=answer["again"],
        number=answer["number"],
        ladder=answer["ladder"],
        best=None if loss is None else context.named_text(loss),
        score=context.named_text(answer["score_loss"]) if _has_own_score(answer) else None,
        gain=format_gain(answer["visible_gain"]),
        has_best=answer["improved"] or loss is None or loss < _WORST_LOSS,
        previous=_format_previous(context, loss),
        new_withheld="its score is published when the board closes",
        withheld=_why_hidden(context),
        owner="Your team" if answer["ladder"] == "team" else "The board",
        proven=answer.get("proven"),
    )
    sentences = describe_board_answer(board_answer)
    if answer["again"]:
        return f"Duplicate of submission {answer['number']:,}", ["Not counted.", *sentences[1:]]
    if answer["improved"]:
        return _describe_new_best(board_answer, context, loss, sentences)
    if board_answer.score is not None:
        return f"Score: {context.text(answer['score_loss'])}", sentences[1:]
    if not board_answer.has_best:
        return "No score yet", ["No measurable improvement so far.", *sentences[1:]]
    return "No measurable improvement", sentences[1:]


def _describe_new_best(
    answer: BoardAnswer, context: ReplyContext, loss: float | None, sentences: list[str]
) -> tuple[str, list[str]]:
    """Return the headline of a new best, and where it comes from."""
    headline = "New best" if answer.ladder == "team" else "New best of the whole board"
    proven = sentences[-1:] if answer.proven else []
    if loss is None:
        return headline, [f"{_capitalise(answer.new_withheld)}.", *proven]
    value, metric = context.text(loss), metric_title(context.display.name)
    if answer.previous is not None:
        numbers = parse_number(answer.previous), parse_number(value)
        decimals = max(shared_decimals(numbers, context.display.digits), context.decimals)
        previous, value = (format_fixed(number, decimals) for number in numbers)
        why = [f"{metric} went from {previous} to {value}."]
    elif context.previous_best is None or context.previous_best >= _WORST_LOSS:
        why = [f"{metric} {value} is the first score."]
    else:
        why = [f"{metric} improved by less than its digits show."]
    return f"{headline}: {value}", [*why, *proven]


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _format_previous(context: ReplyContext, loss: float | None) -> str | None:
    """Return the best before, unless there was none or it reads like the new one."""
    text, previous = context.text, context.previous_best
    if previous is None or previous >= _WORST_LOSS or text(previous) == text(loss):
        return None
    return text(previous)


def _has_own_score(answer: Mapping[str, Any]) -> bool:
    """Return whether this submission's score is released and is not the best."""
    return answer["score_loss"] not in {None, answer["loss"]}


def _why_hidden(context: ReplyContext) -> str:
    if context.restriction is None:
        return "its score is published when the board closes"
    return f"it is not shown while the standings are {context.restriction}"


def remaining_text(
    limits: Sequence[Mapping[str, Any]], window_seconds: int | None, following: str | None, now: str
) -> Markup:
    """Return how many submissions a team has left, and when it may send the next one.

    >>> team = {"name": "team", "remaining": 1, "allowed": 50}
    >>> used = {"name": "window", "remaining": 0, "allowed": 5, "next": "2026-11-16T14:05:00Z"}
    >>> soon, now = "2026-11-16T14:04:01Z", "2026-11-16T13:00:00Z"
    >>> print(remaining_text([used, team], 3600, soon, now).striptags())
    1 submission left, none available now; next at 14:05 UTC
    >>> print(remaining_text([{**team, "remaining": 0}], None, None, now))
    no submissions left: your team has used all its 50
    >>> spent = {"name": "board", "remaining": 0, "allowed": 101}
    >>> print(remaining_text([spent], None, None, now).striptags())
    no submissions left: your share of the board's budget is used up
    >>> print(remaining_text([spent], None, now, now).partition("; ")[2])  # other teams are hidden
    you may still submit while the shared pool lasts, whose size is hidden
    """
    tightest = min((limit for limit in limits if limit["name"] != "window"), key=_remaining)
    rest = tightest["remaining"]
    if not rest and following is not None:
        return Markup("{}").format(RESERVED_USED_UP)
    if not rest:
        team = f"your team has used all its {tightest['allowed']:,}"
        reason = (
            team if tightest["name"] == "team" else "your share of the board's budget is used up"
        )
        return Markup("no submissions left: {}").format(reason)
    text = f"{format_count(rest, 'submission')} left"
    window_limit = next((limit for limit in limits if limit["name"] == "window"), tightest)
    now_left = window_limit["remaining"]
    if now_left < rest:  # the window allows fewer than are left in all
        window_rule = (
            f"at most {window_limit['allowed']:,} in any {exact_duration(window_seconds or 1)}"
        )
        text += (
            f", {now_left:,} available now ({window_rule})" if now_left else ", none available now"
        )
    if following is None or (following <= now and now_left):
        return Markup("{}").format(text)
    return Markup("{}; next at {}").format(text, _short_time(next_minute(following), now))


def _remaining(limit: Mapping[str, Any]) -> int:
    remaining: int = limit["remaining"]
    return remaining


def _short_time(time: str, now: str) -> Markup:
    """Return a time; without the date if it is today."""
    if time[:10] != now[:10]:
        return time_element(time)
    return Markup('<time datetime="{}">{} UTC</time>').format(time, time[11:16])


class ProblemItem(NamedTuple):
    """An error in a file: a text, the first ids, how many more there are, and a tip."""

    text: str
    ids: tuple[str, ...]
    more: int
    tip: str | None


class PageProblem(NamedTuple):
    """Why a request was refused; ``more`` counts the errors besides ``items``."""

    status: int
    detail: str
    code: str
    items: tuple[ProblemItem, ...] = ()
    more: int = 0
    retry: str | None = None


def page_problem(error: Exception) -> PageProblem:
    """Return the problem to show for an exception; raise internal errors again, to be logged."""
    response, _, is_internal = problem_from_exception(error)
    if is_internal:
        raise error
    problem = json.loads(bytes(response.body))
    items, more = problem_items(problem["errors"])
    return PageProblem(
        response.status_code,
        problem["detail"],
        problem["code"],
        items,
        more,
        response.headers.get("retry-after"),
    )


def problem_items(errors: Sequence[Mapping[str, Any]]) -> tuple[tuple[ProblemItem, ...], int]:
    """Return the first errors in a file, and how many more there are.

    >>> error = {"code": "missing_id", "count": 12, "ids": ["a", "b"], "column": None}
    >>> error["message"] = "12 missing ids: a, b, ..."
    >>> problem_items([error])[0][0][:3]
    ('12 missing ids', ('a', 'b'), 10)
    >>> error |= {"code": "missing_value", "message": "The value of 'x' is missing: 12 ids (a, b)."}
    >>> problem_items([error])[0][0].text
    "The value of 'x' is missing (12 ids)"
    """
    return tuple(map(_problem_item, errors[:_MAX_ITEMS])), max(len(errors) - _MAX_ITEMS, 0)


def _problem_item(error: Mapping[str, Any]) -> ProblemItem:
    message, count, ids = error["message"], error["count"], tuple(error["ids"])
    tip = _TIPS.get(error["code"])
    # The message ends with the ids, in brackets or after a colon; the page lists them separately.
    number = rf"(?:{count}|{count:,})"
    pattern = rf"(.*?: {number} \w+)(?= \()|({number} \w+ \w+)(?=: )"
    match = re.match(pattern, message, re.DOTALL) if ids else None
    if match is None:
        return ProblemItem(message, (), 0, tip)
    text = re.sub(r": ([\d,]+ \w+)\Z", r" (\1)", match[0])
    return ProblemItem(text, ids, max(count - len(ids), 0), tip)
