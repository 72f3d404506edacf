"""The organiser's page of a board, and of each team."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote_plus

from fastapi import Query, Request
from starlette.responses import Response

from ladderboard.board import Board, Caller, View, check_permission
from ladderboard.errors import LadderboardError
from ladderboard.server._api import Slug, TeamId
from ladderboard.server._context import PRIVATE, get_context, log_erasure, open_board
from ladderboard.server._pages._charts import (
    activity_histogram,
    history_chart,
    team_activity_chart,
    team_history_chart,
)
from ladderboard.server._pages._organise._dump import send_dump
from ladderboard.server._pages._organise._forms import (
    FORM_GROUPS,
    WINDOW_UNITS,
    ActionDone,
    TokenCreated,
    done_message,
    fields_digest,
    rules_as_fields,
    run_board_action,
    run_team_action,
)
from ladderboard.server._pages._rendering import Form, page_response, page_router, redirect
from ladderboard.server._problems import RequestRefused, problem_from_exception
from ladderboard.server._webhooks import check_literal_address

router = page_router()
AfterNumber = Annotated[int, Query(ge=0, le=2**53)]
_TEAMS_PER_PAGE = 100
_MAX_TOKENS = 200
_MAX_WEBHOOKS = 100
_MAX_MERGEABLE = 1000
_ROLE_ORDER = ("organiser", "evaluator", "invitation", "member")
_MAX_DESCRIPTION_BYTES = 50_000  # a form may have 64 KiB in all
_BOARD_PATH = "/boards/{board}/organise"
_TEAM_PATH = f"{_BOARD_PATH}/teams/{{team}}"
_PRIVATE_ROUTE = {"security": PRIVATE}
# Not put back into the form after a refusal.
_SECRET_FIELDS = {"csrf", "passphrase", "again", "public_key"}
_EVENT_WORDS = {
    "registration_waiting": "a registration waits for approval",
    "registration_approved": "a registration was approved",
    "deadline_near": "the deadline is 24 hours away",
    "paused": "the board is paused",
    "closed": "the board is closed",
    "results": "the final ranking is out",
}
_PHASE_KEY = re.compile(r"\b[Pp]hases\[(\d+)\]\.(\w+)")


def read_organiser_page(board: Board, caller: Caller, after: int) -> dict[str, Any]:
    """Return the template variables of the organiser's page."""
    check_permission(caller, "run")
    view, rules = board.as_seen_by(caller), board.rules
    budget, teams = view.budget(), view.teams(limit=_TEAMS_PER_PAGE + 1, after=after)
    fields, activity = rules_as_fields(rules.describe()), view.activity()
    for team in teams:
        team["left"] = max(budget["share"] - team["submissions"], 0)
        team["display"] = rules.display.text(team["loss"])
    return {
        "board": view.summary(),
        "role": "organiser",
        "budget": budget,
        "resolution": board.describe_resolution(),
        "history": history_chart(view.history()),
        "by_team": team_activity_chart(activity),
        "by_time": activity_histogram(activity),
        "teams": teams[:_TEAMS_PER_PAGE],
        "after": after,
        "next": teams[_TEAMS_PER_PAGE - 1]["number"] if len(teams) > _TEAMS_PER_PAGE else None,
        "people": None if rules.sign_in is None else board.identities.registrations(caller),
        **_read_staff_tokens(board, caller),
        **_read_webhooks(board, caller),
        "webhook_events": _EVENT_WORDS,
        "fields": fields,
        "phases": len(rules.phases) + 1,
        "units": list(WINDOW_UNITS),
        "digests": {group: fields_digest(group, fields) for group in FORM_GROUPS},
        "description_too_long": len(quote_plus(rules.description)) > _MAX_DESCRIPTION_BYTES,
        "terms_too_long": len(quote_plus(fields["terms"])) > _MAX_DESCRIPTION_BYTES,
    }


def _read_staff_tokens(board: Board, caller: Caller) -> dict[str, Any]:
    """Return tokens without a team (organisers first, then evaluators, invitations) and counts."""
    valid = board.teams.list_tokens(caller)
    staff = [token for token in valid if token["role"] != "team"]
    staff.sort(key=lambda token: token["made"], reverse=True)
    staff.sort(key=lambda token: _ROLE_ORDER.index(token["role"]))
    own_id = None if caller.credential is None else caller.credential[:8].hex()
    return {
        "tokens": staff[:_MAX_TOKENS],
        "more_tokens": max(len(staff) - _MAX_TOKENS, 0),
        "team_tokens": len(valid) - len(staff),
        "own_token_id": own_id,
    }


def _people_of(board: Board, caller: Caller, team: str) -> list[dict[str, Any]]:
    people = board.identities.registrations(caller)["registrations"]
    return [
        person for person in people if (person["team"], person["state"]) == (team, "registered")
    ]


