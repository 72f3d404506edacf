"""Standings: teams ranked by their releases, a page at a time."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.ledger import ReadView

MAX_PAGE_ROWS = 1000  # rows of a page
_MAC_BYTES = 12

# Ordered by release, then time; teams without a release come last, in order of registration. A
# page starts after the last row of the one before, so every page costs the same.
_RANKED_TEAMS = (
    "SELECT number, id, name, kind, {0}released, {0}since, {0}used, {0}last FROM main.team "
    "WHERE book = ? AND disqualified = 0 AND {0}released IS NOT NULL AND {0}released >= ? "
    "AND ({0}released > ? OR {0}since > ? OR ({0}since = ? AND number > ?)) "
    "ORDER BY {0}released, {0}since, number LIMIT ?"
)
_UNRANKED_TEAMS = (
    "SELECT number, id, name, kind, {0}released, {0}since, {0}used, {0}last FROM main.team "
    "WHERE book = ? AND disqualified = 0 AND {0}released IS NULL AND {0}used IS NOT NULL "
    "AND number > ? ORDER BY number LIMIT ?"
)
_TEAMS_WITH_RELEASE = (
    "SELECT number FROM main.team WHERE book = ? AND disqualified = 0 AND kind = 'team' "
    "AND {0}released = ? LIMIT 2"
)


class TeamStanding(NamedTuple):
    """A row; ``rank`` is None for baselines and for teams without a release.

    ``tied`` is whether another team has the same rank, on this page or another.
    """

    rank: int | None
    tied: bool
    number: int
    id: str
    name: str
    kind: str
    released: float | None
    since: int | None
    used: int
    last: int | None


class StandingsPage(NamedTuple):
    """Some rows, and the cursor of the next page; None after the last."""

    rows: list[TeamStanding]
    next: str | None


class _PagePosition(NamedTuple):
    """Where a page ended: teams counted, the last rank and value, and the last row."""

    counted: int
    rank: int
    ranked: float
    released: float | None
    since: int
    number: int


_START = _PagePosition(0, 0, -1.0, -1.0, -1, -1)


def read_standings(
    view: ReadView,
    *,
    as_frozen: bool,
    limit: int = 100,
    cursor: str | None = None,
    mac: Callable[[str], bytes],
) -> StandingsPage:
    """Return a page of the standings: the current ones, or those at the freeze (``as_frozen``).

    Equal releases have equal ranks; disqualified teams are left out. The cursor holds the ranks
    counted so far, so it carries a MAC: a forged link cannot move a team up.
    """
    if not 1 <= limit <= MAX_PAGE_ROWS:
        raise InvalidSetting(f"limit must be between 1 and {MAX_PAGE_ROWS}.")
    position = _START if cursor is None else _decode_cursor(cursor, mac)
    prefix = "seen_" if as_frozen else ""
    rows: list[TeamStanding] = []
    if position.released is not None:
        value = position.released
        page_rows = view.query(
            _RANKED_TEAMS.format(prefix),
            (
                view.book_id,
                value,
                value,
                position.since,
                position.since,
                position.number,
                limit + 1,
            ),
        )
        for row in page_rows[:limit]:
            position = _advance(position, row)
            rows.append(TeamStanding(position.rank if row[3] == "team" else None, False, *row))
        rows = _mark_ties(view, prefix, rows)
        if len(page_rows) > limit:
            return StandingsPage(rows, _encode_cursor(position, mac))
        position = position._replace(released=None, since=-1, number=-1)
    missing = limit - len(rows)
    page_rows = view.query(
        _UNRANKED_TEAMS.format(prefix), (view.book_id, position.number, missing + 1)
    )
    for row in page_rows[:missing]:
        position = position._replace(number=row[0])
        rows.append(TeamStanding(None, False, *row))
    return StandingsPage(rows, _encode_cursor(position, mac) if len(page_rows) > missing else None)


def _advance(position: _PagePosition, row: tuple[Any, ...]) -> _PagePosition:
    """Return the position after a row; baselines are not counted for ranks."""
    number, kind, released, since = row[0], row[3], row[4], row[5]
    if kind != "team":
        return position._replace(released=released, since=since, number=number)
    counted = position.counted + 1
    rank = position.rank if released == position.ranked else counted
    return _PagePosition(counted, rank, released, released, since, number)


def _mark_ties(view: ReadView, prefix: str, rows: list[TeamStanding]) -> list[TeamStanding]:
    """Return the rows with ties marked, also ties with teams on neighbouring pages."""
    teams = [row for row in rows if row.rank is not None]
    rank_counts = Counter(team.rank for team in teams)
    tied = {rank for rank, count in rank_counts.items() if count > 1}
    for row in (*teams[:1], *teams[-1:]):
        equal = () if row.rank in tied else (view.book_id, row.released)
        if equal and len(view.query(_TEAMS_WITH_RELEASE.format(prefix), equal)) > 1:
            tied.add(row.rank)
    return [row._replace(tied=True) if row.rank in tied else row for row in rows]


def _encode_cursor(position: _PagePosition, mac: Callable[[str], bytes]) -> str:
    payload = json.dumps(position)
    return (
        base64.urlsafe_b64encode(mac(payload)[:_MAC_BYTES] + payload.encode()).decode().rstrip("=")
    )


def _decode_cursor(cursor: str, mac: Callable[[str], bytes]) -> _PagePosition:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        read = base64.b64decode(padded, b"-_", validate=True)
        payload = read[_MAC_BYTES:].decode("ascii")
        if not hmac.compare_digest(mac(payload)[:_MAC_BYTES], read[:_MAC_BYTES]):
            raise ValueError
        return _PagePosition(*json.loads(payload))
    except (binascii.Error, TypeError, ValueError):
        raise InvalidSetting("Invalid cursor. Start without one.") from None
