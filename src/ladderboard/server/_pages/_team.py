"""The Team page: its people, invitations and roles; and the Terms page, to accept them."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import Request
from starlette.responses import Response

from ladderboard.board import Board, Caller, check_permission
from ladderboard.errors import InvalidSetting, LadderboardError
from ladderboard.server._api import Slug
from ladderboard.server._context import open_board, open_page
from ladderboard.server._pages._rendering import (
    Form,
    page_response,
    page_router,
    redirect,
    typed_invitation,
)
from ladderboard.server._pages._reply import PageProblem, page_problem
from ladderboard.server._problems import RequestRefused

router = page_router()
_DONE_MESSAGES = {
    "joined": "You are in the team.",
    "revoked": "The invitation is revoked.",
    "role": "The role is changed.",
    "removed": "They are no longer in the team. If they know its token, replace it.",
    "accepted": "You have accepted the terms. The ledger records it.",
}
"""Messages after a form was done; the redirect's URL holds the key only."""


class TeamOutcome(NamedTuple):
    """The outcome of a form: the page to show, a new invitation, or a problem."""

    path: str = "team"
    invitation: str | None = None
    problem: PageProblem | None = None


@router.get("/boards/{board}/team")
def team_page(request: Request, board: Slug) -> Response:
    """Show the people of one's own team, with forms to invite others, to leave and to merge."""
    return _show_team(request, board, TeamOutcome())


def _show_team(request: Request, slug: str, outcome: TeamOutcome) -> Response:
    board, caller = open_page(request, slug)
    if caller.team is None:
        return redirect(request, f"/boards/{slug}/join")
    people = board.members.list(caller)
    own_role = next((row["role"] for row in people["members"] if row["you"]), "owner")
    return page_response(
        request,
        "team.html",
        200 if outcome.problem is None else outcome.problem.status,
        board=board.as_seen_by(caller).summary(),
        role=caller.role.name.lower(),
        team=board.as_seen_by(caller).team(),
        people=people,
        is_person=caller.identity is not None,
        is_owner=own_role == "owner",
        invitation=outcome.invitation,
        problem=outcome.problem,
        done=_DONE_MESSAGES.get(request.query_params.get("done", "")),
    )


@router.post("/boards/{board}/team")
def run_team_form(request: Request, board: Slug, form: Form) -> Response:
    """Run a form of the Team page."""
    try:
        opened, caller = open_board(request, board, csrf_checked=True)
        check_permission(caller, "own")
        action = _ACTIONS.get(form.get("do", ""))
        if action is None:
            raise RequestRefused(400, "form", "There is no such form here.")
        outcome = action(opened, caller, form)
    except (LadderboardError, RequestRefused) as error:
        outcome = TeamOutcome(problem=page_problem(error))
    if outcome.invitation is None and outcome.problem is None:
        return redirect(request, f"/boards/{board}/{outcome.path}")
    return _show_team(request, board, outcome)


def _invite(board: Board, caller: Caller, form: Form) -> TeamOutcome:
    days, uses = form.get("days", "").strip() or "7", form.get("uses", "").strip() or "1"
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", days) or not re.fullmatch("[0-9]{1,4}", uses):
        raise InvalidSetting("Give a number of days, such as 7, and of people, such as 1.")
    invitation = board.members.invite_member(caller, days=float(days), uses=int(uses))
    return TeamOutcome(invitation=invitation)


def _revoke(board: Board, caller: Caller, form: Form) -> TeamOutcome:
    board.members.revoke_invitation(caller, form.get("invitation", ""))
    return TeamOutcome("team?done=revoked")


def _person(form: Form) -> int:
    number = form.get("person", "")
    if not re.fullmatch("[0-9]{1,15}", number):
        raise RequestRefused(400, "form", "There is no such form here.")
    return int(number)


def _set_role(board: Board, caller: Caller, form: Form) -> TeamOutcome:
    owner = form.get("role") == "owner"
    board.members.set_role(caller, _person(form), "owner" if owner else "member")
    return TeamOutcome("team?done=role")


def _remove(board: Board, caller: Caller, form: Form) -> TeamOutcome:
    board.members.remove(caller, _person(form))
    return TeamOutcome("team?done=removed")


def _leave(board: Board, caller: Caller, _: Form) -> TeamOutcome:
    board.members.leave(caller)
    return TeamOutcome("join")


def _merge(board: Board, caller: Caller, form: Form) -> TeamOutcome:
    board.members.join(caller, typed_invitation(form), merge=True)
    return TeamOutcome("team?done=joined")


_ACTIONS: dict[str, Callable[[Board, Caller, Form], TeamOutcome]] = {
    "invite": _invite,
    "revoke": _revoke,
    "role": _set_role,
    "remove": _remove,
    "leave": _leave,
    "merge": _merge,
}


@router.get("/boards/{board}/terms")
def terms_page(request: Request, board: Slug) -> Response:
    """Show the terms, with a form to accept them."""
    return _show_terms(request, board)


def _show_terms(request: Request, slug: str, problem: PageProblem | None = None) -> Response:
    board, caller = open_page(request, slug)
    variables: dict[str, Any] = {
        "terms": board.terms.summary(caller),
        "board": board.as_seen_by(caller).summary(),
        "role": caller.role.name.lower(),
        "problem": problem,
        "done": _DONE_MESSAGES.get(request.query_params.get("done", "")),
    }
    return page_response(
        request, "terms.html", 200 if problem is None else problem.status, **variables
    )


@router.post("/boards/{board}/terms")
def accept_terms(request: Request, board: Slug, form: Form) -> Response:
    """Accept the version of the terms that the page showed."""
    try:
        opened, caller = open_board(request, board, csrf_checked=True)
        opened.terms.accept(caller, form.get("version", ""))
    except (LadderboardError, RequestRefused) as error:
        return _show_terms(request, board, page_problem(error))
    return redirect(request, f"/boards/{board}/terms?done=accepted")
