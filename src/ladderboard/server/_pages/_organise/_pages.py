"""The organiser's pages of a board: overview, teams, activity and settings."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote_plus

from fastapi import Query, Request
from starlette.responses import Response

from ladderboard._formatting import format_fixed, format_time, parse_number, shared_decimals
from ladderboard.board import Board, Caller, View, check_permission
from ladderboard.errors import LadderboardError, NotFound
from ladderboard.server._api import Slug, TeamId
from ladderboard.server._context import PRIVATE, get_context, log_erasure, open_board
from ladderboard.server._pages._charts import (
    activity_histogram,
    history_chart,
    mark_wide_bounds,
    team_activity_chart,
    team_history_chart,
)
from ladderboard.server._pages._organise._dump import send_dump
from ladderboard.server._pages._organise._forms import (
    FORM_GROUPS,
    ONLY_PHASE,
    WINDOW_UNITS,
    ActionDone,
    TokenCreated,
    done_message,
    fields_digest,
    rules_as_fields,
    run_board_action,
    run_team_action,
)
from ladderboard.server._pages._organise._texts import (
    SECTION_TITLES,
    can_change,
    describe_events,
    describe_settings,
    find_attention,
)
from ladderboard.server._pages._rendering import (
    Form,
    format_value,
    page_response,
    page_router,
    redirect,
)
from ladderboard.server._pages._submit import release_decimals, release_text
from ladderboard.server._pages._wording import board_state, exact_duration, is_over, parse_time
from ladderboard.server._problems import RequestRefused, problem_from_exception
from ladderboard.server._webhook_sender import check_literal_address

router = page_router()
RowNumber = Annotated[int, Query(ge=0, le=2**53)]
PageNumber = Annotated[int, Query(ge=1, le=2**31)]
_TEAMS_PER_PAGE = 20
_PEOPLE_PER_PAGE = 12
_EVENTS_PER_PAGE = 10
_ROWS_PER_PAGE = 10  # tokens and webhooks, above a form
_SUBMISSIONS_PER_PAGE = 8
_TEAMS_IN_CHART = 8
_MAX_TEAMS = 1000  # what one read returns: teams to merge with, and names in the activity
_ROLE_ORDER = ("organiser", "evaluator")
_MAX_TEXT_BYTES = 50_000  # a form may have 64 KiB in all
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
_FORM_PAGES = {
    "add": "/teams",
    "invite": "/invitations",
    "decide": "/people",
    "list": "/people",
    "forget": "/people",
    "show": "/settings/visibility",
    "trust": "/settings/access",
    "end": "/settings/access",
    "organiser": "/settings/access",
    "subscribe": "/settings/webhooks",
    "webhook": "/settings/webhooks",
    "dump": "/settings/copy",
    "close": "/settings/close",
}
"""The page of each form, unless it is the overview; amendments have one for each group."""
_NEXT_PAGES = {"amend": "/settings", "show": "/settings", "close": ""}
"""The page after a form was accepted, unless it is the form's own."""


class _Page(NamedTuple):
    """A page: how its variables are read, from a page number or the like, and its template."""

    read: Callable[[Board, Caller, int], dict[str, Any]]
    template: str
    start: int = 1


def read_overview(board: Board, caller: Caller, now: int) -> dict[str, Any]:
    """Return four numbers, what needs attention, and the best score over time."""
    view = board.as_seen_by(caller)
    summary, budget, row = view.summary(), view.budget(), board.row()
    history = mark_wide_bounds(view.history(), board.rules.display)
    people = [] if board.rules.sign_in is None else _read_people(board, caller)
    webhooks, last = board.webhooks.list(caller), view.last_submission()
    attention = find_attention(
        summary,
        budget,
        waiting=sum(person["state"] == "waiting" for person in people),
        invited=_count_invitations(board, caller),
        failing=sum(webhook["delivered"] is False for webhook in webhooks),
        room=(row.stored, board.rules.files.quota),
        quiet_since=row.made if last is None else parse_time(last),
        now=now,
    )
    bundle = f"{board.slug}.bundle"
    has_finals = summary["status"] == "closed" and board.epoch_of(row).ranked
    return {
        "board": summary,
        "bundle": any(file["name"] == bundle for file in board.data.summary(caller)["files"]),
        "budget": budget,
        "has_finals": has_finals,
        "closed_at": view.finals()["closed"] if has_finals else None,
        "state": board_state(summary, now),
        "attention": attention,
        "best": format_value(summary["best"]["display"], board.rules.display.digits, history),
        "resolution": []
        if is_over(summary)
        else board.describe_resolution(summary["best"]["loss"]),
        "history": history_chart(
            history,
            summary["baselines"],
            ends="at the close" if summary["status"] == "closed" else "now",
        ),
    }


