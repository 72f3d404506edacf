"""Standings: teams by what was released to them, a page at a time."""

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

    from ladderboard.ledger import SqlReadView

MAX_PAGE_ROWS = 1000  # rows of a page
_SIGNATURE_BYTES = 12

# By release, then by time; who has none comes last, in the order in which teams came. What comes
# after a page is found by its last row, so a page costs the same wherever it stands.
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
    """A row: ``rank`` is None for who has no record and for baselines.

    ``tied`` is whether another team has the same rank, on whichever page it stands.
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
    """Some rows, and what to ask the next page with; None after the last."""

    rows: list[TeamStanding]
    next: str | None


class _PagePosition(NamedTuple):
    """Where a page ended: teams counted, the last one's rank and value, and the row itself."""

    counted: int
    rank: int
    ranked: float
    released: float | None
    since: int
    number: int


_START = _PagePosition(0, 0, -1.0, -1.0, -1, -1)


def read_standings(
    view: SqlReadView,
    *,
    seen: bool,
    limit: int = 100,
    cursor: str | None = None,
    sign: Callable[[str], bytes],
) -> StandingsPage:
    """Return a page of the standings: those of now, or those that were ``seen`` at the freeze.

    Equal releases have equal ranks. Whoever is disqualified is not there. A cursor tells the ranks
    so far, so it is signed: a link cannot make somebody the first.
    """
    if not 1 <= limit <= MAX_PAGE_ROWS:
        raise InvalidSetting(f"limit must be between 1 and {MAX_PAGE_ROWS}.")
    position = _START if cursor is None else _decode_cursor(cursor, sign)
    prefix = "seen_" if seen else ""
    rows: list[TeamStanding] = []
    if place.released is not None:
        value = place.released
        found = view.query(
            _RANKED_TEAMS.format(prefix),
            (view.book_id, value, value, place.since, place.since, place.number, limit + 1),
        )
        for row in page_rows[:limit]:
            position = _advance(position, row)
            rows.append(TeamStanding(position.rank if row[3] == "team" else None, False, *row))
        rows = _mark_ties(view, prefix, rows)
        if len(page_rows) > limit:
            return StandingsPage(rows, _encode_cursor(position, sign))
        position = position._replace(released=None, since=-1, number=-1)
    wanted = limit - len(rows)
    found = view.query(_UNRANKED_TEAMS.format(prefix), (view.book_id, place.number, wanted + 1))
    for row in found[:wanted]:
        place = place._replace(number=row[0])
        rows.append(TeamStanding(None, False, *row))
    return StandingsPage(rows, _encode_cursor(position, sign) if len(page_rows) > wanted else None)


def _advance(position: _PagePosition, row: tuple[Any, ...]) -> _PagePosition:
    """Return where a row leaves off; a baseline takes no rank from anybody, and gives none."""
    number, kind, released, since = row[0], row[3], row[4], row[5]
    if kind != "team":
        return position._replace(released=released, since=since, number=number)
    counted = position.counted + 1
    rank = position.rank if released == position.ranked else counted
    return _PagePosition(counted, rank, released, released, since, number)


def _mark_ties(view: SqlReadView, prefix: str, rows: list[TeamStanding]) -> list[TeamStanding]:
    """Return the rows with who is tied; at the ends of a page it may be with who is not on it."""
    teams = [each for each in rows if each.rank is not None]
    many = Counter(each.rank for each in teams)
    tied = {rank for rank, count in many.items() if count > 1}
    for each in (*teams[:1], *teams[-1:]):
        equal = () if each.rank in tied else (view.book_id, each.released)
        if equal and len(view.query(_TEAMS_WITH_RELEASE.format(prefix), equal)) > 1:
            tied.add(each.rank)
    return [each._replace(tied=True) if each.rank in tied else each for each in rows]


def _encode_cursor(position: _PagePosition, sign: Callable[[str], bytes]) -> str:
    payload = json.dumps(position)
    return (
        base64.urlsafe_b64encode(sign(payload)[:_SIGNATURE_BYTES] + payload.encode())
        .decode()
        .rstrip("=")
    )


def _decode_cursor(cursor: str, sign: Callable[[str], bytes]) -> _PagePosition:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        read = base64.b64decode(padded, b"-_", validate=True)
        payload = read[_SIGNATURE_BYTES:].decode("ascii")
        if not hmac.compare_digest(sign(payload)[:_SIGNATURE_BYTES], read[:_SIGNATURE_BYTES]):
            raise ValueError
        return _PagePosition(*json.loads(payload))
    except (binascii.Error, TypeError, ValueError):
        raise InvalidSetting("This is no cursor of ours; begin without one.") from None
