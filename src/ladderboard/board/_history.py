"""History: the best release over time with its certificate, and the teams' activity."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_time
from ladderboard.board._rules import round_for_display
from ladderboard.holdout import Meter

if TYPE_CHECKING:
    from ladderboard.board._board import Board
    from ladderboard.board._rules import DisplayRules
    from ladderboard.board._tables import BoardRow
    from ladderboard.bounds import Certificate
    from ladderboard.ledger import ChainState, ReadView
    from ladderboard.mechanisms import Mechanism

MAX_POINTS = 100  # points besides the last
_OWN_FIELDS = ("number", "time", "loss", "display", "improved")

# Of many records every second, every third and so on, always with the first and the last. The
# choice changes only every MAX_POINTS records, so most certificates are in the cache.
_THINNED_RECORDS = (
    "SELECT entry, value, records FROM ("
    "SELECT main.record.entry AS entry, main.record.value AS value, COUNT(*) OVER () AS records, "
    "ROW_NUMBER() OVER (ORDER BY main.record.entry) - 1 AS place "
    "FROM main.record JOIN main.team ON main.team.book = main.record.book "
    "AND main.team.number = main.record.team "
    "WHERE main.record.book = ? AND main.record.epoch = ? AND main.record.entry < ? "
    "AND main.team.disqualified = 0) AS found "
    "WHERE place = records - 1 "
    "OR place / ((records - 1) / ? + 1) * ((records - 1) / ? + 1) = place ORDER BY entry"
)
_CERTIFICATE_RULES = ("questions", "beta", "worth", "weighted", "declared", "zero_one", "corrected")
Values = tuple[tuple[str, Any], ...]
MAX_BINS = 60
_MAX_TEAMS = 100

_HOUR, _DAY = 3600, 86_400
_BIN_WIDTHS = (
    *(60, 120, 300, 600, 900, 1800),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY),
)

_FIRST_AND_LAST_TIME = "SELECT MIN(time), MAX(time) FROM main.submission WHERE book = ?"
# COUNT instead of SUM, which is not an integer in PostgreSQL.
_COUNT_BY_TEAM = (
    "SELECT main.team.id, main.team.name, main.team.kind, main.team.disqualified, COUNT(*), "
    "COUNT(CASE WHEN main.submission.improved <> 0 THEN 1 END), MAX(main.submission.time), "
    "COUNT(*) OVER () FROM main.submission JOIN main.team "
    "ON main.team.book = main.submission.book AND main.team.number = main.submission.team "
    "WHERE main.submission.book = ? "
    "GROUP BY main.team.number, main.team.id, main.team.name, main.team.kind, "
    "main.team.disqualified ORDER BY COUNT(*) DESC, main.team.number LIMIT ?"
)
_COUNT_BY_TIME = (
    "SELECT (time - ?) / ? AS bin, COUNT(*), COUNT(CASE WHEN improved <> 0 THEN 1 END) "
    "FROM main.submission WHERE book = ? GROUP BY bin ORDER BY bin"
)


class RecordHistory(NamedTuple):
    """Records, each with the state of the book right after it, and their total number."""

    records: list[tuple[ChainState, float]]
    total: int


class CurrentState(NamedTuple):
    """The book's state, the time, the best value shown, and the best of all teams."""

    chain_state: ChainState
    time: int
    best: float | None
    best_of_all: float | None


def read_records(view: ReadView, epoch: int, state: ChainState) -> RecordHistory:
    """Return the records of an epoch up to a state of the book, thinned if there are many."""
    rows = view.query(
        _THINNED_RECORDS, (view.book_id, epoch, state.entries, MAX_POINTS, MAX_POINTS)
    )
    states = view.chain_states_at([entry + 1 for entry, _, _ in rows])
    values = [value for _, value, _ in rows]
    return RecordHistory(list(zip(states, values, strict=True)), rows[0][2] if rows else 0)


def serialize_history(
    board: Board, row: BoardRow, past: RecordHistory, now: CurrentState
) -> dict[str, Any]:
    """Return the points of a chart: one for each record, and one for now.

    Half of a certificate's beta is for the declared budget and half for any number of questions,
    so it holds at all times, also after an amendment. The last bound is about the best of all
    models, including those of disqualified teams, which are not shown.
    """
    display = board.rules_of(row).display
    meter = board.meter(row, now.chain_state)
    rules = _certificate_rules(meter)
    points = [
        _cached_point(meter.mechanism, rules, display, state, (value, value))
        for state, value in past.records
    ]
    if now.best is not None and now.best_of_all is not None:
        last = _cached_point(
            meter.mechanism, rules, display, now.chain_state, (now.best, now.best_of_all)
        )
        points.append({**last, "time": format_time(now.time), "entry": None})
    return {
        "display": display.describe(),
        "beta": meter.rules["beta"],
        "points": points,
        "records": past.total,
        "thinned": len(past.records) < past.total,
    }


