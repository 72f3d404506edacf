"""The client for asyncio: the same methods, to be awaited."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import httpx

from ladderboard.client import _requests as requests
from ladderboard.client._transport import (
    TRANSPORT_ERRORS,
    BaseClient,
    Completed,
    RawResponse,
    ResponseBuffer,
    RetryBackoff,
)
from ladderboard.errors import LadderboardError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from ladderboard.board import (
        BoardInfo,
        BoardRecord,
        BoardTerms,
        FinalRanking,
        LeaderboardRow,
        SubmissionInfo,
        TeamCredentials,
        TeamMembers,
        TeamStatus,
    )
    from ladderboard.client._models import SubmissionResult
    from ladderboard.client._requests import Request

T = TypeVar("T")


class AsyncClient(BaseClient):
    """Boards on a server, over HTTP, within one event loop; parameters as for ``Client``.

    Use it with ``async with``, or await ``close`` at the end.
    """

    async def boards(self) -> tuple[BoardInfo, ...]:
        """Return all boards."""
        return tuple([iterate_page async for iterate_page in self._iterate_pages(requests.boards)])

    async def board(self, board: str) -> BoardInfo:
        """Return a board: its rules, its guarantees and how many submissions were used."""
        return await self._send_with_retries(requests.board(board))

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
    ) -> SubmissionResult:
        """Submit predictions and return the answer. This spends one question.

        Parameters are as for :meth:`Client.submit <ladderboard.client.Client.submit>`.
        """
        # Encoding the predictions blocks: CPU time and the disk.
        request, receipt = await asyncio.to_thread(
            self._prepare_submission,
            board,
            predictions,
            message=message,
            team=team,
            key=key,
            file_format=format,
            progress=progress,
        )
        try:
            reply = await self._send_with_retries(request)
        except LadderboardError as error:
            await asyncio.to_thread(receipt.record_refusal, error)
            raise
        await asyncio.to_thread(receipt.record_answer, reply)
        return reply

    def submissions(self, board: str, team: str | None = None) -> AsyncIterator[SubmissionInfo]:
        """Yield your team's submissions, newest first; evaluators and organisers give ``team``."""
        return self._iterate_pages(lambda before: requests.submissions(board, team, before))

    async def submission(self, board: str, submission: str) -> SubmissionInfo:
        """Return one submission."""
        return await self._send_with_retries(requests.submission(board, submission))

    def leaderboard(self, board: str) -> AsyncIterator[LeaderboardRow]:
        """Yield the leaderboard's rows, best first."""
        return self._iterate_pages(lambda cursor: requests.leaderboard(board, cursor))

    async def records(self, board: str) -> tuple[BoardRecord, ...]:
        """Return each improvement of the best on the whole board, oldest first."""
        return await self._send_with_retries(requests.records(board))

    async def finals(self, board: str) -> FinalRanking:
        """Return the final ranking; ``NotFound`` before the board is closed."""
        return await self._send_with_retries(requests.finals(board))

    def ledger(self, board: str, first: int = 0) -> AsyncIterator[bytes]:
        """Yield the ledger's entries from ``first`` on, as the bytes that were hashed."""
        return self._iterate_pages(lambda cursor: requests.ledger(board, cursor or first))

    async def team(self, board: str) -> TeamStatus:
        """Return your team: its best, its limits, and when it may submit next."""
        return await self._send_with_retries(requests.team(board))

    async def register(
        self, board: str, name: str, invitation: str | None = None
    ) -> TeamCredentials:
        """Register a team. Its token is returned here only; keep it."""
        return await self._send_with_retries(requests.register(board, name, invitation))

    async def rotate_token(self, board: str) -> TeamCredentials:
        """Return a new token for your team; the old one stops working at once."""
        return await self._send_with_retries(requests.rotate_token(board))

    async def terms(self, board: str) -> BoardTerms:
        """Return the terms of a board: text, version, and whether your team accepted them."""
        return await self._send_with_retries(requests.terms(board))

    async def accept_terms(self, board: str, version: str) -> BoardTerms:
        """Accept the version of the terms that you read; the ledger records it."""
        return await self._send_with_retries(requests.accept_terms(board, version))

    async def members(self, board: str) -> TeamMembers:
        """Return the people in your team with their roles, and its invitations."""
        return await self._send_with_retries(requests.members(board))

    async def set_role(
        self, board: str, member: int, role: Literal["owner", "member"]
    ) -> TeamMembers:
        """Make a person in your team an owner or a member."""
        return await self._send_with_retries(requests.set_role(board, member, role))

    async def remove_member(self, board: str, member: int) -> None:
        """Remove a person from your team; if they know its token, rotate it."""
        await self._send_with_retries(requests.remove_member(board, member))

    async def invite_member(self, board: str, *, days: float = 7, uses: int = 1) -> str:
        """Return an invitation with which people who sign in join your team."""
        return await self._send_with_retries(requests.invite_member(board, days, uses))

    async def revoke_invitation(self, board: str, invitation: str) -> None:
        """End an invitation to your team by its id."""
        await self._send_with_retries(requests.revoke_invitation(board, invitation))

    async def selections(self, board: str) -> tuple[str, ...]:
        """Return the ids your team selected for the finals; empty if it selected none."""
        return await self._send_with_retries(requests.selections(board))

    async def select(self, board: str, submissions: Sequence[str]) -> tuple[str, ...]:
        """Select submissions for the finals by their ids, replacing earlier selections."""
        return await self._send_with_retries(requests.select(board, submissions))

    async def close(self) -> None:
        """Close idle connections; the next request opens new ones."""
        http_client = self._http_clients.pop(os.getpid(), None)
        if http_client is not None:
            await http_client.aclose()

    async def _send_with_retries(self, request: Request[T]) -> T:
        backoff = RetryBackoff(self.retries)
        while True:
            try:
                response = await self._send_once(request)
            except TRANSPORT_ERRORS as error:
                outcome: Any = self._handle_transport_error(request, backoff, error)
            else:
                outcome = self._handle_response(request, backoff, response)
            if isinstance(outcome, Completed):
                return outcome.value
            await asyncio.sleep(outcome.seconds)

    async def _send_once(self, request: Request[Any]) -> RawResponse:
        if os.getpid() not in self._http_clients:
            self._http_clients[os.getpid()] = httpx.AsyncClient(**self._http_options())
        http_client: httpx.AsyncClient = self._http_clients[os.getpid()]
        content = request.content if request.body is None else request.body.async_chunks()
        headers = self._headers(request)
        async with http_client.stream(
            request.method, request.path, content=content, headers=headers
        ) as response:
            buffer = ResponseBuffer(self.timeout)
            async for chunk in response.aiter_raw():
                buffer.add(chunk)
            return RawResponse(response.status_code, response.headers, buffer.content())

    async def _iterate_pages(
        self, make_request: Callable[[Any], Request[Any]]
    ) -> AsyncIterator[Any]:
        cursor, seen = None, set[Any]()
        while True:
            page = await self._send_with_retries(make_request(cursor))
            for row in page.rows:
                yield row
            cursor = self._next_cursor(page, seen)
            if cursor is None:
                return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
