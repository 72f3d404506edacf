"""The client: a server's boards from Python, with blocking calls."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import httpx

from ladderboard.client import _requests as requests
from ladderboard.client._config import check_board_name
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
    from collections.abc import Callable, Iterator, Sequence

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


class Client(BaseClient):
    """Boards on a server, over HTTP. Thread-safe, safe after a fork, and picklable.

    Parameters
    ----------
    url
        The server's address; by default LADDERBOARD_URL, then the default of ``ladderboard login``.
    token
        A team's, an evaluator's or an organiser's token; by default LADDERBOARD_TOKEN, then the one
        that ``ladderboard login`` stored for this server and board. Without one, only public data
        can be read.
    timeout
        Seconds to wait for each network operation; a response body must be complete within ten
        times as many.
    retries
        How often a request that is safe to repeat is sent again after a failure.
    receipts
        The folder for receipts; None to store none.
    insecure
        Whether a token may be sent to another machine unencrypted.
    """

    def boards(self) -> tuple[BoardInfo, ...]:
        """Return all boards."""
        return tuple(self._iterate_pages(requests.boards))

    def board(self, board: str) -> BoardInfo:
        """Return a board: its rules, its guarantees and how many submissions were used."""
        return self._send_with_retries(requests.board(board))

    def submit(
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

        Parameters
        ----------
        board
            The board's short name.
        predictions
            A path, bytes, an open file, an array, a dict of columns, or a pandas or polars table,
            with a row for every id.
        message
            A note for your own use, up to 500 characters.
        team
            The id of the team to submit for; evaluators and organisers only.
        key
            The Idempotency-Key; a new one by default. Retries use the same key.
        format
            The file's format: csv, tsv, parquet, arrow, jsonl or npy; detected by default.
        progress
            Called with the bytes sent so far and in total; starts again from 0 on a retry.
        """
        request, receipt = self._prepare_submission(
            board,
            predictions,
            message=message,
            team=team,
            key=key,
            file_format=format,
            progress=progress,
        )
        try:
            reply = self._send_with_retries(request)
        except LadderboardError as error:
            receipt.record_refusal(error)
            raise
        receipt.record_answer(reply)
        return reply

    def guard(self, board: str, team: str | None = None) -> BoardGuard:
        """Return a board as a guard for ``Judge``: every question is a submission."""
        return BoardGuard(self, check_board_name(board), team)

    def submissions(self, board: str, team: str | None = None) -> Iterator[SubmissionInfo]:
        """Yield your team's submissions, newest first; evaluators and organisers give ``team``."""
        return self._iterate_pages(lambda before: requests.submissions(board, team, before))

    def submission(self, board: str, submission: str) -> SubmissionInfo:
        """Return one submission."""
        return self._send_with_retries(requests.submission(board, submission))

    def leaderboard(self, board: str) -> Iterator[LeaderboardRow]:
        """Yield the leaderboard's rows, best first."""
        return self._iterate_pages(lambda cursor: requests.leaderboard(board, cursor))

    def records(self, board: str) -> tuple[BoardRecord, ...]:
        """Return each improvement of the best on the whole board, oldest first."""
        return self._send_with_retries(requests.records(board))

    def finals(self, board: str) -> FinalRanking:
        """Return the final ranking; ``NotFound`` before the board is closed."""
        return self._send_with_retries(requests.finals(board))

    def ledger(self, board: str, first: int = 0) -> Iterator[bytes]:
        """Yield the ledger's entries from ``first`` on, as the bytes that were hashed."""
        return self._iterate_pages(lambda cursor: requests.ledger(board, cursor or first))

    def team(self, board: str) -> TeamStatus:
        """Return your team: its best, its limits, and when it may submit next."""
        return self._send_with_retries(requests.team(board))

    def register(self, board: str, name: str, invitation: str | None = None) -> TeamCredentials:
        """Register a team. Its token is returned here only; keep it."""
        return self._send_with_retries(requests.register(board, name, invitation))

    def rotate_token(self, board: str) -> TeamCredentials:
        """Return a new token for your team; the old one stops working at once."""
        return self._send_with_retries(requests.rotate_token(board))

    def terms(self, board: str) -> BoardTerms:
        """Return the terms of a board: text, version, and whether your team accepted them."""
        return self._send_with_retries(requests.terms(board))

    def accept_terms(self, board: str, version: str) -> BoardTerms:
        """Accept the version of the terms that you read; the ledger records it."""
        return self._send_with_retries(requests.accept_terms(board, version))

    def members(self, board: str) -> TeamMembers:
        """Return the people in your team with their roles, and its invitations."""
        return self._send_with_retries(requests.members(board))

    def set_role(self, board: str, member: int, role: Literal["owner", "member"]) -> TeamMembers:
        """Make a person in your team an owner or a member."""
        return self._send_with_retries(requests.set_role(board, member, role))

    def remove_member(self, board: str, member: int) -> None:
        """Remove a person from your team; if they know its token, rotate it."""
        self._send_with_retries(requests.remove_member(board, member))

    def invite_member(self, board: str, *, days: float = 7, uses: int = 1) -> str:
        """Return an invitation with which people who sign in join your team."""
        return self._send_with_retries(requests.invite_member(board, days, uses))

    def revoke_invitation(self, board: str, invitation: str) -> None:
        """End an invitation to your team by its id."""
        self._send_with_retries(requests.revoke_invitation(board, invitation))

    def selections(self, board: str) -> tuple[str, ...]:
        """Return the ids your team selected for the finals; empty if it selected none."""
        return self._send_with_retries(requests.selections(board))

    def select(self, board: str, submissions: Sequence[str]) -> tuple[str, ...]:
        """Select submissions for the finals by their ids, replacing earlier selections."""
        return self._send_with_retries(requests.select(board, submissions))

    def close(self) -> None:
        """Close idle connections; the next request opens new ones."""
        http_client = self._http_clients.pop(os.getpid(), None)
        if http_client is not None:
            http_client.close()

    def _http_client(self) -> httpx.Client:
        # After a fork the connections belong to the parent, which goes on using them.
        http_client: httpx.Client | None = self._http_clients.get(os.getpid())
        if http_client is None:
            new = httpx.Client(**self._http_options())
            http_client = self._http_clients.setdefault(os.getpid(), new)
            if http_client is not new:  # another thread was faster
                new.close()
        return http_client

    def _send_with_retries(self, request: Request[T]) -> T:
        backoff = RetryBackoff(self.retries)
        while True:
            try:
                response = self._send_once(request)
            except TRANSPORT_ERRORS as error:
                outcome: Any = self._handle_transport_error(request, backoff, error)
            else:
                outcome = self._handle_response(request, backoff, response)
            if isinstance(outcome, Completed):
                return outcome.value
            time.sleep(outcome.seconds)

    def _send_once(self, request: Request[Any]) -> RawResponse:
        content = request.content if request.body is None else request.body.chunks()
        headers = self._headers(request)
        with self._http_client().stream(
            request.method, request.path, content=content, headers=headers
        ) as response:
            buffer = ResponseBuffer(self.timeout)
            for chunk in response.iter_raw():
                buffer.add(chunk)
            return RawResponse(response.status_code, response.headers, buffer.content())

    def _iterate_pages(self, make_request: Callable[[Any], Request[Any]]) -> Iterator[Any]:
        cursor, seen = None, set[Any]()
        while True:
            page = self._send_with_retries(make_request(cursor))
            yield from page.rows
            cursor = self._next_cursor(page, seen)
            if cursor is None:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BoardGuard:
    """A board as a guard, for :class:`ladderboard.Judge` and the adapters.

    Every question is a submission and counts as one. ``team`` is for evaluators and organisers.
    """

    def __init__(self, client: Client, board: str, team: str | None = None) -> None:
        self.client, self.board, self.team = client, board, team
        self._last: SubmissionResult | None = None
        self._takes: str | None = None

    def ask(
        self,
        predictions: Any,
        *,
        message: str = "",
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> SubmissionResult:
        """Submit a model's predictions and return the answer."""
        self._last = self.client.submit(
            self.board, predictions, message=message, team=self.team, format=format
        )
        return self._last

    @property
    def takes(self) -> str:
        """Whether the board takes ``"predictions"`` or ``"scores"``; fetched once."""
        if self._takes is None:
            self._takes = self.client.board(self.board).takes
        return self._takes

    @property
    def remaining(self) -> int:
        """How many questions are left now, by the tightest of the team's limits.

        With ``team``, the number is that of the last answer; before the first, it is the board's
        budget less the questions used, or the whole budget if the board hides its usage.
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