def read_teams(board: Board, caller: Caller, page: int) -> dict[str, Any]:
    """Return a page of teams by name, baselines last."""
    view = board.as_seen_by(caller)
    budget, display = view.budget(), board.rules.display
    by_name = sorted(
        _read_all_teams(view), key=lambda team: (team["kind"] != "team", team["name"].casefold())
    )
    teams = _paginate(by_name, page, _TEAMS_PER_PAGE)
    losses = [team["loss"] for team in teams["rows"] if team["loss"] is not None]
    decimals = shared_decimals(
        (parse_number(display.text(loss)) for loss in losses), display.digits
    )
    for team in teams["rows"]:
        team["left"] = max(budget["share"] - team["submissions"], 0)
        score = display.text(team["loss"])
        if team["loss"] is None:
            team["display"] = "–"
        else:
            team["display"] = format_fixed(parse_number(score), decimals)
    return {"board": view.summary(), "budget": budget, "teams": teams}


def _read_all_teams(view: View) -> list[dict[str, Any]]:
    teams = block = view.teams(limit=_MAX_TEAMS)
    while len(block) == _MAX_TEAMS:
        block = view.teams(limit=_MAX_TEAMS, after=block[-1]["number"])
        teams = teams + block
    return teams


def read_people(board: Board, caller: Caller, page: int) -> dict[str, Any]:
    """Return a page of the people who signed in, those whose request waits first."""
    people = _read_people(board, caller) if board.rules.sign_in is not None else []
    waiting = [person for person in people if person["state"] == "waiting"]
    others = [person for person in people if person["state"] != "waiting"]
    return {
        "board": board.as_seen_by(caller).summary(),
        "people": _paginate(waiting + others, page, _PEOPLE_PER_PAGE),
        "waiting": len(waiting),
        "listed": board.identities.registrations(caller)["listed"],
    }


def _read_people(board: Board, caller: Caller) -> list[dict[str, Any]]:
    people: list[dict[str, Any]] = board.identities.registrations(caller)["registrations"]
    return people


def read_invitations(board: Board, caller: Caller, page: int) -> dict[str, Any]:
    """Return a page of the invitations that are valid."""
    view = board.as_seen_by(caller)
    budget = view.budget()
    return {
        "board": view.summary(),
        "tokens": _read_tokens(board, caller, ("invitation", "member"), page),
        "invited": _count_invitations(board, caller),
        "free": max(budget["teams"] - budget["registered"], 0),
        "end": format_time(board.teams.invitation_end(board.book.environment.clock())),
    }


def _count_invitations(board: Board, caller: Caller) -> int:
    """Return how many invitations for new teams are valid."""
    return sum(token["role"] == "invitation" for token in board.teams.list_tokens(caller))


def _read_tokens(board: Board, caller: Caller, roles: tuple[str, ...], page: int) -> dict[str, Any]:
    """Return a page of valid tokens of some roles, in their order, the newest first."""
    tokens = [token for token in board.teams.list_tokens(caller) if token["role"] in roles]
    tokens.sort(key=lambda token: token["made"], reverse=True)
    tokens.sort(key=lambda token: roles.index(token["role"]))
    return _paginate(tokens, page, _ROWS_PER_PAGE)


