"""The page of a board."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ladderboard.board import PUBLIC, Board, Caller, moment
from ladderboard.holdout import unseen
from ladderboard.server._api import Slug
from ladderboard.server._context import Made, is_public, work_of
from ladderboard.server._pages._chart import history_chart
from ladderboard.server._pages._page import or_none, pack, render, send, show, url_of
from ladderboard.server._pages._reply import left_words
from ladderboard.server._pages._standings import finals_table, standings_table
from ladderboard.server._pages._words import is_over, state_of, until
from ladderboard.server._pages._words_meaning import meaning_in_words
from ladderboard.server._pages._words_rules import rules_in_words

__all__ = ["router", "told_to_all"]

router = APIRouter(include_in_schema=False)
_TABLE = 10  # records that are listed below the chart
_VEILED = {"hidden", "frozen"}


@router.get("/boards/{board}")
async def board_page(request: Request, board: Slug) -> Response:
    """Show a board: standings, rules, what they mean, and how to submit."""
    work, url = work_of(request), url_of(request)
    root = work.settings.prefix
    cursor = request.query_params.get("cursor") or None
    now = int(work.boards.world.clock())
    everybodys = is_public(request)

    def look(found: Board | None, caller: Caller) -> Made | dict[str, Any]:
        assert found is not None  # noqa: S101 - it was asked for
        if not everybodys:
            return _look(found, caller, cursor, now)
        # To the minute, as "in 3 days" is; but a phase begins and ends at its second.
        row, at = found.stamp()
        if row.visibility in _VEILED:
            # How long a reply takes must not tell that somebody asked: that changes the stamp.
            return _make(url, root, _look(found, PUBLIC, cursor, now))
        phase = found.rules_of(row).phase_at(now)
        key = (url, cursor, now // 60, phase, row, at)
        return work.pages.get(key, lambda: _make(url, root, _look(found, PUBLIC, cursor, now)))

    seen = await work.on_page(request, board, look)
    if isinstance(seen, Made):
        return send(request, seen.content, lambda _: seen.packed)
    return show(request, "board.html", **_told(seen))


def _make(url: str, root: str, seen: dict[str, Any]) -> Made:
    content = render("board.html", url=url, root=root, **_told(seen)).encode()
    return Made(content, pack(content))


def _look(found: Board, caller: Caller, cursor: str | None, now: int) -> dict[str, Any]:
    """Return everything that goes into the page."""
    view = found.as_seen_by(caller)
    board = view.summary()
    display = found.rules.display  # another process may have amended it
    history = or_none(view.history)
    return {
        "board": board,
        "display": display,
        "gain": display.gain_text(unseen(found.book.mechanism), board["best"]["loss"]),
        "standings": or_none(lambda: view.leaderboard(cursor=cursor)),
        "history": history,
        "finals": or_none(view.finals) if board["status"] == "closed" else None,
        "later": cursor is not None,
        "role": caller.role.name.lower(),
        "team": view.team() if caller.team is not None else None,
        "now": now,
    }


def told_to_all(found: Board, cursor: str | None, now: int) -> dict[str, Any]:
    """Return what the template says to everybody."""
    return _told(_look(found, PUBLIC, cursor, now))


def _left(board: dict[str, Any], team: dict[str, Any] | None, now: int) -> str | None:
    """Return what a team has left, as its own page says it."""
    if team is None:
        return None
    window = board["window"]
    seconds = None if window is None else window["seconds"]
    return left_words(team["limits"], seconds, team["next_submission_at"], moment(now))


def _told(seen: dict[str, Any]) -> dict[str, Any]:
    """Return what the template says of what was seen."""
    board, now, history = seen["board"], seen["now"], seen["history"]
    display = seen["display"]
    points = history["points"] if history is not None else []
    deadline = board["deadline"]
    return {
        "board": board,
        "role": seen["role"],
        "team": seen["team"],
        "left": _left(board, seen["team"], now),
        "state": state_of(board, now),
        "over": is_over(board),
        "away": None if deadline is None else until(deadline, now),
        "closed": None if seen["finals"] is None else until(seen["finals"]["closed"], now),
        "digits": display.digits,
        "standings": standings_table(seen["standings"], display.digits),
        "finals": finals_table(seen["finals"], display, seen["team"]),
        "later": seen["later"],
        "points": points[-2 : -_TABLE - 2 : -1],
        "history": history,
        "chart": None if history is None else history_chart(history),
        "rules": rules_in_words(board),
        "meaning": meaning_in_words(board, points[-1] if points else None, seen["gain"]),
    }
