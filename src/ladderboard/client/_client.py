"""The client: a server's boards from Python."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from ladderboard.client import _requests as requests
from ladderboard.client._address import check_board_name
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
    from types import TracebackType

    from ladderboard.client._models import (
        BoardInfo,
        BoardRecord,
        FinalRanking,
        LeaderboardRow,
        SubmissionInfo,
        SubmissionResult,
        TeamCredentials,
        TeamStatus,
    )
    from ladderboard.client._requests import Request

T = TypeVar("T")


class Client(BaseClient):
    """Boards on a server, over HTTP. Safe with threads and after a fork; it can be pickled.

    Parameters
    ----------
    url
        The server's address; else LADDERBOARD_URL, else the one that ``ladderboard login`` kept.
    token
        A team's, an evaluator's or an organiser's; else LADDERBOARD_TOKEN, else the one that
        ``ladderboard login`` kept for this server and board. None of these: the public.
    timeout
        Seconds to wait for the network at each step; an answer whose head has come must be whole
        within ten times as many.
    retries
        How often to send again what may be sent again.
    receipts
        The folder to keep receipts in; None to keep none.
    insecure
        Whether a token may go to another machine without encryption.
    """

    def boards(self) -> tuple[BoardInfo, ...]:
        """Return all boards."""
        return tuple(self._iterate_pages(requests.boards))

    def board(self, board: str) -> BoardInfo:
        """Return what a board is, what it promises, and how far it has come."""
        return self._ask(requests.board(board))

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
        """Ask a question: send predictions, and return what is released.

        Parameters
        ----------
        board
            The board's short name.
        predictions
            A path, bytes, an open file, an array, a dict of columns, or a table of pandas or
            polars, with a row for every id.
        message
            A note for yourselves, of up to 500 characters.
        team
            A team's id, for evaluators and organisers, who have none.
        key
            The Idempotency-Key; made if left out, and the same whenever this is sent again.
        format
            Of a file: csv, tsv, parquet, arrow, jsonl or npy; found out if left out.
        progress
            Called with how many bytes of how many were sent; begins anew when all is sent again.
        """
        request, receipt = self._prepare_submission(
            board,
            predictions,
            message=message,
            team=team,
            key=key,
            format=format,
            progress=progress,
        )
        try:
            reply = self._ask(request)
        except LadderboardError as error:
            receipt.record_refusal(error)
            raise
        receipt.record_answer(reply)
        return reply

    def guard(self, board: str, team: str | None = None) -> BoardGuard:
        """Return a board as something that a ``Judge`` asks: every question is a submission."""
        return BoardGuard(self, check_board_name(board), team)

    def submissions(self, board: str, team: str | None = None) -> Iterator[SubmissionInfo]:
        """Yield one's own submissions, newest first; ``team`` for evaluators and organisers."""
        return self._iterate_pages(lambda before: requests.submissions(board, team, before))

    def submission(self, board: str, submission: str) -> SubmissionInfo:
        """Return one submission."""
        return self._ask(requests.submission(board, submission))

    def leaderboard(self, board: str) -> Iterator[LeaderboardRow]:
        """Yield the standings, from the top."""
        return self._iterate_pages(lambda cursor: requests.leaderboard(board, cursor))

    def records(self, board: str) -> tuple[BoardRecord, ...]:
        """Return every time that the best of the whole board went down, oldest first."""
        return self._ask(requests.records(board))

    def finals(self, board: str) -> FinalRanking:
        """Return the final ranking; ``NotFound`` before the board is closed."""
        return self._ask(requests.finals(board))

    def ledger(self, board: str, first: int = 0) -> Iterator[bytes]:
        """Yield the ledger's entries, each the very bytes that were hashed."""
        return self._iterate_pages(lambda at: requests.ledger(board, first if at is None else at))

    def team(self, board: str) -> TeamStatus:
        """Return one's own affairs: release, limits, when the next question may come."""
        return self._ask(requests.team(board))

    def register(self, board: str, name: str, invitation: str | None = None) -> TeamCredentials:
        """Make a team; its token is told here, and never again."""
        return self._ask(requests.register(board, name, invitation))

    def rotate_token(self, board: str) -> TeamCredentials:
        """Return another token for one's own team; the one in use ends at once."""
        return self._ask(requests.rotate_token(board))

    def selections(self, board: str) -> tuple[str, ...]:
        """Return what one's own team selected for the finals; nothing where the default holds."""
        return self._ask(requests.selections(board))

    def select(self, board: str, submissions: Sequence[str]) -> tuple[str, ...]:
        """Select submissions for the finals by their ids, in place of those selected before."""
        return self._ask(requests.select(board, submissions))

    def close(self) -> None:
        """Close idle connections; asking opens them again."""
        made = self._http_clients.pop(os.getpid(), None)
        if made is not None:
            made.close()

    def _http_client(self) -> httpx.Client:
        # After a fork the connections are the parent's, and stay open there.
        found: httpx.Client | None = self._http_clients.get(os.getpid())
        if found is None:
            new = httpx.Client(**self._http_options())
            found = self._http_clients.setdefault(os.getpid(), new)
            if found is not new:  # another thread was faster
                new.close()
        return found

    def _ask(self, request: Request[T]) -> T:
        backoff = RetryBackoff(self.retries)
        while True:
            try:
                answer = self._send(request)
            except TRANSPORT_ERRORS as error:
                outcome: Any = self._handle_transport_error(request, backoff, error)
            else:
                outcome = self._handle_response(request, backoff, answer)
            if isinstance(outcome, Completed):
                return outcome.value
            time.sleep(outcome.seconds)

    def _send(self, request: Request[Any]) -> RawResponse:
        content = request.content if request.body is None else request.body.chunks()
        headers = self._headers(request)
        with self._http_client().stream(
            request.method, request.path, content=content, headers=headers
        ) as response:
            buffer = ResponseBuffer(self.timeout)
            for chunk in response.iter_raw():
                buffer.add(chunk)
            return RawResponse(response.status_code, response.headers, buffer.content())

    def _iterate_pages(self, page: Callable[[Any], Request[Any]]) -> Iterator[Any]:
        at, seen = None, set[Any]()
        while True:
            found = self._ask(page(at))
            yield from found.rows
            at = self._next_cursor(found, seen)
            if at is None:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class BoardGuard:
    """A board through a client, to be asked by a :class:`ladderboard.Judge` or an adapter.

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
