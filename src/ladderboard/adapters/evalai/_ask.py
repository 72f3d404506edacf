"""Asking about a submission: what EvalAI hands over, to a guard or to a board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ladderboard import _settings
from ladderboard.adapters._release import check_board, check_ladders, check_takes
from ladderboard.errors import NotOpen

if TYPE_CHECKING:
    from ladderboard.client import Client
    from ladderboard.holdout import Reply

__all__ = ["Ask", "Handed", "on_board", "on_ladders"]


class Handed(NamedTuple):
    """One submission, by EvalAI's numbers; ``team`` is the participant team's."""

    submission: int
    challenge: int
    phase: int
    team: int


Ask = Callable[[Handed, Path], "Reply"]
"""What answers a submission and its file. Asked about the same twice it must answer once."""


class _Guard(Protocol):
    @property
    def takes(self) -> str: ...

    @property
    def ladders(self) -> int: ...

    def ask(self, predictions: Any, /, *, ladder: str) -> Reply: ...


def on_ladders(guard: _Guard, teams: int = 2) -> Ask:
    """Ask a guard, each participant team on a ladder of its own, ``evalai-team-5``.

    What EvalAI's leaderboard then shows of a team is that team's own best. The budget is one over
    all teams. ``teams`` is how many there may be: a guard with fewer ladders is refused at once. A
    guard of scores is refused too: teams would score themselves.
    """
    check_ladders(guard.ladders, _settings.whole("teams", teams, at_least=1))

    def ask(handed: Handed, file: Path) -> Reply:
        check_takes(guard.takes)
        return guard.ask(file, ladder=f"evalai-team-{handed.team}")

    return ask


def on_board(client: Client, board: str, teams: Mapping[int, str]) -> Ask:
    """Ask a board with an evaluator's token, in the name of its teams.

    ``teams`` tells which team of the board, by its id, a participant team is. The board's own
    limits hold. A board with one ladder for all, and one that is hidden or frozen, is refused:
    their releases are not for a leaderboard with a row for each team that everybody sees. So is one
    of scores: teams would score themselves.
    """

    def ask(handed: Handed, file: Path) -> Reply:
        team = teams.get(handed.team)
        if team is None:
            raise NotOpen(
                f"Participant team {handed.team} is no team of the board yet. Its organiser adds "
                "it, and runs this submission again."
            )
        check_board(client.board(board))
        # No key of ours: the same predictions are answered once, and anew after a correction.
        return client.submit(board, file, team=team, message=f"EvalAI {handed.submission}")

    return ask
