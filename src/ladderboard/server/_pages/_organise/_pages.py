"""The organiser's page, and that of each team on it."""

import json
import re
from typing import Annotated, Any
from urllib.parse import quote_plus

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ladderboard.board import Board, Caller, check_permission
from ladderboard.errors import LadderboardError
from ladderboard.server._api import Slug, TeamId
from ladderboard.server._context import PRIVATE, get_context
from ladderboard.server._pages._charts import history_chart, own_chart, team_bars, time_bars
from ladderboard.server._pages._organise._dump import send_dump
from ladderboard.server._pages._organise._forms import (
    GROUPS,
    UNITS,
    Done,
    Made,
    digest_of,
    do_on_board,
    do_to_team,
    filled,
    said_of,
)
from ladderboard.server._pages._rendering import read_form, see, show
from ladderboard.server._problems import RequestRefused, problem_from_exception

router = APIRouter(include_in_schema=False)
After = Annotated[int, Query(ge=0, le=2**53)]
_TEAMS = 100  # rows of a page
_TOKENS = 200
_ORDER = ("organiser", "evaluator", "invitation")
_LONG = 50_000  # bytes of a description in a form, of which the front lets 64 KiB through
_PLACE = "/boards/{board}/organise"
_TEAM = f"{_PLACE}/teams/{{team}}"
_OURS = {"security": PRIVATE}
# What is not put back into a field: nobody needs to see it again.
_SECRET = {"csrf", "passphrase", "again", "public_key"}
_PHASE = re.compile(r"\b[Pp]hases\[(\d+)\]\.(\w+)")


def look_at_board(found: Board, caller: Caller, after: int) -> dict[str, Any]:
    """Return everything on the organiser's page."""
    check_permission(caller, "run")
    view, rules = found.as_seen_by(caller), found.rules
    budget, teams = view.budget(), view.teams(limit=_TEAMS + 1, after=after)
    fields, activity = filled(rules.describe()), view.activity()
    for team in teams:
        team["left"] = max(budget["share"] - team["submissions"], 0)
        team["display"] = rules.display.text(team["loss"])
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
    good = found.teams.list_tokens(caller)
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
    check_permission(caller, "run")
    view = found.as_seen_by(caller)
    told, good = view.team(team), found.teams.list_tokens(caller)
    return {
        "board": view.summary(),
        "role": "organiser",
        "team": told,
        "share": view.budget()["share"],
        "tokens": [each for each in good if each["team"] == team and each["role"] == "team"],
        "submissions": view.submissions(team, limit=50),
        "chart": own_chart(view.own_history(team)),
    }


@router.get(_PLACE, openapi_extra=_OURS)
async def organise_page(request: Request, board: Slug, after: After = 0) -> Response:
    """Show how a board does, and what can be done about it."""
    return await _show_board(request, board, after=after)


async def _show_board(
    request: Request, board: str, status: int = 200, *, after: int = 0, **what: Any
) -> Response:
    said = await get_context(request).with_board(
        request, board, lambda found, caller: look_at_board(found, caller, after), form=True
    )
    return _show(request, "organise.html", status, {**said, **what})


def _show(request: Request, name: str, status: int, what: dict[str, Any]) -> Response:
    done = said_of(request.query_params.get("done", ""), what["board"])
    said = {"done": done, "made": None, "problem": None, "typed": {}, "at": "", **what}
    return show(request, name, status, **said)


@router.post(_PLACE, openapi_extra=_OURS)
async def organise(request: Request, board: Slug) -> Response:
    """Do what a form of the page says."""
    form, place = await read_form(request), f"/boards/{board}/organise"
    try:
        if form.get("do") == "dump":
            return await send_dump(request, board, form)
        said = await get_context(request).with_board(
            request, board, lambda found, caller: do_on_board(found, caller, form), form=True
        )
    except (LadderboardError, RequestRefused) as error:
        status, what = _refused(error, form)
        return await _show_board(request, board, status, **what)
    return _on(request, said, place) or await _show_board(request, board, made=said)


@router.get(_TEAM, openapi_extra=_OURS)
async def organise_team_page(request: Request, board: Slug, team: TeamId) -> Response:
    """Show how a team does, and what can be done about it."""
    return await _show_team(request, board, team)


async def _show_team(
    request: Request, board: str, team: str, status: int = 200, **what: Any
) -> Response:
    said = await get_context(request).with_board(
        request, board, lambda found, caller: look_at_team(found, caller, team), form=True
    )
    return _show(request, "organise_team.html", status, {**said, **what})


@router.post(_TEAM, openapi_extra=_OURS)
async def organise_team(request: Request, board: Slug, team: TeamId) -> Response:
    """Do to a team what a form of its page says."""
    form, place = await read_form(request), f"/boards/{board}/organise/teams/{team}"
    try:
        said = await get_context(request).with_board(
            request, board, lambda found, caller: do_to_team(found, caller, team, form), form=True
        )
    except (LadderboardError, RequestRefused) as error:
        status, what = _refused(error, form)
        return await _show_team(request, board, team, status, **what)
    return _on(request, said, place) or await _show_team(request, board, team, made=said)


def _on(request: Request, said: Done | Made, place: str) -> Response | None:
    """Return the way on after something was done; None where a token must be shown first."""
    return see(request, f"{place}?done={said.word}") if isinstance(said, Done) else None


def _named(found: re.Match[str]) -> str:
    """Return a key of the rules as the form calls it.

    >>> _PHASE.sub(_named, "Phases[0].end must be a time.")
    'The end of phase 1 must be a time.'
    """
    the = "The" if found[0][0] == "P" else "the"
    return f"{the} {found[2]} of phase {int(found[1]) + 1}"


def _refused(error: Exception, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Return how a page says that something cannot be done; what is no mere refusal goes on."""
    said, ours = problem_from_exception(error)
    if ours or said.status_code in {401, 403}:
        raise error
    told = json.loads(_PHASE.sub(_named, bytes(said.body).decode()))
    typed = {name: value for name, value in form.items() if name not in _SECRET}
    at = form.get("group") or form.get("do", "")
    return said.status_code, {"problem": told, "typed": typed, "at": at}