def _mergeable_teams(view: View, team: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the teams that a team can be merged into: neither has submitted."""
    if team["submissions"]:
        return []
    return [
        other
        for other in view.teams(limit=_MAX_MERGEABLE)
        if other["kind"] == "team" and not other["submissions"] and other["id"] != team["id"]
    ]


def _read_webhooks(board: Board, caller: Caller) -> dict[str, Any]:
    """Return the webhooks, those that failed last first, and how many are not shown."""
    webhooks = sorted(board.webhooks.list(caller), key=lambda row: row["delivered"] is not False)
    return {
        "webhooks": webhooks[:_MAX_WEBHOOKS],
        "more_webhooks": max(len(webhooks) - _MAX_WEBHOOKS, 0),
    }


def read_team_page(board: Board, caller: Caller, team: str) -> dict[str, Any]:
    """Return the template variables of the organiser's page of one team."""
    check_permission(caller, "run")
    view = board.as_seen_by(caller)
    team_summary, valid_tokens = view.team(team), board.teams.list_tokens(caller)
    return {
        "board": view.summary(),
        "role": "organiser",
        "team": team_summary,
        "keeps_names": board.erasure.keeps_names(),
        "share": view.budget()["share"],
        "tokens": [
            token for token in valid_tokens if token["team"] == team and token["role"] == "team"
        ],
        "people": [] if board.rules.sign_in is None else _people_of(board, caller, team),
        "mergeable": _mergeable_teams(view, team_summary),
        "submissions": view.submissions(team, limit=50),
        "chart": team_history_chart(view.own_history(team)),
    }


@router.get(_BOARD_PATH, openapi_extra=_PRIVATE_ROUTE)
def organise_page(request: Request, board: Slug, after: AfterNumber = 0) -> Response:
    """Show the state of a board to its organiser, with forms to manage it."""
    return _show_board(request, board, after=after)


def _show_board(
    request: Request, slug: str, status: int = 200, *, after: int = 0, **extra: Any
) -> Response:
    board, caller = open_board(request, slug, csrf_checked=True)
    variables = read_organiser_page(board, caller, after)
    return _show_page(request, "organise.html", status, {**variables, **extra})


def _show_page(request: Request, name: str, status: int, variables: dict[str, Any]) -> Response:
    message = done_message(request.query_params.get("done", ""), variables["board"])
    defaults = {
        "done": message,
        "created": None,
        "problem": None,
        "typed": {},
        "failed_form": "",
        **variables,
    }
    return page_response(request, name, status, **defaults)


@router.post(_BOARD_PATH, openapi_extra=_PRIVATE_ROUTE)
def run_organiser_form(request: Request, board: Slug, form: Form) -> Response:
    """Run a form of the organiser's page."""
    try:
        opened, caller = open_board(request, board, csrf_checked=True)
        if form.get("do") == "dump":
            return send_dump(request, opened, caller, form)
        if form.get("do") == "subscribe":
            check_permission(caller, "run")
            private = get_context(request).settings.webhook_private
            check_literal_address(form.get("url", ""), private=private)
        outcome = run_board_action(opened, caller, form)
    except (LadderboardError, RequestRefused) as error:
        status, extra = _describe_refusal(error, form)
        return _show_board(request, board, status, **extra)
    _log_if_erased(request, board, outcome)
    return _redirect_if_done(request, outcome, f"/boards/{board}/organise") or _show_board(
        request, board, created=outcome
    )


@router.get(_TEAM_PATH, openapi_extra=_PRIVATE_ROUTE)
def organise_team_page(request: Request, board: Slug, team: TeamId) -> Response:
    """Show a team to the organiser, with forms to manage it."""
    return _show_team(request, board, team)


def _show_team(request: Request, slug: str, team: str, status: int = 200, **extra: Any) -> Response:
    board, caller = open_board(request, slug, csrf_checked=True)
    variables = read_team_page(board, caller, team)
    return _show_page(request, "organise_team.html", status, {**variables, **extra})


@router.post(_TEAM_PATH, openapi_extra=_PRIVATE_ROUTE)
def run_team_form(request: Request, board: Slug, team: TeamId, form: Form) -> Response:
    """Run a form of the organiser's page of a team."""
    path = f"/boards/{board}/organise/teams/{team}"
    try:
        opened, caller = open_board(request, board, csrf_checked=True)
        outcome = run_team_action(opened, caller, team, form)
    except (LadderboardError, RequestRefused) as error:
        status, extra = _describe_refusal(error, form)
        return _show_team(request, board, team, status, **extra)
    _log_if_erased(request, board, outcome)
    if isinstance(outcome, ActionDone) and outcome.team:
        path = f"/boards/{board}/organise/teams/{outcome.team}"
    return _redirect_if_done(request, outcome, path) or _show_team(
        request, board, team, created=outcome
    )


def _log_if_erased(request: Request, slug: str, outcome: ActionDone | TokenCreated) -> None:
    if isinstance(outcome, ActionDone) and outcome.code == "erased":
        log_erasure(request, slug, outcome.team or None, outcome.person)


def _redirect_if_done(
    request: Request, outcome: ActionDone | TokenCreated, path: str
) -> Response | None:
    """Return a redirect after an action; None if a new token must be shown first."""
    return (
        redirect(request, f"{path}?done={outcome.code}")
        if isinstance(outcome, ActionDone)
        else None
    )


def _phase_field_name(match: re.Match[str]) -> str:
    """Return the name that the form has for a key of the rules.

    >>> _PHASE_KEY.sub(_phase_field_name, "Phases[0].end must be a time.")
    'The end of phase 1 must be a time.'
    """
    article = "The" if match[0][0] == "P" else "the"
    return f"{article} {match[2]} of phase {int(match[1]) + 1}"


def _describe_refusal(error: Exception, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Return the status and the template variables for a refusal; raise other errors again."""
    response, _, is_internal = problem_from_exception(error)
    if is_internal or response.status_code in {401, 403}:
        raise error
    problem = json.loads(_PHASE_KEY.sub(_phase_field_name, bytes(response.body).decode()))
    typed = {name: value for name, value in form.items() if name not in _SECRET_FIELDS}
    failed_form = form.get("group") or form.get("do", "")
    return response.status_code, {"problem": problem, "typed": typed, "failed_form": failed_form}
