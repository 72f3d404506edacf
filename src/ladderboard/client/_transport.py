"""What both clients share: settings, headers, retries and the handling of responses."""

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
from ladderboard._formatting import printable
from ladderboard._version import __version__
from ladderboard.client import _requests as requests
from ladderboard.client._config import check_board_name, find_access, receipts_folder
from ladderboard.client._receipts import ReceiptStore
from ladderboard.client._requests import make_upload_body
from ladderboard.errors import (
    BudgetSpent,
    Conflict,
    DiskFull,
    IdempotencyKeyReused,
    InvalidInput,
    InvalidPredictions,
    InvalidRules,
    InvalidSetting,
    LadderboardError,
    NotAllowed,
    NotFound,
    NotOpen,
    Problem,
    QuotaExceeded,
    RateLimited,
    ReadOnly,
    ServerUnreachable,
    StorageFailed,
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
_RANDOM = random.SystemRandom()  # differs also between clients that started at once
_MAX_WAIT = 30.0  # for a longer Retry-After the refusal is raised at once
_MAX_RETRY_AFTER = 1e9
_TRANSIENT_STATUSES = {408, 502, 503, 504}
_TRANSIENT_CODES = {(429, "rate"), (507, "disk_full")}
T = TypeVar("T")
_API = "/api/v1"
_INVALID = "The token is not valid"
_IDEMPOTENCY_KEY = re.compile("[!-~]([ -~]{0,253}[!-~])?")
_MAX_RESPONSE_BYTES = 2**25
_MAX_TIMEOUTS = 10  # a body must be complete within this many timeouts after its headers
TRANSPORT_ERRORS = (httpx.TransportError, httpx.InvalidURL, UnicodeError)
"""Raised by httpx when a server cannot be reached, or cannot have that name."""
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def is_transient(status: int, code: object) -> bool:
    """Return whether the same request may succeed soon; a board's own limits are not transient.

    >>> is_transient(507, "disk_full"), is_transient(507, "no_room")
    (True, False)
    """
    return status in _TRANSIENT_STATUSES or (
        isinstance(code, str) and (status, code) in _TRANSIENT_CODES
    )


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header; None if there are none.

    >>> parse_retry_after("5"), parse_retry_after("soon"), parse_retry_after(None)
    (5.0, None, None)
    """
    if header is None or not header.isdecimal():
        return None
    return min(float(header), _MAX_RETRY_AFTER)


@dataclass
class RetryBackoff:
    """Counts attempts and computes the pauses between them; at most ``retries`` retries."""

    retries: int
    attempts: int = 0

    def next_pause(self, retry_after: float | None = None) -> float | None:
        """Return how many seconds to wait before the next attempt; None to give up.

        The pauses double, with random jitter so that clients do not all return at once.
        """
        if self.attempts >= self.retries or (retry_after is not None and retry_after > _MAX_WAIT):
            return None
        pause = min(_FIRST_PAUSE * 2**self.attempts, _LONGEST_PAUSE) * _RANDOM.uniform(0.5, 1.0)
        self.attempts += 1
        pause = pause if retry_after is None else max(pause, retry_after)
        _LOG.info("Request failed; trying again in %.1f s.", pause)
        return pause


class RawResponse(NamedTuple):
    """An HTTP response, read completely."""

    status: int
    headers: httpx.Headers
    content: bytes


class ResponseBuffer:
    """Collects a response body; refuses one that is too large or takes too long."""

    def __init__(self, timeout: float) -> None:
        self._seconds = _MAX_TIMEOUTS * timeout
        self._end = time.monotonic() + self._seconds
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk."""
        self._size += len(chunk)
        if self._size > _MAX_RESPONSE_BYTES:
            raise ServerUnreachable(f"The response is larger than {_MAX_RESPONSE_BYTES:,} bytes.")
        if time.monotonic() > self._end:
            raise ServerUnreachable(f"The response took longer than {self._seconds:g} seconds.")
        self._chunks.append(chunk)

    def content(self) -> bytes:
        """Return the whole body."""
        return b"".join(self._chunks)


@dataclass(frozen=True)
class Completed(Generic[T]):
    """The request succeeded."""

    value: T


@dataclass(frozen=True)
class RetryAfter:
    """The request is to be sent again after ``seconds``."""

    seconds: float


class BaseClient:
    """Server, token, timeouts, retries and receipts of a client."""

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
        self._http_clients: dict[
            int, Any
        ] = {}  # by process id: connections must not be shared after a fork

    @property
    def url(self) -> str:
        """The server's address."""
        return self._access.address.url

    def receipts(self, board: str) -> tuple[StoredReceipt, ...]:
        """Return the stored receipts of a board, oldest first, one for each submission.

        An answered one has the server's document in ``answer``, with its ``receipt``.
        """
        return self._receipts.read(check_board_name(board))

    def receipts_file(self, board: str) -> Path | None:
        """Return the file of a board's receipts; None if receipts are not stored."""
        return self._receipts.file(check_board_name(board))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything but the connections; the token is included."""
        return {**self.__dict__, "_http_clients": {}}

    def _http_options(self) -> dict[str, Any]:
        """Return the keyword arguments of the httpx client."""
        return {
            "base_url": self.url + _API,
            "timeout": self.timeout,
            "headers": {"User-Agent": f"ladderboard/{__version__}", "Accept-Encoding": "identity"},
            # The token must not reach another host: not by a redirect, and unencrypted not
            # through a proxy.
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
        file_format: str | None,
        progress: Callable[[int, int], object] | None,
    ) -> tuple[Request[SubmissionResult], ReceiptWriter]:
        """Return the request, and the receipt that records it as pending."""
        check_board_name(board)
        if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
            raise InvalidSetting(
                "key must have 1 to 255 printable ASCII characters, without a space at either end."
            )
        self._access.token_for(board)  # refuse a bad token before a receipt is pending
        body = make_upload_body(predictions, file_format, progress)
        receipt = self._receipts.start(board, body, team, key)
        return requests.submit(board, body, receipt.key, message, team), receipt

    def _next_cursor(self, page: ResultPage[Any], seen: set[Any]) -> Any:
        """Return the next page's cursor, None after the last; refuse one that came before."""
        if page.next is None or not page.rows:
            return None
        if page.next in seen:
            raise ServerUnreachable(f"The server at {self.url} repeats its pages without end.")
        seen.add(page.next)
        return page.next

    def _handle_transport_error(
        self, request: Request[Any], backoff: RetryBackoff, error: Exception
    ) -> RetryAfter:
        """Return when to retry after a transport error, or raise ``ServerUnreachable``."""
        safe = request.idempotent or isinstance(error, _NOT_SENT)
        pause = backoff.next_pause() if safe and isinstance(error, httpx.TransportError) else None
        if pause is not None:
            return RetryAfter(pause)
        message = re.sub(r"^\[Errno -?\d+\] ", "", str(error).strip())
        reason = message.rstrip(".") or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            reason = f"no response within {self.timeout:g} seconds"
        retry_advice = "" if request.idempotent else " The request may have been carried out."
        if request.body is not None:
            retry_advice = " Sending the same again is safe."
        raise ServerUnreachable(
            f"The server at {self.url} cannot be reached: {reason}.{retry_advice}"
        ) from None

    def _handle_response(
        self, request: Request[T], backoff: RetryBackoff, response: RawResponse
    ) -> Completed[T] | RetryAfter:
        """Return the parsed response, or when to retry; raise what the server refused."""
        document = _parse_json(response.content)
        if 200 <= response.status < 300:
            try:
                return Completed(request.parse(response.content if request.as_bytes else document))
            except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
                raise self._unexpected_response_error(response) from None
        if 300 <= response.status < 400:
            raise ServerUnreachable(
                f"The server at {self.url} redirects to another address, and a token is not sent "
                "there. Use the address that a browser shows for the board's page."
            )
        wait = parse_retry_after(response.headers.get("retry-after"))
        code = document.get("code") if isinstance(document, dict) else None
        if request.idempotent and is_transient(response.status, code):
            pause = backoff.next_pause(wait)
            if pause is not None:
                return RetryAfter(pause)
        raise self._refusal_error(
            request, response, error_from_problem(response.status, document, wait)
        )

    def _refusal_error(
        self, request: Request[Any], response: RawResponse, error: LadderboardError | None
    ) -> LadderboardError:
        if error is None:
            return self._unexpected_response_error(response)
        if response.status == 401 and request.board is not None:
            token = self._access.token_for(request.board)
            reason = "This needs a token." if token is None else f"{_INVALID} on this board."
            address = f"{self.url}/boards/{request.board}"
            if token is not None and "lb_invitation_" in token:
                return NotAllowed(
                    "This is an invitation, not a token. Join with it once, and keep the token "
                    f"that you get: {address}/join"
                )
            return NotAllowed(
                f"{reason} Set LADDERBOARD_TOKEN, or run: ladderboard login {address}"
            )
        return error

    def _unexpected_response_error(self, response: RawResponse) -> ServerUnreachable:
        if response.status >= 500:
            return ServerUnreachable(f"The server at {self.url} failed: status {response.status}.")
        if response.status == 413:
            return ServerUnreachable(
                f"A proxy before the server at {self.url} refused the upload as too large: 413. "
                "Ask its administrator to raise the limit."
            )
        return ServerUnreachable(
            f"{self.url} is not a Ladderboard server: unexpected response with "
            f"status {response.status}."
        )


def _parse_json(content: bytes) -> Any:
    try:
        return json.loads(content, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    """Return a finite number; JSON has no others, and they could not be written back."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


ERRORS_BY_CODE: dict[str, type[LadderboardError]] = {
    "bad_request": InvalidSetting,
    "form": InvalidSetting,
    "no_token": NotAllowed,
    "not_allowed": NotAllowed,
    "csrf": NotAllowed,
    "wrong_host": ServerUnreachable,
    "not_found": NotFound,
    "method": InvalidSetting,
    "not_acceptable": InvalidSetting,
    "too_slow": ServerUnreachable,
    "not_open": NotOpen,
    "budget_spent": BudgetSpent,
    "taken": Conflict,
    "too_large": InvalidPredictions,
    "content_type": InvalidSetting,
    "invalid": InvalidSetting,
    "invalid_predictions": InvalidPredictions,
    "invalid_rules": InvalidRules,
    "invalid_setting": InvalidSetting,
    "key_reused": IdempotencyKeyReused,
    "too_soon": RateLimited,
    "rate": RateLimited,
    "broken": ServerUnreachable,
    "storage": StorageFailed,
    "read_only": ReadOnly,
    "busy": ServerUnreachable,
    "unavailable": ServerUnreachable,
    "no_room": QuotaExceeded,
    "disk_full": DiskFull,
}
"""The exception for each problem code."""
_STATUSES: dict[int, type[LadderboardError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound}


def error_from_problem(status: int, document: Any, wait: float | None) -> LadderboardError | None:
    """Return the exception for a problem document; None if it is not one.

    An unknown code, from a newer server, is mapped by the HTTP status.
    """
    try:
        detail, code = _printable_text(document["detail"]), _printable_text(document["code"])
        problems = tuple(map(_parse_problem, document["errors"]))
    except (ValueError, TypeError, KeyError, ArithmeticError):
        return None
    kind = ERRORS_BY_CODE.get(code)
    if kind is None:
        kind = _STATUSES.get(status, ServerUnreachable if status >= 500 else InvalidSetting)
    if kind is RateLimited:
        return RateLimited(detail, wait=0 if wait is None else int(wait))
    if kind is StorageFailed:
        # The document does not say whether the commit succeeded.
        return StorageFailed(detail, uncertain=True)
    if code == "too_large":
        problems = (Problem("too_many_bytes", None, 1, (), detail),)
    if issubclass(kind, InvalidInput):
        make: Callable[..., LadderboardError] = kind
        return make(detail, problems=problems)
    return kind(detail)


def _parse_problem(item: dict[str, Any]) -> Problem:
    column = item["column"]
    return Problem(
        code=_printable_text(item["code"]),
        column=None if column is None else _printable_text(column),
        count=int(item["count"]),
        ids=tuple(map(_printable_text, item["ids"])),
        message=_printable_text(item["message"]),
    )


def _printable_text(text: Any) -> str:
    """Return a server's text with control characters escaped."""
    if not isinstance(text, str):
        raise TypeError
    return printable(text, keep="\n")
