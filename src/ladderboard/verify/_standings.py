"""The standings at the close: what the last entry commits to follows from the releases."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Commitment
from ladderboard.verify._strict import has, same

if TYPE_CHECKING:
    from ladderboard.verify._walk import Walk

__all__ = ["Rows", "check_standings"]

_STANDINGS = "The standings in the bundle are not"
_ROW = {"team", "name", "baseline", "disqualified", "rank", "released", "since"}

Rows = list[dict[str, Any]]


def check_standings(walk: Walk, held: dict[str, Any] | None) -> Rows | None:
    """Return the rows of the standings, or refuse those that do not follow from the entries."""
    shown = (walk.closed or {}).get("standings")
    if held is None or shown is None:
        if held is not None or shown is not None:
            raise BrokenLedger(f"{_STANDINGS} there, or nothing commits to them.")
        return None
    rows: Rows = held["content"]
    if Commitment("standings", rows, held["salt"]).hash.hex() != shown:
        raise BrokenLedger(f"{_STANDINGS} those that were committed to at the close.")
    if not all(has(row, _ROW) and _is_sound(row) for row in rows):
        raise BrokenLedger(f"{_STANDINGS} right: there is a row that we do not write.")
    _check_teams(walk, rows)
    _check_rows(walk, rows)
    return rows


def _check_teams(walk: Walk, rows: Rows) -> None:
    """Refuse a team that comes twice or is missing, and one that passes for a baseline."""
    teams, names = [row["team"] for row in rows], {row["name"] for row in rows}
    if len(set(teams)) != len(teams) or len(names) != len(teams):
        raise BrokenLedger(f"{_STANDINGS} right: a team is in them twice, or its name.")
    if missing := walk.askers.keys() - set(teams):
        raise BrokenLedger(f"{_STANDINGS} whole: team {min(missing)!r:.40} is missing.")
    baselines, known = {row["name"] for row in rows if row["baseline"]}, set(walk.rules.baselines)
    others = names - baselines
    # A board that was closed before its baselines were asked has fewer.
    if not baselines <= known or others & known:
        raise BrokenLedger(f"{_STANDINGS} right: their baselines are not those of the rules.")
    if len(others) > walk.rules.board["teams"]:
        raise BrokenLedger(f"{_STANDINGS} right: there are more teams than there may be.")


def _check_rows(walk: Walk, rows: Rows) -> None:
    """Refuse a release that was not said, and a rank that is not by releases."""
    ranked = sorted(row["released"] for row in rows if _is_ranked(row))
    for row in rows:
        team, stands = row["team"], walk.teams_at_close.get(row["team"], (None, None))
        released = same([row["released"], row["since"]], list(stands))
        if not released or row["disqualified"] is not (team in walk.out_then):
            raise BrokenLedger(f"{_STANDINGS} what was released: team {team!r:.40} differs.")
        rank = 1 + bisect_left(ranked, row["released"]) if _is_ranked(row) else None
        if not same(row["rank"], rank):
            raise BrokenLedger(f"{_STANDINGS} ranked by releases: team {team!r:.40} differs.")


def _is_sound(row: dict[str, Any]) -> bool:
    texts = type(row["team"]) is str and type(row["name"]) is str
    return texts and type(row["baseline"]) is bool


def _is_ranked(row: dict[str, Any]) -> bool:
    return not (row["baseline"] or row["disqualified"] or row["released"] is None)
