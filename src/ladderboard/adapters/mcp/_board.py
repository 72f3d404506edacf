"""The tools of a board, for an agent of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count, format_decimals
from ladderboard.adapters import import_library
from ladderboard.adapters.mcp._arguments import predictions_argument, text_argument
from ladderboard.adapters.mcp._tools import (
    REPLY_FIELDS,
    REPLY_MEANING,
    Tool,
    ToolResult,
    Toolset,
    field_schema,
    predictions_schema,
    reply_result,
    standing_result,
)
from ladderboard.errors import NotAllowed

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._arguments import Folder
    from ladderboard.client import BoardInfo, Client, MetricDisplay, TeamStatus

_RETRIES = 1  # few, because the hosts of agents time out soon
_STANDING = Tool(
    name="standing",
    title="Where your team stands",
    description="Costs no question. Your team's best so far and its place, which submission "
    "improved last (the model to report), and what predictions must look like. The place is by "
    "the released best; it says nothing about the model that you sent last.",
)

_BUDGET = Tool(
    name="budget",
    title="How many submissions are left",
    description="Costs no question. How many submissions your team has left now, under which "
    "limits, and when the next may come.",
)


def open_board_toolset(
    target: str, *, token: str | None, timeout: float, folder: Folder | None
) -> BoardToolset:
    """Return the toolset of a board by the address of its page."""
    import_library("httpx", extra="mcp")
    from ladderboard.client import Client, find_access, split_board  # noqa: PLC0415 - an extra

    server, slug = split_board(target)
    find_access(server, token).token_for(slug)  # refuses a token that must not be sent there
    client = Client(server, token, timeout=timeout, retries=_RETRIES)
    return BoardToolset(client, slug, folder=folder)


class BoardToolset(Toolset):
    """The tools ``submit``, ``standing`` and ``budget`` on a board. Thread-safe.

    Results do not contain the names of other teams: an agent might obey such a text.

    Parameters
    ----------
    client
        A client with the token of a team.
    board
        The board's short name.
    folder
        The folder from which files of predictions may be read; None allows no files.
    """

    def __init__(self, client: Client, board: str, *, folder: Folder | None = None) -> None:
        self._client, self._board, self._folder = client, board, folder
        self.tools = (_submit_tool(folder), _STANDING, _BUDGET)

    def submit(self, arguments: dict[str, Any]) -> ToolResult:
        """Submit one model's predictions."""
        message = text_argument(arguments, "message")
        predictions = predictions_argument(arguments, self._folder)
        result = self._client.submit(self._board, predictions, message=message)
        return reply_result(
            result,
            display=_display_fields(result.display, result.display.released),
            number=result.number,
            next_submission_at=result.raw["next_submission_at"],
        )

    def standing(self, _: dict[str, Any]) -> ToolResult:
        """Return the team's best and place, the winner and the format of predictions."""
        board, team = self._client.board(self._board), self._client.team(self._board)
        submissions = list(self._client.submissions(self._board))
        # A frozen board does not report later corrections of labels.
        epoch = max([board.epoch, *(submission.epoch for submission in submissions)])
        rank = self._rank()
        return standing_result(
            f"A submission needs {board.rows:,} rows, each with an id",
            [
                {
                    "number": submission.number,
                    "question": submission.question,
                    "released": submission.released,
                    "name": submission.message or None,
                }
                for submission in reversed(submissions)
                if submission.improved and submission.epoch == epoch
            ],
            reason=_standing_sentence(team, board, rank),
            status=board.status,
            released=team.released,
            display=_display_fields(board.display, team.display),
            rank=rank,
            teams=board.registered,
            best=board.best.released,
            submissions=team.submissions,
            unseen=team.visible_gain,
            rows=board.rows,
            kind=board.kind,
            loss=board.loss,
            mechanism=board.mechanism,
            deadline=board.raw["deadline"],
        )

    def budget(self, _: dict[str, Any]) -> ToolResult:
        """Return how many submissions the team has left, and when the next is allowed."""
        board, team = self._client.board(self._board), self._client.team(self._board)
        reason = (
            f"{format_count(team.submissions, 'submission')} answered; {team.remaining:,} left now."
        )
        next_at = team.raw["next_submission_at"]
        if not team.remaining and next_at is not None:
            reason = f"{reason[:-1]}, the next at {next_at}."
        if board.status != "open":
            reason += f" The board is {board.status}."
        allowed = {limit.name: limit.allowed for limit in team.limits}
        content = {
            "reason": reason,
            "questions": allowed.get("team", board.per_team),
            "used": team.submissions,
            "remaining": team.remaining,
            "open": board.status == "open" and team.remaining > 0,
            "limits": team.raw["limits"],
            "next_submission_at": next_at,
        }
        return ToolResult(reason, content)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _rank(self) -> int | None:
        """Return the team's place; None if the standings are hidden or it has none."""
        try:
            rows = self._client.leaderboard(self._board)
            return next((row.rank for row in rows if row.you), None)
        except NotAllowed:
            return None


def _display_fields(display: MetricDisplay, released: float | None) -> dict[str, Any]:
    return {"name": display.name, "direction": display.direction, "released": released}


def _standing_sentence(team: TeamStatus, board: BoardInfo, rank: int | None) -> str:
    submissions, teams = team.submissions, board.registered
    if not submissions:
        return "Your team has submitted nothing yet."
    best = "its best is withheld"
    if team.display is not None:
        best_text = format_decimals(team.display, board.display.digits)
        best = f"its best {board.display.name} is {best_text}"
    position = "" if rank is None else f", on place {rank}"
    among = f" of {format_count(teams, 'team')}" if position and teams else ""
    return f"After {format_count(submissions, 'submission')} of your team {best}{position}{among}."


def _submit_tool(folder: Folder | None) -> Tool:
    return Tool(
        name="submit",
        title="Submit a model's predictions to the board",
        description="Submit one model's predictions to the board, in the name of your team. Costs "
        f"one question of the team's budget, if it is answered. {REPLY_MEANING}",
        input_fields={
            **predictions_schema(folder),
            "message": field_schema(
                "string", "Your own note on the model, kept by the board, to find the winner by."
            ),
        },
        output_fields={
            **REPLY_FIELDS,
            "display": field_schema(
                "object", "The same in the board's own metric: name, direction, released."
            ),
            "number": field_schema(
                "integer", "The number of the submission among those of your team."
            ),
            "next_submission_at": field_schema(
                "string",
                "When the next submission is allowed; null if there will be none.",
                nullable=True,
            ),
        },
        spends_question=True,
    )
