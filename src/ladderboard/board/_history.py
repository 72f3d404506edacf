"""History: the best release over time, and what could be promised at each step."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.board._rules import displayed, moment
from ladderboard.holdout import Meter

if TYPE_CHECKING:
    from ladderboard.board._board import Board
    from ladderboard.board._rules import Display
    from ladderboard.board._tables import BoardRow
    from ladderboard.bounds import Certificate
    from ladderboard.ledger import At, SqlReading
    from ladderboard.mechanisms import Mechanism

__all__ = ["MOST", "Now", "Past", "certify", "read_past", "tell_history", "tell_own"]

MOST = 100  # points besides the last
_OWN = ("number", "time", "loss", "display", "improved")

# Of many records every second, every third and so on, always with the first and the last: which
# ones changes only every MOST records, so most certificates were reckoned before.
_SOME = (
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


class Past(NamedTuple):
    """Records, each with where the book stood right after it, and how many there are in all."""

    records: list[tuple[At, float]]
    all: int


class Now(NamedTuple):
    """How things stand: where the book is, the time, the best that is shown, and that of all."""

    at: At
    time: int
    best: float | None
    least: float | None


def read_past(view: SqlReading, epoch: int, at: At) -> Past:
    """Return the records of an epoch before a horizon, thinned out if there are many."""
    rows = view.run(_SOME, (view.number, epoch, at.entries, MOST, MOST))
    stood = view.at_entries([entry + 1 for entry, _, _ in rows])
    values = [value for _, value, _ in rows]
    return Past(list(zip(stood, values, strict=True)), rows[0][2] if rows else 0)


def tell_history(board: Board, row: BoardRow, past: Past, now: Now) -> dict[str, Any]:
    """Return the points of a chart: one for each record, and one for how things stand now.

    A certificate counts with the budget at the start and with any number of questions, half and
    half, so that it holds at all times whether the budget was amended or not. A record was the
    best of all models when it came; the bound of now is about the best of all of them, too,
    although who was disqualified is not shown.
    """
    display = board.rules_of(row).display
    meter = board.meter(row, now.at)
    rules = _values(meter)
    points = [
        _point(meter.mechanism, rules, display, stood, (value, value))
        for stood, value in past.records
    ]
    if now.best is not None and now.least is not None:
        last = _point(meter.mechanism, rules, display, now.at, (now.best, now.least))
        points.append({**last, "time": moment(now.time), "entry": None})
    return {
        "display": display.describe(),
        "beta": meter.rules["beta"],
        "points": points,
        "records": past.all,
        "thinned": len(past.records) < past.all,
    }


def tell_own(
    display: Display, told: list[dict[str, Any]], now: int | None, *, thinned: bool
) -> dict[str, Any]:
    """Return the points of a team's own chart, from what it was told of its submissions."""
    return {
        "now": None if now is None else moment(now),
        "display": display.describe(),
        "points": [
            {**{key: each[key] for key in _OWN}, "shown": displayed(display, each["score_loss"])}
            for each in told
        ],
        "thinned": thinned,
    }


_RULES = ("questions", "beta", "worth", "weighted", "declared", "zero_one", "corrected")
Values = tuple[tuple[str, Any], ...]


@lru_cache(maxsize=4096)
def _point(
    mechanism: Mechanism, rules: Values, display: Display, at: At, best: tuple[float, float]
) -> dict[str, Any]:
    """Return a point, which nobody may change: who asks again gets the same one.

    ``best`` is what is shown, and what the bound is about.
    """
    released, least = best
    low, high, vacuous = _ends(_certificate(mechanism, rules, _plain(at), least), least)
    return {
        "time": moment(at.time),
        "entry": at.entries - 1,
        "used": at.asked + at.charged,
        "released": released,
        "display": displayed(display, released),
        "bound": {
            "least": least,
            "low": low,
            "high": high,
            "vacuous": vacuous,
            "display": _outwards(display, low, high),
        },
    }


def certify(meter: Meter, released: float | None) -> Certificate:
    """Return a meter's certificate, which is found again while nothing changes."""
    return _certificate(meter.mechanism, _values(meter), _plain(meter.at), released)


def _values(meter: Meter) -> Values:
    return tuple((each, meter.rules[each]) for each in _RULES if each in meter.rules)


def _plain(at: At) -> At:
    """Leave out what a certificate does not depend on, so that it is found again."""
    return at._replace(entries=0, head=b"", time=0, closed=False)


@lru_cache(maxsize=4096)
def _certificate(
    mechanism: Mechanism, rules: Values, at: At, released: float | None
) -> Certificate:
    """Return a function of public values alone: who asks twice learns nothing, and waits once."""
    return Meter(mechanism, dict(rules), at).certificate(released)


def _ends(found: Certificate, released: float) -> tuple[float, float, bool]:
    """Return the ends of a certificate in losses, and whether they say nothing."""
    centre, (least, most) = released if found.differences else 0.0, found.span
    low, high = max(centre + found.low, least), min(centre + found.high, most)
    return low, high, found.vacuous or (low, high) == found.span


def _outwards(display: Display, low: float, high: float) -> dict[str, float]:
    """Return an interval as it is displayed, with ends that are still true when rounded."""
    least, most = map(float, display.ends(low, high))
    return {"low": least, "high": most}
