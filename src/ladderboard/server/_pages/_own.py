"""A team's own affairs, as its page shows them: what is left, its history, its selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ladderboard.server._pages._chart import own_chart
from ladderboard.server._pages._page import when
from ladderboard.server._pages._reply import left_words
from ladderboard.server._pages._sheet import sheet_of, size_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.board import Board, View

__all__ = ["Selection", "charted", "closed_words", "own_affairs", "said_of"]

_PAGE = 20
_OVER = {"closing", "closed", "moved"}
_STATUS = {
    "paused": "The board is paused. It takes no submissions until its organiser goes on.",
    "restored": "The board was restored from a dump, and waits for its organiser.",
    "closing": "The board is being closed. It takes no more submissions.",
    "closed": "The board is closed. It takes no more submissions.",
    "moved": "The board has moved to another server; ask its organiser where.",
}


class Selection(NamedTuple):
    """What a team selected for the finals: how many it may, what it did, and whether it still can.

    ``elsewhere`` are those that are not on this page of its history.
    """

    most: int
    many: int
    elsewhere: tuple[Mapping[str, Any], ...]
    locked: bool


def own_affairs(
    board: Board, view: View, summary: Mapping[str, Any], before: int | None, now: str
) -> dict[str, Any]:
    """Return everything that the page shows to a team alone."""
    team, window = view.team(), summary["window"]
    rows = view.submissions(limit=_PAGE, before=before)
    seconds = None if window is None else window["seconds"]
    following = team["next_submission_at"]
    row = board.row()
    return {
        "team": team,
        "left": left_words(team["limits"], seconds, following, now),
        "closed": closed_words(summary, now),
        "spent": following is None and not team["remaining"],
        "rows": [{**each, "said": said_of(each, summary["display"]["digits"])} for each in rows],
        "chart": own_chart(charted(view.own_history())) if rows else None,
        "older": rows[-1]["number"] if len(rows) == _PAGE and rows[-1]["number"] > 1 else None,
        "newer": before is not None,
        "sheet": sheet_of(board.rules_of(row).loss, board.scorer_of(row).roster),
        "size": size_words(summary["files"]["bytes"]),
        "selection": _selection(board, view, summary, rows) if team["submissions"] else None,
    }


def charted(history: Mapping[str, Any]) -> dict[str, Any]:
    """Return a history as it is drawn: from the first record on.

    >>> start = {"loss": 1.0, "display": 0.0, "improved": False}
    >>> first = {"loss": 0.2, "display": 0.8, "improved": True}
    >>> [each["display"] for each in charted({"points": [start, first]})["points"]]
    [None, 0.8]
    """
    points = [{**each, "display": None} if _is_none(each) else each for each in history["points"]]
    return {**history, "points": points}


def _is_none(each: Mapping[str, Any]) -> bool:
    """Tell whether there was no record after a submission."""
    return each["loss"] is not None and each["loss"] >= 1 and not each["improved"]


def said_of(each: Mapping[str, Any], digits: int) -> str:
    """Return the release after a submission, for a cell.

    >>> said_of({"display": 0.78, "loss": 0.22, "improved": False}, 3)
    '0.780'
    >>> said_of({"display": 0.0, "loss": 1.0, "improved": False}, 3)
    'no record'
    >>> said_of({"display": None, "loss": None, "improved": True}, 3)
    'not shown'
    """
    if each["display"] is None:
        return "not shown"
    if _is_none(each):
        return "no record"
    return f"{each['display']:.{digits}f}"


def closed_words(summary: Mapping[str, Any], now: str) -> Markup | None:
    """Return why a board takes no submissions now; None if it does.

    >>> phase = {"name": "main", "start": "2026-11-20T00:00:00Z", "end": None}
    >>> board = {"status": "open", "phase": None, "phases": [phase], "deadline": None}
    >>> closed_words(board, "2026-11-16T14:05:00Z").striptags()
    'The board opens at 2026-11-20 00:00 UTC.'
    >>> closed_words({**board, "phase": "main"}, "2026-11-20T14:05:00Z")
    """
    if summary["status"] in _STATUS:
        return Markup("{}").format(_STATUS[summary["status"]])
    if summary["phase"] is not None:
        return None
    starts = [each["start"] for each in summary["phases"] if each["start"] is not None]
    soonest = min((each for each in starts if each > now), default=None)
    if soonest is not None:
        return Markup("The board opens at {}.").format(when(soonest))
    if summary["deadline"] is None:
        return Markup("The board takes no submissions now.")
    return Markup("The deadline was {}.").format(when(summary["deadline"]))


def _selection(
    board: Board, view: View, summary: Mapping[str, Any], rows: list[dict[str, Any]]
) -> Selection | None:
    row = board.row()
    if not board.epoch_of(row).ranked:
        return None
    chosen, here = view.selections(), {each["id"] for each in rows}
    elsewhere = tuple(view.submission(each) for each in chosen if each not in here)
    most = board.rules_of(row).selections
    return Selection(most, len(chosen), elsewhere, summary["status"] in _OVER)