def serialize_own_history(
    display: DisplayRules, submissions: list[dict[str, Any]], now: int | None, *, thinned: bool
) -> dict[str, Any]:
    """Return the points of a team's own chart from its serialized submissions."""
    return {
        "now": None if now is None else format_time(now),
        "display": display.describe(),
        "points": [
            {
                **{key: submission[key] for key in _OWN_FIELDS},
                "shown": round_for_display(display, submission["score_loss"]),
            }
            for submission in submissions
        ],
        "thinned": thinned,
    }


@lru_cache(maxsize=4096)
def _cached_point(
    mechanism: Mechanism,
    rules: Values,
    display: DisplayRules,
    state: ChainState,
    best: tuple[float, float],
) -> dict[str, Any]:
    """Return a point of the chart; it is cached, so callers must not change it.

    ``best`` holds the value shown and the value that the bound is about.
    """
    released, least = best
    low, high, vacuous = _interval(
        _certificate(mechanism, rules, _without_position(state), least), least
    )
    return {
        "time": format_time(state.time),
        "entry": state.entries - 1,
        "used": state.asked + state.charged,
        "released": released,
        "display": round_for_display(display, released),
        "bound": {
            "least": least,
            "low": low,
            "high": high,
            "vacuous": vacuous,
            "display": _round_interval(display, low, high),
        },
    }


def cached_certificate(meter: Meter, released: float | None) -> Certificate:
    """Return a meter's certificate from a cache that holds while nothing changes."""
    return _certificate(
        meter.mechanism, _certificate_rules(meter), _without_position(meter.chain_state), released
    )


def _certificate_rules(meter: Meter) -> Values:
    return tuple(
        (certificate_rule, meter.rules[certificate_rule])
        for certificate_rule in _CERTIFICATE_RULES
        if certificate_rule in meter.rules
    )


def _without_position(state: ChainState) -> ChainState:
    """Clear the fields that a certificate does not depend on, for the cache key."""
    return state._replace(entries=0, head=b"", time=0, closed=False)


@lru_cache(maxsize=4096)
def _certificate(
    mechanism: Mechanism, rules: Values, state: ChainState, released: float | None
) -> Certificate:
    """Return a certificate; it depends on public values only, so caching reveals nothing."""
    return Meter(mechanism, dict(rules), state).certificate(released)


def _interval(certificate: Certificate, released: float) -> tuple[float, float, bool]:
    """Return the ends of a certificate in losses, and whether it is vacuous."""
    centre, (smallest, largest) = released if certificate.differences else 0.0, certificate.span
    low, high = max(centre + certificate.low, smallest), min(centre + certificate.high, largest)
    return low, high, certificate.vacuous or (low, high) == certificate.span


def _round_interval(display: DisplayRules, low: float, high: float) -> dict[str, float]:
    """Return an interval in the metric, rounded outwards so that it stays true."""
    smallest, largest = map(float, display.format_interval(low, high))
    return {"low": smallest, "high": largest}


def read_activity(view: ReadView) -> dict[str, Any]:
    """Return the most active teams, the total of the others, and counts in bins of time."""
    teams = view.query(_COUNT_BY_TEAM, (view.book_id, _MAX_TEAMS))
    bins = _count_in_bins(view)
    questions = sum(time_bin["questions"] for time_bin in bins)
    listed = sum(row[4] for row in teams)
    return {
        "questions": questions,
        "teams": [
            {
                "team": {"id": team, "name": name},
                "baseline": kind == "baseline",
                "disqualified": bool(disqualified),
                "questions": count,
                "improved": improved,
                "last": format_time(last),
            }
            for team, name, kind, disqualified, count, improved, last, _ in teams
        ],
        "others": {
            "teams": teams[0][7] - len(teams) if teams else 0,
            "questions": questions - listed,
        },
        "bins": bins,
    }


def _count_in_bins(view: ReadView) -> list[dict[str, Any]]:
    first, last = view.query(_FIRST_AND_LAST_TIME, (view.book_id,))[0]
    if first is None:
        return []
    start, width = choose_bins(first, last)
    counts_by_bin = {
        bin_number: counts
        for bin_number, *counts in view.query(_COUNT_BY_TIME, (start, width, view.book_id))
    }
    return [
        {
            "start": format_time(start + bin_number * width),
            "end": format_time(start + (bin_number + 1) * width),
            "questions": counts_by_bin.get(bin_number, (0, 0))[0],
            "improved": counts_by_bin.get(bin_number, (0, 0))[1],
        }
        for bin_number in range((last - start) // width + 1)
    ]


def choose_bins(first: int, last: int) -> tuple[int, int]:
    """Return the start and width of the bins: at most ``MAX_BINS``, with round ends.

    >>> choose_bins(90, 3000)
    (60, 60)
    >>> choose_bins(0, 100 * 86_400)
    (0, 172800)
    """
    for width in _BIN_WIDTHS:
        start = first - first % width
        if (last - start) // width < MAX_BINS:
            return start, width
    width = _DAY * (1 + (last - first) // (_DAY * (MAX_BINS - 1)))
    return first - first % _DAY, width
