"""A board seen as a guard: it is asked as a holdout is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.client._submitted import Submitted
    from ladderboard.client._sync import Client

__all__ = ["BoardGuard"]


class BoardGuard:
    """A board through a client, to be asked by a :class:`ladderboard.Judge` or an adapter.

    Every question is a submission and counts as one. ``team`` is for evaluators and organisers.
    """

    def __init__(self, client: Client, board: str, team: str | None = None) -> None:
        self.client, self.board, self.team = client, board, team
        self._last: Submitted | None = None
        self._takes: str | None = None

    def ask(
        self,
        predictions: Any,
        *,
        message: str = "",
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> Submitted:
        """Ask about a model by its predictions: submit them."""
        self._last = self.client.submit(
            self.board, predictions, message=message, team=self.team, format=format
        )
        return self._last

    @property
    def takes(self) -> str:
        """What the board is asked with, predictions or scores; it is asked for once."""
        if self._takes is None:
            self._takes = self.client.board(self.board).takes
        return self._takes

    @property
    def remaining(self) -> int:
        """How many questions are left now, by the tightest of the team's limits.

        Who submits for another team knows it from the last answer; before the first, it is what is
        left of the whole board, or of the rules where that is hidden.
        """
        if self.team is None:
            return self.client.team(self.board).remaining
        if self._last is not None:
            return self._last.remaining
        board = self.client.board(self.board)
        return board.questions - (board.used or 0)

    def __repr__(self) -> str:
        team = "" if self.team is None else f", team={self.team!r}"
        return f"BoardGuard({self.client.url!r}, {self.board!r}{team})"
