"""Small words of the pages: counts, spans of time, sizes, the state of a board."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = [
    "State",
    "count",
    "is_full",
    "is_over",
    "listed",
    "percent",
    "size",
    "span",
    "state_of",
    "stretch",
    "until",
    "when",
]

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def count(number: int, noun: str) -> str:
    """Return so many of something.

    >>> count(1, "question"), count(1200, "team"), count(0, "entry")
    ('1 question', '1,200 teams', 'no entries')
    """
    if number == 1:
        return f"1 {noun}"
    many = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {many}" if number else f"no {many}"


def span(seconds: int) -> str:
    """Return about how long something is: one number, rounded down, never nothing.

    >>> span(90), span(3 * 86400 + 7000), span(400 * 86400), span(0)
    ('1 minute', '3 days', '13 months', '1 second')
    """
    days = seconds // 86400
    if days >= 730:  # two years
        return count(days // 365, "year")
    if days >= 60:
        return count(days // 30, "month")
    return next(
        (count(seconds // unit, name) for unit, name in _UNITS if seconds >= unit), "1 second"
    )


def seconds_of(told: str) -> int:
    """Return a moment that the board room told, in seconds since 1970.

    >>> seconds_of("1970-01-01T00:01:00Z")
    60
    """
    return int(datetime.fromisoformat(told).timestamp())


def until(told: str, now: int) -> str:
    """Return how far away a moment is.

    >>> until("1970-01-03T00:00:00Z", 0), until("1970-01-01T00:00:00Z", 7200)
    ('in 2 days', '2 hours ago')
    """
    away = seconds_of(told) - now
    return f"in {span(away)}" if away > 0 else f"{span(-away)} ago"


def stretch(seconds: int) -> str:
    """Return a length of time to the second; a day is 24 hours, as it begins anywhere.

    >>> stretch(86400), stretch(3600), stretch(604800), stretch(5400), stretch(61)
    ('24 hours', 'hour', '7 days', '90 minutes', '61 seconds')
    """
    if seconds == 86400:
        return "24 hours"
    unit, name = next(each for each in _UNITS if seconds % each[0] == 0)
    return name if seconds == unit else count(seconds // unit, name)


def size(number: int) -> str:
    """Return so many bytes.

    >>> size(100_000_000), size(20_000), size(512), size(2**30)
    ('100 MB', '20 kB', '512 bytes', '1.07 GB')
    """
    for power, name in ((9, "GB"), (6, "MB"), (3, "kB")):
        if number >= 10**power:
            return f"{number / 10**power:.3g} {name}"
    return count(number, "byte")


def listed(words: Sequence[str]) -> str:
    """Return words as one speaks them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def percent(beta: float) -> str:
    """Return a confidence in percent: never more than it is, and so never all.

    >>> percent(0.05), percent(0.001), percent(1e-9)
    ('95', '99.9', '99.9999')
    """
    return f"{math.floor(1e6 * (1 - beta) + 1e-6) / 1e4:g}"


def when(told: str) -> Markup:
    """Return a moment, as the board room tells it, for people; a script makes it local time.

    >>> print(when("2026-11-16T14:05:00Z"))
    <time datetime="2026-11-16T14:05:00Z">2026-11-16 14:05 UTC</time>
    """
    plain = str(escape(told))
    told = f'<time datetime="{plain}">{plain[:10]} {plain[11:16]} UTC</time>'
    return Markup(told)  # noqa: S704 - escaped above


class State(NamedTuple):
    """How a board stands: a word or two, the class of its badge, and a sentence."""

    word: str
    tone: str
    sentence: str


_STATES = {
    "paused": State("paused", "badge-wait", "The organiser has paused the board; try later."),
    "restored": State(
        "restored", "badge-wait", "The board was restored and waits for its organiser."
    ),
    "closing": State("closing", "badge-wait", "The board is being closed."),
    "closed": State("closed", "", "The board is closed and takes no more submissions."),
    "moved": State("moved", "badge-bad", "The board has moved to another server."),
}


def is_over(board: Mapping[str, Any]) -> bool:
    """Tell whether a board will never again take a question.

    >>> is_over({"status": "closed"}), is_over({"status": "paused"})
    (True, False)
    """
    return board["status"] in {"closing", "closed", "moved"}


def is_full(board: Mapping[str, Any]) -> bool:
    """Tell whether all places for teams are known to be taken; hidden boards do not tell.

    >>> is_full({"registered": 4, "teams": 4}), is_full({"registered": None, "teams": 4})
    (True, False)
    """
    return board["registered"] is not None and board["registered"] >= board["teams"]


def state_of(board: Mapping[str, Any], now: int) -> State:
    """Return how a board stands: one that is open may still have no phase to ask in.

    >>> board = {"status": "open", "phase": None, "phases": [
    ...     {"name": "main", "start": "1970-01-02T00:00:00Z", "end": None}]}
    >>> state_of(board, 0).word
    'not open yet'
    >>> state_of({**board, "phase": "main"}, 90_000).sentence
    'The board is open.'
    """
    if board["status"] != "open":
        return _STATES[board["status"]]
    if board["phase"] is not None:
        name = "" if len(board["phases"]) == 1 else f" in its phase {board['phase']}"
        return State("open", "badge-good", f"The board is open{name}.")
    starts = [each["start"] for each in board["phases"] if each["start"] is not None]
    coming = next((each for each in starts if seconds_of(each) > now), None)
    if coming is None:
        return State(
            "deadline passed", "badge-wait", "The deadline has passed; the organiser closes it."
        )
    word = "not open yet" if coming == board["phases"][0]["start"] else "between phases"
    return State(word, "badge-wait", f"Questions are taken {until(coming, now)}.")
