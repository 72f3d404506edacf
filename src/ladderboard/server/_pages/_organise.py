"""The organiser's page, and that of each team on it."""

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ladderboard.errors import LadderboardError
from ladderboard.server._api import Slug, TeamId
from ladderboard.server._context import PRIVATE, work_of
from ladderboard.server._pages._dump import send_dump
from ladderboard.server._pages._form import read_form
from ladderboard.server._pages._organise_do import Done, Made, do_on_board, do_to_team, said_of
from ladderboard.server._pages._organise_look import look_at_board, look_at_team
from ladderboard.server._pages._page import see, show
from ladderboard.server._problems import Refused, problem_of

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
After = Annotated[int, Query(ge=0, le=2**53)]
_PLACE = "/boards/{board}/organise"
_TEAM = f"{_PLACE}/teams/{{team}}"
_OURS = {"security": PRIVATE}
# What is not put back into a field: nobody needs to see it again.
_SECRET = {"csrf", "passphrase", "again", "public_key"}


@router.get(_PLACE, openapi_extra=_OURS)
async def organise_page(request: Request, board: Slug, after: After = 0) -> Response:
    """Show how a board does, and what can be done about it."""
    return await _show_board(request, board, after=after)


async def _show_board(
    request: Request, board: str, status: int = 200, *, after: int = 0, **what: Any
) -> Response:
    said = await work_of(request).on_board(
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
        said = await work_of(request).on_board(
            request, board, lambda found, caller: do_on_board(found, caller, form), form=True
        )
    except (LadderboardError, Refused) as error:
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
    said = await work_of(request).on_board(
        request, board, lambda found, caller: look_at_team(found, caller, team), form=True
    )
    return _show(request, "organise_team.html", status, {**said, **what})


@router.post(_TEAM, openapi_extra=_OURS)
async def organise_team(request: Request, board: Slug, team: TeamId) -> Response:
    """Do to a team what a form of its page says."""
    form, place = await read_form(request), f"/boards/{board}/organise/teams/{team}"
    try:
        said = await work_of(request).on_board(
            request, board, lambda found, caller: do_to_team(found, caller, team, form), form=True
        )
    except (LadderboardError, Refused) as error:
        status, what = _refused(error, form)
        return await _show_team(request, board, team, status, **what)
    return _on(request, said, place) or await _show_team(request, board, team, made=said)


def _on(request: Request, said: Done | Made, place: str) -> Response | None:
    """Return the way on after something was done; None where a token must be shown first."""
    return see(request, f"{place}?done={said.word}") if isinstance(said, Done) else None


_PHASE = re.compile(r"\b[Pp]hases\[(\d+)\]\.(\w+)")


def _named(found: re.Match[str]) -> str:
    """Return a key of the rules as the form calls it.

    >>> _PHASE.sub(_named, "Phases[0].end must be a time.")
    'The end of phase 1 must be a time.'
    """
    the = "The" if found[0][0] == "P" else "the"
    return f"{the} {found[2]} of phase {int(found[1]) + 1}"


def _refused(error: Exception, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Return how a page says that something cannot be done; what is no mere refusal goes on."""
    said, ours = problem_of(error)
    if ours or said.status_code in {401, 403}:
        raise error
    told = json.loads(_PHASE.sub(_named, bytes(said.body).decode()))
    typed = {name: value for name, value in form.items() if name not in _SECRET}
    at = form.get("group") or form.get("do", "")
    return said.status_code, {"problem": told, "typed": typed, "at": at}
