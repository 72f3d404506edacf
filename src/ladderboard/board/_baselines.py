"""Baselines that are files: asked like any submission, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.board._desk import Sent
from ladderboard.board._people import Caller, Role, fold
from ladderboard.errors import InvalidInput, InvalidRules

if TYPE_CHECKING:
    from ladderboard.board._board import Board
    from ladderboard.board._folder import BoardFolder
    from ladderboard.holdout import Scorer

__all__ = ["ask_baselines", "check_baselines"]

_SEAT = "SELECT number, used FROM main.team WHERE book = ? AND folded = ? AND kind = 'baseline'"


def check_baselines(scorer: Scorer, folder: BoardFolder) -> None:
    """Refuse a folder with a baseline that cannot be graded, before anything is made of it."""
    for each, path in folder.baselines.items():
        try:
            scorer.read(path)
        except InvalidInput as error:
            raise InvalidRules(
                f"The baseline {each!r} cannot be graded: {error}", problems=error.problems
            ) from None


def ask_baselines(board: Board, folder: BoardFolder) -> None:
    """Ask about every baseline that was not asked yet; a crash may have come between."""
    scorer = board.scorer()
    for each, path in folder.baselines.items():
        with board.reading() as view:
            seats = view.run(_SEAT, (view.number, fold(each)))
        if seats and seats[0][1]:
            continue
        caller = Caller(Role.ORGANISER, seats[0][0]) if seats else board.seats.add_baseline(each)
        sent = Sent(scorer.read(path), board.book.world.clock(), message="baseline")
        board.submit(caller, sent)
