"""What the organiser's pages show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from ladderboard.board import allow
from ladderboard.server._pages._chart import history_chart, own_chart, team_bars, time_bars
from ladderboard.server._pages._organise_rules import GROUPS, UNITS, digest_of, filled

if TYPE_CHECKING:
    from ladderboard.board import Board, Caller

__all__ = ["look_at_board", "look_at_team"]

_TEAMS = 100  # rows of a page
_TOKENS = 200
_ORDER = ("organiser", "evaluator", "invitation")
_LONG = 50_000  # bytes of a description in a form, of which the front lets 64 KiB through


def look_at_board(found: Board, caller: Caller, after: int) -> dict[str, Any]:
    """Return everything on the organiser's page."""
    allow(caller, "run")
    view, rules = found.as_seen_by(caller), found.rules
    budget, teams = view.budget(), view.teams(limit=_TEAMS + 1, after=after)
    fields, activity = filled(rules.describe()), view.activity()
    for each in teams:
        each["left"] = max(budget["share"] - each["submissions"], 0)
        each["display"] = rules.display.text(each["loss"])
    return {
        "board": view.summary(),
        "role": "organiser",
        "budget": budget,
        "history": history_chart(view.history()),
        "by_team": team_bars(activity, key="by-team"),
        "by_time": time_bars(activity, key="by-time"),
        "teams": teams[:_TEAMS],
        "after": after,
        "next": teams[_TEAMS - 1]["number"] if len(teams) > _TEAMS else None,
        **_tokens(found, caller),
        "fields": fields,
        "phases": len(rules.phases) + 1,
        "units": list(UNITS),
        "seen": {group: digest_of(group, fields) for group in GROUPS},
        "long": len(quote_plus(rules.description)) > _LONG,
    }


def _tokens(found: Board, caller: Caller) -> dict[str, Any]:
    """Return the tokens that belong to no team, those of few first, and how many there are."""
    good = found.seats.tokens(caller)
    others = [each for each in good if each["role"] != "team"]
    others.sort(key=lambda each: each["made"], reverse=True)
    others.sort(key=lambda each: _ORDER.index(each["role"]))
    own = None if caller.credential is None else caller.credential[:8].hex()
    return {
        "tokens": others[:_TOKENS],
        "more_tokens": max(len(others) - _TOKENS, 0),
        "team_tokens": len(good) - len(others),
        "own": own,
    }


def look_at_team(found: Board, caller: Caller, team: str) -> dict[str, Any]:
    """Return everything on the page of one team."""
    allow(caller, "run")
    view = found.as_seen_by(caller)
    told, good = view.team(team), found.seats.tokens(caller)
    return {
        "board": view.summary(),
        "role": "organiser",
        "team": told,
        "share": view.budget()["share"],
        "tokens": [each for each in good if each["team"] == team and each["role"] == "team"],
        "submissions": view.submissions(team, limit=50),
        "chart": own_chart(view.own_history(team)),
    }
