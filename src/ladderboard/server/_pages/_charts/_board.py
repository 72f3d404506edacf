"""The charts of a board, from the data of a :class:`View`, each with a summary in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from ladderboard._formatting import format_count, format_time
from ladderboard.server._pages._charts._axes import format_day, format_minute
from ladderboard.server._pages._charts._bars import Bar, Bin, bar_chart, histogram
from ladderboard.server._pages._charts._lines import ChartStep, Mark, step_chart
from ladderboard.server._pages._wording import parse_time

_MAX_TEAMS = 20
_UTC = "Times are in UTC."


def history_chart(history: Mapping[str, Any], *, key: str = "history") -> Markup | None:
    """Return the best score of a board over time, with its bounds, from :meth:`View.history`.

    The chart ends at the end of the current minute, so it can be cached for that long.
    """
    if not history["points"]:
        return None
    *records, now = history["points"]
    minute = -(-parse_time(now["time"]) // 60) * 60
    points = [*records, {**now, "time": format_time(minute)}]
    rounded = {**history, "points": points}
    return _draw_history(_HistoryKey(_drawn_values(rounded), rounded), key)


@dataclass(frozen=True)
class _HistoryKey:
    """A history as a cache key: histories with the same drawn values are equal."""

    drawn_values: tuple[Any, ...]
    history: Mapping[str, Any] = field(compare=False)


def _drawn_values(history: Mapping[str, Any]) -> tuple[Any, ...]:
    points = tuple(
        (
            point["time"],
            point["used"],
            point["display"],
            bound["vacuous"],
            *bound["display"].values(),
        )
        for point in history["points"]
        for bound in (point["bound"],)
    )
    return (
        history["beta"],
        history["records"],
        history["thinned"],
        *history["display"].items(),
        *points,
    )


@lru_cache(maxsize=64)
def _draw_history(history_key: _HistoryKey, key: str) -> Markup | None:
    """Return the chart of a history, cached by what is drawn."""
    history = history_key.history
    points, display = history["points"], history["display"]
    metric, digits = display["name"], display["digits"]
    steps = [_history_step(point) for point in points]
    has_band = any(step.low is not None for step in steps)
    confidence = _confidence_text(history["beta"])
    marks = [
        Mark(
            step.time,
            step.value,
            f"{step.value:.{digits}f} on {format_minute(step.time)}, at submission "
            f"{point['used']:,}{_bound_text(step, digits)}",
        )
        for step, point in zip(steps[:-1], points[:-1], strict=True)
    ]
    first, last = steps[0], steps[-1]
    summary = (
        f"The best {metric} went from {first.value:.{digits}f} on {format_day(first.time)} to "
        f"{last.value:.{digits}f} in {format_count(history['records'], 'record')}, with "
        f"{_count_submissions(points[-1]['used'])} so far."
    )
    if last.low is not None:
        summary += (
            f" The best model so far is truly worth{_bound_text(last, digits, '')}, {confidence}."
        )
    caption = "The line is the best release, with a dot for every record"
    caption += ", of which not all are shown. " if history["thinned"] else ". "
    if has_band:
        caption += (
            f"The band is where the best true {metric} so far lies, {confidence}, as computed "
            "at each record; the bar at the end is the current bound. "
        )
    else:
        caption += "There is no guarantee for the best true score. "
    return step_chart(
        steps,
        marks,
        key=key,
        title=f"Best {metric} over time",
        summary=summary,
        y_title=f"{metric}, {display['direction']} is better",
        digits=digits,
        caption=caption + _UTC,
    )


def _history_step(point: Mapping[str, Any]) -> ChartStep:
    bound, time = point["bound"], parse_time(point["time"])
    if bound["vacuous"]:
        return ChartStep(time, point["display"])
    return ChartStep(time, point["display"], bound["display"]["low"], bound["display"]["high"])


def _bound_text(step: ChartStep, digits: int, before: str = "; truly") -> str:
    if step.low is None:
        return ""
    return f"{before} between {step.low:.{digits}f} and {step.high:.{digits}f}"


def _confidence_text(beta: float) -> str:
    """Return a confidence as text.

    >>> _confidence_text(0.05), _confidence_text(1e-9)
    ('with probability at least 95%', 'except with probability 1e-09')
    """
    if beta < 1e-3:
        return f"except with probability {beta:g}"
    return f"with probability at least {100 - 100 * beta:.6g}%"


def _count_submissions(number: int) -> str:
    return format_count(number, "submission")


def team_history_chart(history: Mapping[str, Any], *, key: str = "own") -> Markup | None:
    """Return the scores released to a team over time, from :meth:`View.own_history`."""
    display = history["display"]
    metric, digits = display["name"], display["digits"]
    points = [point for point in history["points"] if point["display"] is not None]
    if not points:
        return None
    steps = [ChartStep(parse_time(point["time"]), point["display"]) for point in points]
    marks = [
        Mark(
            step.time,
            step.value if point["improved"] else point["shown"],
            f"Submission {point['number']}: {step.value:.{digits}f} on {format_minute(step.time)}",
            large=point["improved"],
        )
        for step, point in zip(steps, points, strict=True)
    ]
    improved = sum(point["improved"] for point in points)
    summary = (
        f"After {format_count(len(history['points']), 'submission')}, of which {improved:,} "
        f"improved, the release is {steps[-1].value:.{digits}f}."
    )
    scored = any(point["shown"] is not None for point in points if not point["improved"])
    marked_as = "a small one, at its own score, did not" if scored else "a tick at the foot did not"
    caption = (
        "The line is what was released. A large dot is a submission that improved it; "
        f"{marked_as}. "
    )
    return step_chart(
        steps,
        marks,
        key=key,
        title=f"{metric} over time",
        summary=summary,
        y_title=f"{metric}, {display['direction']} is better",
        digits=digits,
        until=None if history["now"] is None else parse_time(history["now"]),
        caption=caption + ("Older ones are left out. " if history["thinned"] else "") + _UTC,
    )


def team_activity_chart(activity: Mapping[str, Any], *, key: str = "teams") -> Markup | None:
    """Return the submissions of the most active teams, from :meth:`View.activity`."""
    teams, others = activity["teams"], activity["others"]
    left_out = teams[_MAX_TEAMS:]
    other_count = len(left_out) + others["teams"]
    bars = [
        Bar(
            team["team"]["name"],
            team["questions"],
            f"{team['team']['name']}: {_count_submissions(team['questions'])}, "
            f"{team['improved']:,} of which improved",
        )
        for team in teams[:_MAX_TEAMS]
    ]
    if not bars:
        return None
    caption = ""
    if other_count:  # one bar for all of them would dwarf the others
        questions = sum(team["questions"] for team in left_out) + others["questions"]
        caption = (
            f"The most active teams. {other_count:,} more: {_count_submissions(questions)} in all."
        )
    everybody = format_count(len(teams) + others["teams"], "team")
    summary = f"{_count_submissions(activity['questions'])} by {everybody}"
    summary += f"; most by {bars[0].name}, with {bars[0].value:,}."
    title = "Submissions by team"
    return bar_chart(bars, key=key, title=title, summary=summary, caption=caption)


def activity_histogram(activity: Mapping[str, Any], *, key: str = "times") -> Markup | None:
    """Return the number of submissions over time, from :meth:`View.activity`."""
    bins = [
        Bin(start, parse_time(bin_["end"]), bin_["questions"],
            f"{_count_submissions(bin_['questions'])} from {format_minute(start)}")
        for bin_ in activity["bins"]
        for start in [parse_time(bin_["start"])]
    ]  # fmt: skip
    if not bins:
        return None
    busiest = max(bins, key=lambda bin_: bin_.value)
    summary = (
        f"{_count_submissions(activity['questions'])} between {format_minute(bins[0].start)} and "
        f"{format_minute(bins[-1].end)}; most of them, {busiest.value:,}, from "
        f"{format_minute(busiest.start)} on."
    )
    return histogram(
        bins,
        key=key,
        title="Submissions over time",
        summary=summary,
        y_title="Submissions",
        caption=_UTC,
    )
