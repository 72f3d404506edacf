"""The page on which organisers see what an attacker could gain."""

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import Board, Caller, Role, Target, allow, moment
from ladderboard.errors import InvalidSetting, WorkersLost
from ladderboard.server._api import Slug
from ladderboard.server._attack_jobs import Busy, Seen
from ladderboard.server._auth import Unknown
from ladderboard.server._context import PRIVATE, reply, work_of
from ladderboard.server._pages._form import read_form
from ladderboard.server._pages._page import see, show
from ladderboard.server._pages._trial_words import found, sizes
from ladderboard.server._problems import Refused

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_PRIVATE: dict[str, Any] = {"security": PRIVATE}
_UNKNOWN = "What answers on this board is not known by its name, so that no game can be played."


@router.get("/boards/{board}/attack", openapi_extra=_PRIVATE)
async def attack_page(request: Request, board: Slug) -> Response:
    """Show how far the games are, and what they found."""
    return await _show(request, board)


async def _show(
    request: Request, board: str, status: int = 200, problem: str | None = None
) -> Response:
    work = work_of(request)

    def look(own: Board, caller: Caller) -> dict[str, Any]:
        allow(caller, "run")
        seen, target, rules = work.trials.look(board), Target.of(own), own.rules
        kept = seen.kept
        asked = target if kept is None else Target(**kept["target"])
        return {
            "board": own.as_seen_by(caller).summary(),
            "role": caller.role.name.lower(),
            "seen": seen,
            "other": _name(request, seen),
            "target": target,
            "playable": _is_playable(target),
            "sizes": sizes(target),
            "found": None if kept is None else found(kept, asked, rules.display),
            "changed": kept is not None and kept["target"] != _plain(target),
        }

    said = await work.on_board(request, board, look, form=True)
    return show(request, "trial.html", status, problem=problem, **said)


def _plain(target: Target) -> Any:
    """Return a target as it looks when it was written and read."""
    return json.loads(json.dumps(target.describe()))


def _is_playable(target: Target) -> bool:
    try:
        target.played()
    except InvalidSetting:
        return False
    return True


def _name(request: Request, seen: Seen) -> str | None:
    """Return the board that another trial is about, if whoever asks runs it, too."""
    work, other = work_of(request), seen.other
    if other is None:
        return None
    try:
        caller = work.who.find(work.who.shown(request), other)
    except Unknown:
        return None
    return other if caller.role >= Role.ORGANISER else None


@router.post("/boards/{board}/attack", openapi_extra=_PRIVATE)
async def start_attack(request: Request, board: Slug) -> Response:
    """Begin the games."""
    await read_form(request)
    work = work_of(request)

    def start(own: Board, caller: Caller) -> None:
        allow(caller, "run")
        target = Target.of(own)
        if not _is_playable(target):
            raise InvalidSetting(_UNKNOWN)
        work.trials.start(board, target.describe(), moment(work.boards.world.clock()))

    try:
        await work.on_board(request, board, start, form=True)
    except InvalidSetting as error:
        return await _show(request, board, 422, str(error))
    except Busy as busy:
        where = "for this board" if busy.board == board else "for another board"
        said = f"Nothing was begun: games are under way {where}, and one at a time is enough."
        return await _show(request, board, 409, said)
    except WorkersLost:
        raise Refused(503, "busy", "No process could be started for the games.") from None
    return see(request, f"/boards/{board}/attack")


@router.post("/boards/{board}/attack/cancel", openapi_extra=_PRIVATE)
async def cancel_attack(request: Request, board: Slug) -> Response:
    """End the games."""
    await read_form(request)
    work = work_of(request)

    def cancel(_: Board, caller: Caller) -> None:
        allow(caller, "run")
        work.trials.cancel(board)

    await work.on_board(request, board, cancel, form=True)
    return see(request, f"/boards/{board}/attack")


@router.get("/boards/{board}/attack/progress", openapi_extra=_PRIVATE)
async def attack_progress(request: Request, board: Slug) -> Response:
    """Return how far the games are, for a script."""
    work = work_of(request)

    def look(_: Board, caller: Caller) -> dict[str, Any]:
        allow(caller, "run")
        return work.trials.look(board).describe()

    return reply(request, await work.on_board(request, board, look, form=True))
