"""A board, as the agent of a team asks it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from ladderboard.adapters._library import library
from ladderboard.adapters.mcp._board_tools import BUDGET, STANDING, submit_tool
from ladderboard.adapters.mcp._given import check_known, predictions_of, text_of
from ladderboard.adapters.mcp._tools import Said, bound_of, counted, reported
from ladderboard.errors import InvalidInput, NotAllowed
from ladderboard.holdout._meter import unseen
from ladderboard.mechanisms import mechanism

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._folder import Folder
    from ladderboard.adapters.mcp._tools import Tool
    from ladderboard.client import Client

__all__ = ["BoardDesk", "open_board"]

_LAST = 20  # improvements that are listed
_RETRIES = 1  # the hosts of agents are less patient than people


def open_board(
    target: str, *, token: str | None, timeout: float, folder: Folder | None
) -> BoardDesk:
    """Return the desk of a board by the address of its page."""
    library("httpx", extra="mcp")
    from ladderboard.client import Client  # noqa: PLC0415 - an extra
    from ladderboard.client._address import split_board  # noqa: PLC0415 - same

    server, slug = split_board(target)
    client = Client(server, token, timeout=timeout, retries=_RETRIES)
    client._access.token_for(slug)  # noqa: SLF001 - if it cannot be sent, its owner hears of it
    return BoardDesk(client, slug, folder=folder)


class BoardDesk:
    """The tools ``submit``, ``standing`` and ``budget`` on a board. Safe with threads.

    The names of other teams are left out of what is said: they are words of others, and an agent
    might take them for orders.

    Parameters
    ----------
    client
        A client with the token of a team.
    board
        The board's short name.
    folder
        Where files of predictions may be read; none are if None.
    """

    def __init__(self, client: Client, board: str, *, folder: Folder | None = None) -> None:
        self._client, self._board, self._folder = client, board, folder
        self._improved: dict[int, tuple[int, str | None]] = {}
        self.tools: tuple[Tool, ...] = (submit_tool(folder), STANDING, BUDGET)

    def call(self, tool: str, arguments: dict[str, Any]) -> Said:
        """Answer; whatever cannot be done is raised."""
        known = {each.name: tuple(each.takes) for each in self.tools}
        check_known(tool, arguments, known[tool])
        found: Said = getattr(self, tool)(arguments)
        return found

    def submit(self, arguments: dict[str, Any]) -> Said:
        """Submit one model's predictions."""
        message = text_of(arguments, "message")
        given = predictions_of(arguments, self._folder)
        told = self._client.submit(self._board, given, message=message)
        if told.improved:
            self._improved.setdefault(told.number, (told.question, message or None))
        winner = self._winner()
        shown = told.display
        content = {
            "reason": told.reason,
            "improved": told.improved,
            "released": told.released,
            "score": told.score,
            "question": told.question,
            "remaining": told.remaining,
            "again": told.again,
            "bound": bound_of(told.bound),
            "winner": winner,
            "display": {
                "name": shown.name,
                "direction": shown.direction,
                "released": shown.released,
            },
            "number": told.number,
            "next_submission_at": _moment(told.next_submission_at),
        }
        return Said(f"{told.reason} {reported(winner)}", content)

    def standing(self, _: dict[str, Any]) -> Said:
        """Say where the team stands."""
        board, team = self._client.board(self._board), self._client.team(self._board)
        own = self._client.submissions(self._board)
        current = (each for each in own if each.improved and each.epoch == board.epoch)
        improved = list(islice(current, _LAST))[::-1]
        listed = [
            {"question": each.question, "released": each.released, "name": each.message or None}
            for each in improved
        ]
        winner = {name: listed[-1][name] for name in ("question", "name")} if listed else None
        rank = self._rank()
        gain = _gain(board.mechanism)
        reason = _stands(team.submissions, team.released, rank, board.registered)
        content = {
            "reason": reason,
            "status": board.status,
            "released": team.released,
            "display": {
                "name": board.display.name,
                "direction": board.display.direction,
                "released": team.display,
            },
            "rank": rank,
            "teams": board.registered,
            "best": board.best.released,
            "submissions": team.submissions,
            "winner": winner,
            "improvements": listed,
            "unseen": gain,
            "rows": board.rows,
            "kind": board.kind,
            "loss": board.loss,
            "mechanism": board.mechanism,
            "deadline": _moment(board.deadline),
        }
        lines = [f"{reason} {reported(winner)}"]
        if gain is not None:
            lines.append(f"Gains below about {gain:.2g} may go unseen.")
        lines.append(
            f"A submission wants {board.rows:,} rows, with an id each; labels are {board.kind}."
        )
        return Said("\n".join(lines), content)

    def budget(self, _: dict[str, Any]) -> Said:
        """Say how many submissions are left to the team, and when the next may come."""
        board, team = self._client.board(self._board), self._client.team(self._board)
        reason = f"{counted(team.submissions, 'submission')} answered; {team.remaining:,} left now."
        when = _moment(team.next_submission_at)
        if not team.remaining and when is not None:
            reason = f"{reason[:-1]}, the next at {when}."
        if board.status != "open":
            reason += f" The board is {board.status}."
        content = {
            "reason": reason,
            "questions": next(
                (each.allowed for each in team.limits if each.name == "team"), board.per_team
            ),
            "used": team.submissions,
            "remaining": team.remaining,
            "open": board.status == "open" and team.remaining > 0,
            "limits": [
                {"name": each.name, "remaining": each.remaining, "allowed": each.allowed}
                for each in team.limits
            ],
            "next_submission_at": when,
        }
        return Said(reason, content)

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _rank(self) -> int | None:
        """Return the team's place; None where the standings are hidden or it has none."""
        try:
            rows = self._client.leaderboard(self._board)
            return next((each.rank for each in rows if each.you), None)
        except NotAllowed:
            return None

    def _winner(self) -> dict[str, Any] | None:
        """Return the last that improved of all that were submitted from here.

        By the submission's number: after labels were corrected, questions may count anew.
        """
        numbers = list(self._improved)
        if not numbers:
            return None
        question, name = self._improved[max(numbers)]
        return {"question": question, "name": name}


def _moment(when: Any) -> str | None:
    return None if when is None else when.isoformat()


def _gain(described: dict[str, Any]) -> float | None:
    try:
        return unseen(mechanism(described))
    except InvalidInput:  # one that only the server has
        return None


def _stands(submissions: int, released: float | None, rank: int | None, teams: int | None) -> str:
    if not submissions:
        return "Your team has submitted nothing yet."
    best = "its best is not told" if released is None else f"its best is a loss of {released:.6g}"
    place = "" if rank is None else f", on place {rank}"
    among = f" of {counted(teams, 'team')}" if place and teams else ""
    return f"After {counted(submissions, 'submission')} of your team {best}{place}{among}."
