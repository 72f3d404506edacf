"""Sending requests: everything that both clients have in common but the waiting."""

from __future__ import annotations

import json
import logging
import math
import random
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import httpx

from ladderboard import _settings
from ladderboard._version import __version__
from ladderboard.client import _requests as requests
from ladderboard.client._address import check_board_name
from ladderboard.client._config import find_access, receipts_folder
from ladderboard.client._errors import error_from_problem
from ladderboard.client._receipts import ReceiptStore
from ladderboard.client._requests import make_upload_body
from ladderboard.errors import (
    InvalidSetting,
    LadderboardError,
    NotAllowed,
    ServerUnreachable,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import EllipsisType

    from ladderboard.client._models import SubmissionResult
    from ladderboard.client._receipts import ReceiptWriter, StoredReceipt
    from ladderboard.client._requests import Request, ResultPage


_LOG = logging.getLogger("ladderboard.client")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0
_MAX_WAIT = 30.0  # a server that wants more than this is answered with its refusal
_MAX_RETRY_AFTER = 1e9
_TRANSIENT_STATUSES = {408, 502, 503, 504}
_TRANSIENT_CODES = {(429, "rate"), (507, "disk_full")}
T = TypeVar("T")
_API = "/api/v1"
_IDEMPOTENCY_KEY = re.compile("[!-~]([ -~]{0,253}[!-~])?")
_MAX_RESPONSE_BYTES = 2**25  # bytes of an answer
_MAX_TIMEOUTS = 10  # timeouts in which an answer must be whole, once its head has come
TRANSPORT_ERRORS = (httpx.TransportError, httpx.InvalidURL, UnicodeError)
"""What sending raises: nobody was heard, or nobody can be there by that name."""
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def is_transient(status: int, code: object) -> bool:
    """Tell whether the same request may succeed soon; limits of the rules do not pass by waiting.

    >>> is_transient(507, "disk_full"), is_transient(507, "no_room")
    (True, False)
    """
    return status in _TRANSIENT_STATUSES or (
        isinstance(code, str) and (status, code) in _TRANSIENT_CODES
    )


def parse_retry_after(header: str | None) -> float | None:
    """Return for how many seconds a server wants to be left alone.

    >>> parse_retry_after("5"), parse_retry_after("soon"), parse_retry_after(None)
    (5.0, None, None)
    """
    if header is None or not header.isdecimal():
        return None
    return min(float(header), _MAX_RETRY_AFTER)


@dataclass
class RetryBackoff:
    """Counts how often something was sent; ``retries`` says how often again at most."""

    retries: int
    attempts: int = 0

    def next_pause(self, wanted: float | None = None) -> float | None:
        """Return how many seconds to wait before the next time; None to give up.

        The waits double, and differ from one client to the next, so that not all come back at once.
        """
        if self.attempts >= self.retries or (wanted is not None and wanted > _MAX_WAIT):
            return None
        pause = min(_FIRST_PAUSE * 2**self.attempts, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        self.attempts += 1
        pause = pause if wanted is None else max(pause, wanted)
        _LOG.info("The server does not answer as it should; trying again in %.1f s.", pause)
        return pause


class RawResponse(NamedTuple):
    """What came back."""

    status: int
    headers: httpx.Headers
    content: bytes


class ResponseBuffer:
    """Collects an answer; one without end, in bytes or in seconds, is refused."""

    def __init__(self, timeout: float) -> None:
        self._seconds = _MAX_TIMEOUTS * timeout
        self._end = time.monotonic() + self._seconds
        self._kept: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Add a piece."""
        self._size += len(piece)
        if self._size > _MAX_RESPONSE_BYTES:
            raise ServerUnreachable(
                f"The answer is larger than {_MAX_RESPONSE_BYTES} bytes, which none is."
            )
        if time.monotonic() > self._end:
            raise ServerUnreachable(f"The answer was not whole after {self._seconds:g} seconds.")
        self._kept.append(piece)

    def content(self) -> bytes:
        """Return all of it."""
        return b"".join(self._kept)


@dataclass(frozen=True)
class Completed(Generic[T]):
    """It was answered."""

    value: T


@dataclass(frozen=True)
class RetryAfter:
    """It is sent again, after so many seconds."""

    seconds: float


class BaseClient:
    """Whom to ask, with which token, how patiently, and where receipts are kept."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        receipts: str | os.PathLike[str] | EllipsisType | None = ...,
        insecure: bool = False,
    ) -> None:
        self._access = find_access(url, token, insecure=insecure)
        self.timeout = _settings.number("timeout", timeout, above=0)
        self.retries = _settings.integer("retries", retries, at_least=0)
        if isinstance(receipts, type(...)):
            receipts = receipts_folder()
        self._folder = None if receipts is None else Path(receipts)
        self._receipts = ReceiptStore(self._folder, self._access.address)
        self._http_clients: dict[int, Any] = {}  # what speaks HTTP, by process

    @property
    def url(self) -> str:
        """The server's address."""
        return self._access.address.url

    def receipts(self, board: str) -> tuple[StoredReceipt, ...]:
        """Return what became of every submission to a board from here, oldest first.

        The ``answer`` of one that was answered holds its ``receipt``, as ``SubmissionResult`` does.
        """
        return self._receipts.read(check_board_name(board))

    def receipts_file(self, board: str) -> Path | None:
        """Return the file in which those are kept; None where none are."""
        return self._receipts.file(check_board_name(board))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Leave connections behind; the token goes along."""
        return {**self.__dict__, "_http_clients": {}}

    def _http_options(self) -> dict[str, Any]:
        """Return how HTTP is to be spoken."""
        return {
            "base_url": self.url + _API,
            "timeout": self.timeout,
            "headers": {"User-Agent": f"ladderboard/{__version__}", "Accept-Encoding": "identity"},
            # A token must not be taken elsewhere, neither by a redirect nor, where it is not
            # encrypted, by a proxy.
            "follow_redirects": False,
            "trust_env": self._access.address.scheme == "https",
        }

    def _headers(self, request: Request[Any]) -> dict[str, str]:
        headers = dict(request.headers)
        token = self._access.token_for(request.board)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if request.body is not None:
            headers["Content-Length"] = str(len(request.body.data))
        return headers

    def _prepare_submission(
        self,
        board: str,
        predictions: Any,
        *,
        message: str,
        team: str | None,
        key: str | None,
        format: str | None,  # noqa: A002 - the word people use
        progress: Callable[[int, int], object] | None,
    ) -> tuple[Request[SubmissionResult], ReceiptWriter]:
        """Return what is to be sent, once it is noted."""
        check_board_name(board)
        if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
            raise InvalidSetting(
                "A key has 1 to 255 plain characters, and begins and ends with none that is blank."
            )
        self._access.token_for(board)  # a refusal leaves nothing pending
        body = make_upload_body(predictions, format, progress)
        receipt = self._receipts.start(board, body, team, key)
        return requests.submit(board, body, receipt.key, message, team), receipt

    def _next_cursor(self, page: ResultPage[Any], seen: set[Any]) -> Any:
        """Return where the next page begins, None after the last; to go in circles is refused."""
        if page.next is None or not page.rows:
            return None
        if page.next in seen:
            raise ServerUnreachable(f"The pages of the server at {self.url} have no end.")
        seen.add(page.next)
        return page.next

    def _handle_transport_error(
        self, request: Request[Any], backoff: RetryBackoff, error: Exception
    ) -> RetryAfter:
        """Say when to try again after nothing was heard, or that nobody is there."""
        safe = request.idempotent or isinstance(error, _NOT_SENT)
        pause = backoff.next_pause() if safe and isinstance(error, httpx.TransportError) else None
        if pause is not None:
            return RetryAfter(pause)
        why = str(error).strip().rstrip(".") or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            why = f"no answer came within {self.timeout:g} seconds"
        again = "" if request.idempotent else " It may have been done."
        if request.body is not None:
            again = " Sending the same again is safe."
        raise ServerUnreachable(
            f"The server at {self.url} cannot be reached: {why}.{again}"
        ) from None

    def _handle_response(
        self, request: Request[T], backoff: RetryBackoff, answer: RawResponse
    ) -> Completed[T] | RetryAfter:
        """Return what was answered, or when to ask again; raise what was refused."""
        said = _parse(answer.content)
        if 200 <= answer.status < 300:
            try:
                return Completed(request.read(answer.content if request.as_bytes else said))
            except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
                raise self._unexpected_response_error(answer) from None
        if 300 <= answer.status < 400:
            raise ServerUnreachable(
                f"The server at {self.url} sends us elsewhere, where a token is not taken along; "
                "give the address that the board's page has in a browser."
            )
        wait = parse_retry_after(answer.headers.get("retry-after"))
        code = said.get("code") if isinstance(said, dict) else None
        if request.idempotent and is_transient(answer.status, code):
            pause = backoff.next_pause(wait)
            if pause is not None:
                return RetryAfter(pause)
        raise self._refusal_error(request, answer, error_from_problem(answer.status, said, wait))

    def _refusal_error(
        self, request: Request[Any], answer: RawResponse, error: LadderboardError | None
    ) -> LadderboardError:
        if error is None:
            return self._unexpected_response_error(answer)
        if answer.status == 401 and request.board is not None:
            shown = self._access.token_for(request.board) is not None
            what = "The token is not good on this board." if shown else "This needs a token."
            address = f"{self.url}/boards/{request.board}"
            return NotAllowed(
                f"{what} Give it with LADDERBOARD_TOKEN, or: ladderboard login {address}"
            )
        return error

    def _unexpected_response_error(self, answer: RawResponse) -> ServerUnreachable:
        if answer.status >= 500:
            return ServerUnreachable(f"The server at {self.url} is out of order: {answer.status}.")
        if answer.status == 413:
            return ServerUnreachable(
                f"A proxy before the server at {self.url} takes nothing as large as this: 413. "
                "Whoever keeps it can allow more."
            )
        return ServerUnreachable(
            f"What answers at {self.url} is not a Ladderboard server of ours: it said "
            f"{answer.status} and something else."
        )


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    """Return a number; one without end is no JSON, and could not be printed as such again."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number has no end")
    return value
