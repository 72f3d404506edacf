"""Activity: who asked how much, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard.board._rules import moment

if TYPE_CHECKING:
    from ladderboard.ledger import SqlReading

__all__ = ["BINS", "read_activity"]

BINS = 60
_TEAMS = 100

_HOUR, _DAY = 3600, 86_400
_WIDTHS = (
    *(60, 120, 300, 600, 900, 1800),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY),
)

_ENDS = "SELECT MIN(time), MAX(time) FROM main.submission WHERE book = ?"
# COUNT and not SUM, which in PostgreSQL is no whole number.
_BY_TEAM = (
    "SELECT main.team.id, main.team.name, main.team.kind, main.team.disqualified, COUNT(*), "
    "COUNT(CASE WHEN main.submission.improved <> 0 THEN 1 END), MAX(main.submission.time), "
    "COUNT(*) OVER () FROM main.submission JOIN main.team "
    "ON main.team.book = main.submission.book AND main.team.number = main.submission.team "
    "WHERE main.submission.book = ? "
    "GROUP BY main.team.number, main.team.id, main.team.name, main.team.kind, "
    "main.team.disqualified ORDER BY COUNT(*) DESC, main.team.number LIMIT ?"
)
_BY_TIME = (
    "SELECT (time - ?) / ? AS bin, COUNT(*), COUNT(CASE WHEN improved <> 0 THEN 1 END) "
    "FROM main.submission WHERE book = ? GROUP BY bin ORDER BY bin"
)


def read_activity(view: SqlReading) -> dict[str, Any]:
    """Return the most active teams, what the others asked in all, and questions in bins of time."""
    teams = view.run(_BY_TEAM, (view.number, _TEAMS))
    bins = _bins(view)
    asked = sum(each["questions"] for each in bins)
    listed = sum(row[4] for row in teams)
    return {
        "questions": asked,
        "teams": [
            {
                "team": {"id": team, "name": name},
                "baseline": kind == "baseline",
                "disqualified": bool(disqualified),
                "questions": count,
                "improved": improved,
                "last": moment(last),
            }
            for team, name, kind, disqualified, count, improved, last, _ in teams
        ],
        "others": {
            "teams": teams[0][7] - len(teams) if teams else 0,
            "questions": asked - listed,
        },
        "bins": bins,
    }


def _bins(view: SqlReading) -> list[dict[str, Any]]:
    first, last = view.run(_ENDS, (view.number,))[0]
    if first is None:
        return []
    start, width = spread(first, last)
    found = {at: counts for at, *counts in view.run(_BY_TIME, (start, width, view.number))}
    return [
        {
            "start": moment(start + at * width),
            "end": moment(start + (at + 1) * width),
            "questions": found.get(at, (0, 0))[0],
            "improved": found.get(at, (0, 0))[1],
        }
        for at in range((last - start) // width + 1)
    ]


def spread(first: int, last: int) -> tuple[int, int]:
    """Return where bins start and how wide they are: there are few, and their ends are round.

    >>> spread(90, 3000)
    (60, 60)
    >>> spread(0, 100 * 86_400)
    (0, 172800)
    """
    for width in _WIDTHS:
        start = first - first % width
        if (last - start) // width < BINS:
            return start, width
    width = _DAY * (1 + (last - first) // (_DAY * (BINS - 1)))
    return first - first % _DAY, width
