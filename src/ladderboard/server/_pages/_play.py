"""The page Play: two attacks climb three boards. Nothing is computed for it but the picture."""

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import Board, Caller
from ladderboard.errors import NotFound
from ladderboard.server._api import Slug
from ladderboard.server._context import work_of
from ladderboard.server._pages import _play_data as data
from ladderboard.server._pages._page import show
from ladderboard.server._pages._play_picture import PLOT, RANGE, picture
from ladderboard.server._pages._play_words import about, gap_words, moments, prices

__all__ = ["router"]

router = APIRouter(include_in_schema=False)


@router.get("/boards/{board}/play")
async def play_page(request: Request, board: Slug) -> Response:
    """Show what attacks gain, on boards whose rules say so."""
    choice, problems = data.Choice.of(request.query_params)

    def look(found: Board | None, caller: Caller) -> dict[str, Any]:
        assert found is not None  # noqa: S101 - it was asked for
        seen = found.as_seen_by(caller).summary()
        if not seen["play"]:
            raise NotFound("This board has no page Play.")
        return {"board": seen, "role": caller.role.name.lower()}

    said = await work_of(request).on_page(request, board, look)
    return show(request, "play.html", problems=problems, **said, **_told(choice))


def _told(choice: data.Choice) -> dict[str, Any]:
    """Return what the template says of a choice."""
    boards = [data.board_of(choice, key) for key in data.BOARDS]
    panels = [
        {
            "key": each.key,
            "name": each.name,
            "about": about(each, choice),
            "picture": picture(each, choice.questions),
            "curves": [(curve, gap_words(curve.gap)) for curve in each.curves],
        }
        for each in boards
    ]
    return {
        "choice": choice,
        "choices": data.CHOICES,
        "noises": data.NOISES,
        "games": data.GAMES,
        "worth": boards[0].patient.worth,
        "panels": panels,
        "film": json.dumps(_film(boards, choice), separators=(",", ":")),
        "boards": {each.key: each for each in boards},
        "prices": prices(choice),
        "moments": moments(boards, choice),
    }


def _film(boards: list[data.Board], choice: data.Choice) -> dict[str, Any]:
    """Return what play.js needs to show one frame after the other."""
    return {
        "questions": choice.questions,
        "plot": PLOT,
        "range": RANGE,
        "worth": boards[0].patient.worth,
        "shown": {
            board.key: {curve.attack: curve.shown for curve in board.curves} for board in boards
        },
    }
