"""The reply to a submission, and refusals, as sentences for people."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ladderboard._formatting import format_count
from ladderboard.server._pages._wording import exact_duration, time_element
from ladderboard.server._problems import problem_from_exception

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.board import DisplayRules

_WORST_LOSS = 1.0  # what stands on a ladder before anything was seen
_MAX_ITEMS = 20  # of the things that are wrong; nobody reads past these
_TIPS = {
    "missing_column": "Name the columns as shown under “How the file must look”.",
    "missing_id": "Every id must be there, once.",
    "unknown_id": "Compare one of these with the ids you were given.",
    "missing_value": "A join or a division in what made the file may have left it empty.",
    "ragged": "A text may hold the separator: write it within quotes.",
}


class ReplyText(NamedTuple):
    """A reply in words: whether there is a new best, the sentence, and what can be promised."""

    good: bool
    sentence: Markup
    bound: str | None


class ReplyContext(NamedTuple):
    """What a reply is said against, all of it public or the team's own.

    ``gain`` is the loss that is seen 19 times out of 20, ``before`` what stood there before,
    ``window`` the seconds of the rules' window, ``veil`` the visibility while it hides what others
    do, ``now`` the moment at which all this is said.
    """

    display: DisplayRules
    gain: float | None = None
    before: float | None = None
    window: int | None = None
    veil: str | None = None
    now: str = ""


def describe_reply(said: Mapping[str, Any], scene: ReplyContext) -> ReplyText:
    """Return the words for what ``Answer.describe`` says.

    It is never said that a model is no better: only that no gain was seen, and which are.

    >>> from ladderboard.board import DisplayRules
    >>> scene = ReplyContext(DisplayRules("accuracy", 3, "complement"), gain=0.02, before=0.22, window=86400)
    >>> team = {"name": "team", "remaining": 43, "allowed": 50}
    >>> window = {"name": "window", "remaining": 5, "allowed": 8}
    >>> said = {"loss": 0.214, "improved": False, "again": False, "score_loss": None, "number": 7}
    >>> said |= {"ladder": "team", "limits": [window, team], "next_submission_at": None}
    >>> said |= {"bound": None}
    >>> print(describe_reply(said, scene).sentence)
    Your best stays 0.786; gains below about 0.02 may go unseen; 43 questions left, 5 of them now (at most 8 in any 24 hours).
    >>> said["improved"] = True
    >>> print(describe_reply(said, scene).sentence)
    A new best: 0.786 (was 0.780); 43 questions left, 5 of them now (at most 8 in any 24 hours).
    >>> print(describe_reply({**said, "again": True, "limits": [team]}, scene).sentence)
    The same predictions were answered before, as your submission 7; nothing was counted. Then your best became 0.786; 43 questions left.
    >>> hidden = {**said, "loss": None, "improved": False, "ladder": "board", "limits": [team]}
    >>> print(describe_reply(hidden, scene._replace(veil="hidden")).sentence)
    The best of the whole board stays what it was, which is not shown while the standings are hidden; gains below about 0.02 may go unseen; 43 questions left.
    >>> print(describe_reply({**said, "loss": 1.0, "improved": False}, scene).sentence)
    Your team has no record yet: no gain large enough was seen; gains below about 0.02 may go unseen; 43 questions left, 5 of them now (at most 8 in any 24 hours).
    """  # noqa: E501 - sentences as they are read
    told = _describe_best(said, scene)
    if said["again"]:
        first = (
            f"The same predictions were answered before, as your submission {said['number']}; "
            "nothing was counted. "
        )
        parts = [first + told[0], *told[1:]]
    else:
        parts = told
        seen = None if said["improved"] else scene.display.gain_text(scene.gain, said["loss"])
        if seen is not None:
            parts.append(f"gains below about {seen} may go unseen")
    left = remaining_text(said["limits"], scene.window, said["next_submission_at"], scene.now)
    sentence = Markup("{}; {}.").format("; ".join(parts), left)
    bound = None
    if said["bound"] is not None:  # which is about the best of now, and not of then
        released = None if said["again"] else said["loss"]
        bound = bound_text(said["bound"]["loss"], scene.display, released, said["ladder"])
    return ReplyText(said["improved"] and not said["again"], sentence, bound)


def _describe_best(said: Mapping[str, Any], scene: ReplyContext) -> list[str]:
    """Return what was said of the best, and of this model where the mechanism says that too."""
    value, score, text = said["loss"], said["score_loss"], scene.display.text
    parts = []
    if score is not None and score != value:
        parts.append(f"{'Then this' if said['again'] else 'This'} model was put at {text(score)}")
    best = (
        _describe_repeated_answer(said, scene)
        if said["again"]
        else _describe_new_answer(said, scene)
    )
    return [*parts, f"{best[0].lower()}{best[1:]}" if parts else best]


def _whose_best(said: Mapping[str, Any]) -> str:
    return "your best" if said["ladder"] == "team" else "the best of the whole board"


def _describe_new_answer(said: Mapping[str, Any], scene: ReplyContext) -> str:
    value, text, whose = said["loss"], scene.display.text, _whose_best(said)
    if said["improved"]:
        best = "A new best" if said["ladder"] == "team" else "A new best of the whole board"
        if value is None:
            return f"{best}; its value is told at the close"
        was = "" if scene.before is None or scene.before >= _WORST_LOSS else text(scene.before)
        was = f" (was {was})" if was not in {"", text(value)} else ""
        return f"{best}: {text(value)}{was}"
    if value is None:
        return f"{_capitalise(whose)} stays what it was{_why_hidden(scene)}"
    if value >= _WORST_LOSS:
        who = "Your team" if said["ladder"] == "team" else "The board"
        return f"{who} has no record yet: no gain large enough was seen"
    return f"{_capitalise(whose)} stays {text(value)}"


def _describe_repeated_answer(said: Mapping[str, Any], scene: ReplyContext) -> str:
    value, whose = said["loss"], _whose_best(said)
    if value is None:
        told = "improved" if said["improved"] else "stayed what it was"
        return f"Then {whose} {told}{_why_hidden(scene)}"
    if value >= _WORST_LOSS and not said["improved"]:
        return "Then there was no record yet"
    verb = "became" if said["improved"] else "stayed"
    return f"Then {whose} {verb} {scene.display.text(value)}"


def _why_hidden(scene: ReplyContext) -> str:
    if scene.veil is None:
        return ", which is told at the close"
    return f", which is not shown while the standings are {scene.veil}"


def _capitalise(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def remaining_text(
    limits: Sequence[Mapping[str, Any]], window: int | None, following: str | None, now: str
) -> Markup:
    """Return what is left of a team's questions, and when the next may come if not now.

    >>> team = {"name": "team", "remaining": 1, "allowed": 50}
    >>> used = {"name": "window", "remaining": 0, "allowed": 5, "next": "2026-11-16T14:05:00Z"}
    >>> soon, now = "2026-11-16T14:05:00Z", "2026-11-16T13:00:00Z"
    >>> print(remaining_text([used, team], 3600, soon, now).striptags())
    1 question left, none of them now; next at 14:05 UTC
    >>> print(remaining_text([{**team, "remaining": 0}], None, None, now))
    no questions left: your team has asked all its 50
    >>> spent = {"name": "board", "remaining": 0, "allowed": 101}
    >>> print(remaining_text([spent], None, None, now).striptags())
    no questions left: your share of the board's budget is used up
    >>> print(remaining_text([spent], None, now, now))  # while what others do is hidden
    your share is used up; whether others left any over is not shown
    """
    whole = min((limit for limit in limits if limit["name"] != "window"), key=_remaining)
    rest = whole["remaining"]
    if not rest and following is not None:
        return Markup("your share is used up; whether others left any over is not shown")
    if not rest:
        team = f"your team has asked all its {whole['allowed']:,}"
        why = team if whole["name"] == "team" else "your share of the board's budget is used up"
        return Markup("no questions left: {}").format(why)
    said = f"{format_count(rest, 'question')} left"
    lately = next((limit for limit in limits if limit["name"] == "window"), whole)
    now_left = lately["remaining"]
    if now_left < rest:  # more may come within the window, as the first in it leave it
        most = f"at most {lately['allowed']:,} in any {exact_duration(window or 1)}"
        said += f", {f'{now_left:,} of them now ({most})' if now_left else 'none of them now'}"
    if following is None or (following <= now and now_left):
        return Markup("{}").format(said)
    return Markup("{}; next at {}").format(said, _short_time(following, now))


def _remaining(limit: Mapping[str, Any]) -> int:
    found: int = limit["remaining"]
    return found


def _short_time(told: str, now: str) -> Markup:
    """Return a moment; of today the time alone."""
    if told[:10] != now[:10]:
        return time_element(told)
    return Markup('<time datetime="{}">{} UTC</time>').format(told, told[11:16])


def bound_text(
    bound: Mapping[str, Any], display: DisplayRules, released: float | None, ladder: str
) -> str | None:
    """Return what a certificate promises, in the metric that is shown; None if nothing.

    >>> from ladderboard.board import DisplayRules
    >>> bound = {"low": 0.1712, "high": 0.2598, "beta": 0.05, "differences": False, "nats": 9.0}
    >>> bound |= {"vacuous": False, "theorem": "transcript", "span": [0.0, 1.0]}
    >>> bound_text(bound, DisplayRules("accuracy", 3, "complement"), 0.214, "team")
    'With confidence 95%, the best of your models so far truly has accuracy between 0.740 and 0.829.'
    """  # noqa: E501 - a sentence as it is read
    low, high = bound["low"], bound["high"]
    if low is None or high is None or bound["vacuous"] or bound["nats"] is None:
        return None
    if bound["theorem"].endswith("as printed"):
        return None  # which holds up to a constant that nobody knows
    if bound["differences"]:
        if released is None or released >= _WORST_LOSS:
            return None
        span = bound["span"]
        low, high = max(released + low, span[0]), min(released + high, span[1])
    whose = (
        "the best of your models so far" if ladder == "team" else "the board's best model so far"
    )
    least, most = display.ends(low, high)
    sure = math.floor((1 - bound["beta"]) * 1e4 + 1e-9) / 100
    return (
        f"With confidence {sure:g}%, {whose} truly has {display.name} between {least} and {most}."
    )


class ProblemItem(NamedTuple):
    """One thing that is wrong: in words, the first ids, how many more there are, and what helps."""

    text: str
    ids: tuple[str, ...]
    more: int
    tip: str | None


class PageProblem(NamedTuple):
    """Why something was not done; ``more`` counts what is wrong besides ``items``."""

    status: int
    detail: str
    code: str
    items: tuple[ProblemItem, ...] = ()
    more: int = 0
    retry: str | None = None


def page_problem(error: Exception) -> PageProblem:
    """Return what a page says of an exception; raise it where the log must tell more of it."""
    said, ours = problem_from_exception(error)
    if ours:
        raise error
    told = json.loads(bytes(said.body))
    items, more = problem_items(told["errors"])
    return PageProblem(
        said.status_code,
        told["detail"],
        told["code"],
        items,
        more,
        said.headers.get("retry-after"),
    )


def problem_items(errors: Sequence[Mapping[str, Any]]) -> tuple[tuple[ProblemItem, ...], int]:
    """Return the things that are wrong, and how many more there are.

    >>> error = {"code": "missing_id", "count": 12, "ids": ["a", "b"], "column": None}
    >>> error["message"] = "Missing from the file: 12 ids ('a', 'b', ...)."
    >>> problem_items([error])[0][0][:3]
    ('Missing from the file: 12 ids', ('a', 'b'), 10)
    """
    return tuple(map(_problem_item, errors[:_MAX_ITEMS])), max(len(errors) - _MAX_ITEMS, 0)


def _problem_item(error: Mapping[str, Any]) -> ProblemItem:
    message, count, ids = error["message"], error["count"], tuple(error["ids"])
    tip = _TIPS.get(error["code"])
    # Ids stand in brackets at the end of a message; a page shows them one by one.
    found = re.match(rf"(.*?: (?:{count}|{count:,}) \w+) \(", message, re.DOTALL) if ids else None
    if found is None:
        return ProblemItem(message, (), 0, tip)
    return ProblemItem(found[1], ids, max(count - len(ids), 0), tip)