def _paginate(rows: Sequence[dict[str, Any]], page: int, size: int) -> dict[str, Any]:
    """Return a page of rows, its number and how many there are; the last one if there are fewer.

    >>> _paginate([{"n": 1}, {"n": 2}, {"n": 3}], 5, 2)
    {'rows': [{'n': 3}], 'page': 2, 'pages': 2, 'total': 3}
    """
    pages = max(-(-len(rows) // size), 1)
    page = min(page, pages)
    shown = list(rows[(page - 1) * size : page * size])
    return {"rows": shown, "page": page, "pages": pages, "total": len(rows)}


def read_activity(board: Board, caller: Caller, before: int) -> dict[str, Any]:
    """Return charts of submissions, and a page of events, the newest first."""
    view = board.as_seen_by(caller)
    activity, names = view.activity(), {team["id"]: team for team in view.teams(limit=_MAX_TEAMS)}
    events, older = describe_events(
        view.ledger,
        before=min(before or 2**53, view.head()[0]),
        limit=_EVENTS_PER_PAGE,
        display=board.rules.display,
        teams=names,
    )
    counts = {team["questions"] for team in activity["teams"][:_TEAMS_IN_CHART]}
    return {
        "board": view.summary(),
        # Equal bars would say nothing.
        "by_team": team_activity_chart(activity, _TEAMS_IN_CHART) if len(counts) > 1 else None,
        "by_time": activity_histogram(activity),
        "events": events,
        "newest": not before,
        "older": older,
    }


def read_settings(board: Board, caller: Caller, _: int) -> dict[str, Any]:
    """Return all settings with their current values."""
    summary = board.as_seen_by(caller).summary()
    tokens = [token["role"] for token in board.teams.list_tokens(caller)]
    return {
        "board": summary,
        "settings": describe_settings(
            summary, board.rules, tokens=tokens, webhooks=board.webhooks.list(caller)
        ),
    }


def _read_section(section: str) -> Callable[[Board, Caller, int], dict[str, Any]]:
    """Return the function that reads the variables of one setting's page."""

    def read(board: Board, caller: Caller, page: int) -> dict[str, Any]:
        view, rules = board.as_seen_by(caller), board.rules
        variables: dict[str, Any] = {
            "board": view.summary(),
            "section": section,
            "section_title": SECTION_TITLES[section],
        }
        variables["editable"] = can_change(variables["board"], section)
        if section in FORM_GROUPS:
            fields = rules_as_fields(rules.describe())
            variables |= {
                "budget": view.budget(),
                "fields": fields,
                "phases": len(rules.phases) + 1,
                "only_phase": ONLY_PHASE,
                "units": list(WINDOW_UNITS),
                "digest": fields_digest(section, fields),
                "description_too_long": _is_too_long(rules.description),
                "terms_too_long": _is_too_long(fields["terms"]),
            }
        elif section == "access":
            variables |= _read_access(board, caller, page)
        elif section == "close":
            variables["has_finals"] = board.epoch_of(board.row()).ranked
        elif section == "webhooks":
            # Those that failed last come first.
            webhooks = sorted(
                board.webhooks.list(caller), key=lambda row: row["delivered"] is not False
            )
            variables["webhooks"] = _paginate(webhooks, page, _ROWS_PER_PAGE)
            variables["webhook_events"] = _EVENT_WORDS
        return variables

    return read


def _is_too_long(text: str) -> bool:
    return len(quote_plus(text)) > _MAX_TEXT_BYTES


def _read_access(board: Board, caller: Caller, page: int) -> dict[str, Any]:
    """Return the tokens of organisers and evaluators, and the people who could organise."""
    people = [] if board.rules.sign_in is None else _read_people(board, caller)
    return {
        "tokens": _read_tokens(board, caller, _ROLE_ORDER, page),
        "own_token_id": None if caller.credential is None else caller.credential[:8].hex(),
        "organisers": [person for person in people if person["role"] == "organiser"],
        "candidates": [
            person
            for person in people
            if person["state"] != "registered" and person["role"] != "organiser"
        ],
    }


_PAGES = {
    "/people": _Page(read_people, "organise_people.html"),
    "/invitations": _Page(read_invitations, "organise_invitations.html"),
    "/teams": _Page(read_teams, "organise_teams.html"),
    "/activity": _Page(read_activity, "organise_activity.html", 0),
    "/settings": _Page(read_settings, "organise_settings.html"),
    **{
        f"/settings/{section}": _Page(_read_section(section), "organise_section.html")
        for section in SECTION_TITLES
    },
}


def read_team_page(board: Board, caller: Caller, team: str, before: int) -> dict[str, Any]:
    """Return the template variables of the organiser's page of one team."""
    view = board.as_seen_by(caller)
    team_summary, valid_tokens = view.team(team), board.teams.list_tokens(caller)
    submissions = view.submissions(team, limit=_SUBMISSIONS_PER_PAGE + 1, before=before or None)
    has_older = len(submissions) > _SUBMISSIONS_PER_PAGE
    submissions = submissions[:_SUBMISSIONS_PER_PAGE]
    decimals = release_decimals(submissions, board.rules.display.digits)
    window = board.rules.window
    return {
        "board": view.summary(),
        "window": None if window is None else exact_duration(window.seconds),
        "team": team_summary,
        "keeps_names": board.erasure.keeps_names(),
        "share": view.budget()["share"],
        "tokens": [
            token for token in valid_tokens if token["team"] == team and token["role"] == "team"
        ],
        "people": [] if board.rules.sign_in is None else _people_of(board, caller, team),
        "mergeable": _mergeable_teams(view, team_summary),
        "submissions": [
            {**submission, "release": release_text(submission, decimals)}
            for submission in submissions
        ],
        "before": before,
        "older": submissions[-1]["number"] if has_older else None,
        "chart": team_history_chart(view.own_history(team)),
    }


def _people_of(board: Board, caller: Caller, team: str) -> list[dict[str, Any]]:
    return [
        person
        for person in _read_people(board, caller)
        if (person["team"], person["state"]) == (team, "registered")
    ]


def _mergeable_teams(view: View, team: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the teams that a team can be merged into: neither has submitted."""
    if team["submissions"]:
        return []
    return [
        other
        for other in view.teams(limit=_MAX_TEAMS)
        if other["kind"] == "team" and not other["submissions"] and other["id"] != team["id"]
    ]


@router.get(_BOARD_PATH, openapi_extra=_PRIVATE_ROUTE)
def organise_page(request: Request, board: Slug) -> Response:
    """Show an organiser how the board is doing and what to do next."""
    return _show(request, board, "")


@router.get(f"{_BOARD_PATH}/teams", openapi_extra=_PRIVATE_ROUTE)
def organise_teams_page(request: Request, board: Slug, page: PageNumber = 1) -> Response:
    """Show the teams to an organiser, and a form to add one."""
    return _show(request, board, "/teams", page)


@router.get(f"{_BOARD_PATH}/people", openapi_extra=_PRIVATE_ROUTE)
def organise_people_page(request: Request, board: Slug, page: PageNumber = 1) -> Response:
    """Show the people who signed in, and requests to decide."""
    return _show(request, board, "/people", page)


@router.get(f"{_BOARD_PATH}/invitations", openapi_extra=_PRIVATE_ROUTE)
def organise_invitations_page(request: Request, board: Slug, page: PageNumber = 1) -> Response:
    """Show the invitations, and a form to make one."""
    return _show(request, board, "/invitations", page)


@router.get(f"{_BOARD_PATH}/activity", openapi_extra=_PRIVATE_ROUTE)
def organise_activity_page(request: Request, board: Slug, before: RowNumber = 0) -> Response:
    """Show what happened on the board."""
    return _show(request, board, "/activity", before)


@router.get(f"{_BOARD_PATH}/settings", openapi_extra=_PRIVATE_ROUTE)
def organise_settings_page(request: Request, board: Slug) -> Response:
    """Show all settings of the board, each with a link to change it."""
    return _show(request, board, "/settings")


@router.get(f"{_BOARD_PATH}/settings/{{section}}", openapi_extra=_PRIVATE_ROUTE)
def organise_section_page(
    request: Request, board: Slug, section: str, page: PageNumber = 1
) -> Response:
    """Show the form of one setting."""
    return _show(request, board, f"/settings/{section}", page)


def _show(
    request: Request,
    slug: str,
    suffix: str,
    number: int | None = None,
    status: int = 200,
    **extra: Any,
) -> Response:
    """Return one of the pages of a board; ``number`` says which part of a list it shows."""
    board, caller = open_board(request, slug, csrf_checked=True)
    check_permission(caller, "run")
    if not suffix:
        now = int(get_context(request).boards.environment.clock())
        return _render(
            request, "organise.html", status, {**read_overview(board, caller, now), **extra}
        )
    page = _PAGES.get(suffix)
    if page is None:
        raise NotFound("There is no such setting.")
    variables = page.read(board, caller, page.start if number is None else number)
    return _render(request, page.template, status, {**variables, **extra})


def _render(request: Request, name: str, status: int, variables: dict[str, Any]) -> Response:
    message = done_message(request.query_params.get("done", ""), variables["board"])
    defaults = {
        "role": "organiser",
        "done": message,
        "created": None,
        "problem": None,
        "typed": {},
        "failed_form": "",
        "invalid": (),
        "confirm": False,
        **variables,
    }
    return page_response(request, name, status, **defaults)


@router.post(_BOARD_PATH, openapi_extra=_PRIVATE_ROUTE)
def run_organiser_form(request: Request, board: Slug, form: Form) -> Response:
    """Run a form of one of the organiser's pages."""
    suffix = _page_of_form(form)
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
        return _show(request, board, suffix, status=status, **extra)
    _log_if_erased(request, board, outcome)
    suffix = _NEXT_PAGES.get(form["do"], suffix)
    return _redirect_if_done(request, outcome, f"/boards/{board}/organise{suffix}") or _show(
        request, board, suffix, created=outcome
    )


def _page_of_form(form: Mapping[str, str]) -> str:
    """Return the page that a form is on.

    >>> _page_of_form({"do": "amend", "group": "limits"}), _page_of_form({"do": "pause"})
    ('/settings/limits', '')
    """
    action, group = form.get("do", ""), form.get("group", "")
    if action == "amend":
        return f"/settings/{group}" if group in FORM_GROUPS else "/settings"
    if action == "end" and form.get("from") == "invitations":
        return "/invitations"
    return _FORM_PAGES.get(action, "")


@router.get(_TEAM_PATH, openapi_extra=_PRIVATE_ROUTE)
def organise_team_page(
    request: Request, board: Slug, team: TeamId, before: RowNumber = 0
) -> Response:
    """Show a team to the organiser, with forms to manage it."""
    return _show_team(request, board, team, before=before)


def _show_team(
    request: Request, slug: str, team: str, status: int = 200, *, before: int = 0, **extra: Any
) -> Response:
    board, caller = open_board(request, slug, csrf_checked=True)
    check_permission(caller, "run")
    variables = read_team_page(board, caller, team, before)
    return _render(request, "organise_team.html", status, {**variables, **extra})


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


def _field_name(key: str) -> str:
    """Return the name of the form's field for a key of the rules.

    >>> _field_name("phases[0].end"), _field_name("window.seconds"), _field_name("submissions")
    ('phase_0_end', 'window_length', 'questions')
    """
    name = re.sub(r"^phases\[(\d+)\]", r"phase_\1", key).replace(".", "_")
    return {"submissions": "questions", "window_seconds": "window_length"}.get(name, name)


def _describe_refusal(error: Exception, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Return the status and the template variables for a refusal; raise other errors again."""
    response, _, is_internal = problem_from_exception(error)
    if is_internal or response.status_code in {401, 403}:
        raise error
    text = bytes(response.body).decode()
    problem = json.loads(_PHASE_KEY.sub(_phase_field_name, text))
    typed = {name: value for name, value in form.items() if name not in _SECRET_FIELDS}
    return response.status_code, {
        "problem": problem,
        "typed": typed,
        "failed_form": form.get("group") or form.get("do", ""),
        "invalid": {_field_name(item["column"] or "") for item in json.loads(text)["errors"]},
        "confirm": isinstance(error, RequestRefused) and error.code == "confirm",
    }
