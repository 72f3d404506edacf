"""The client for those who wait for many things at once: the same verbs, to be awaited."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from ladderboard.client import _requests as requests
from ladderboard.client._transport import FAILURES, Answer, Base, Done, Patience, Pieces
from ladderboard.errors import LadderboardError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from ladderboard.client._models import (
        Board,
        Finals,
        NewTeam,
        Record,
        Standing,
        Submission,
        Submitted,
        Team,
    )
    from ladderboard.client._requests import Request

T = TypeVar("T")


class AsyncClient(Base):
    """Boards on a server, over HTTP, within one event loop; what it takes is as for ``Client``.

    Use it with ``async with``, or await ``close`` at the end.
    """

    async def boards(self) -> tuple[Board, ...]:
        """Return all boards."""
        return tuple([each async for each in self._pages(requests.boards)])

    async def board(self, board: str) -> Board:
        """Return what a board is, what it promises, and how far it has come."""
        return await self._ask(requests.board(board))

    async def submit(
        self,
        board: str,
        predictions: Any,
        *,
        message: str = "",
        team: str | None = None,
        key: str | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
        progress: Callable[[int, int], object] | None = None,
    ) -> Submitted:
        """Ask a question: send predictions, and return what is released.

        What it takes is as for :meth:`Client.submit <ladderboard.client.Client.submit>`.
        """
        # Packing takes time, and the disk.
        request, note = await asyncio.to_thread(
            self._begin,
            board,
            predictions,
            message=message,
            team=team,
            key=key,
            format=format,
            progress=progress,
        )
        try:
            reply = await self._ask(request)
        except LadderboardError as error:
            await asyncio.to_thread(note.refused, error)
            raise
        await asyncio.to_thread(note.answered, reply)
        return reply

    def submissions(self, board: str, team: str | None = None) -> AsyncIterator[Submission]:
        """Yield one's own submissions, newest first; ``team`` for evaluators and organisers."""
        return self._pages(lambda before: requests.submissions(board, team, before))

    async def submission(self, board: str, submission: str) -> Submission:
        """Return one submission."""
        return await self._ask(requests.submission(board, submission))

    def leaderboard(self, board: str) -> AsyncIterator[Standing]:
        """Yield the standings, from the top."""
        return self._pages(lambda cursor: requests.leaderboard(board, cursor))

    async def records(self, board: str) -> tuple[Record, ...]:
        """Return every time that the best of the whole board went down, oldest first."""
        return await self._ask(requests.records(board))

    async def finals(self, board: str) -> Finals:
        """Return the final ranking; ``NotFound`` before the board is closed."""
        return await self._ask(requests.finals(board))

    def ledger(self, board: str, first: int = 0) -> AsyncIterator[bytes]:
        """Yield the ledger's entries, each the very bytes that were hashed."""
        return self._pages(lambda at: requests.ledger(board, first if at is None else at))

    async def team(self, board: str) -> Team:
        """Return one's own affairs: release, limits, when the next question may come."""
        return await self._ask(requests.team(board))

    async def register(self, board: str, name: str, invitation: str | None = None) -> NewTeam:
        """Make a team; its token is told here, and never again."""
        return await self._ask(requests.register(board, name, invitation))

    async def rotate_token(self, board: str) -> NewTeam:
        """Return another token for one's own team; the one in use ends at once."""
        return await self._ask(requests.rotate_token(board))

    async def selections(self, board: str) -> tuple[str, ...]:
        """Return what one's own team selected for the finals; nothing where the default holds."""
        return await self._ask(requests.selections(board))

    async def select(self, board: str, submissions: Sequence[str]) -> tuple[str, ...]:
        """Select submissions for the finals by their ids, in place of those selected before."""
        return await self._ask(requests.select(board, submissions))

    async def close(self) -> None:
        """Close idle connections; asking opens them again."""
        made = self._made.pop(os.getpid(), None)
        if made is not None:
            await made.aclose()

    async def _ask(self, request: Request[T]) -> T:
        patience = Patience(self.retries)
        while True:
            try:
                answer = await self._send(request)
            except FAILURES as error:
                outcome: Any = self._failed(request, patience, error)
            else:
                outcome = self._concluded(request, patience, answer)
            if isinstance(outcome, Done):
                return outcome.value
            await asyncio.sleep(outcome.seconds)

    async def _send(self, request: Request[Any]) -> Answer:
        if os.getpid() not in self._made:
            self._made[os.getpid()] = httpx.AsyncClient(**self._manner())
        line: httpx.AsyncClient = self._made[os.getpid()]
        content = request.content if request.body is None else request.body.async_pieces()
        headers = self._headers(request)
        async with line.stream(
            request.method, request.path, content=content, headers=headers
        ) as got:
            pieces = Pieces(self.timeout)
            async for each in got.aiter_raw():
                pieces.add(each)
            return Answer(got.status_code, got.headers, pieces.whole())

    async def _pages(self, page: Callable[[Any], Request[Any]]) -> AsyncIterator[Any]:
        at, seen = None, set[Any]()
        while True:
            found = await self._ask(page(at))
            for each in found.rows:
                yield each
            at = self._next(found, seen)
            if at is None:
                return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
