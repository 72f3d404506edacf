"""Problem documents (RFC 9457): the responses to requests that fail.

None holds a traceback, a path of the server, or anything that depends on the labels: where an
exception's message might, a fixed message replaces it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

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
    MissingDependency,
    NotAllowed,
    NotFound,
    NotOpen,
    QuotaExceeded,
    RateLimited,
    ReadOnly,
    SessionClosed,
    StorageFailed,
    WorkerError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.errors import Problem


class RequestRefused(Exception):
    """A request is refused before it is handled."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers = status, code, headers


class ProblemKind(NamedTuple):
    """The problem of an exception type; ``detail``, if set, replaces the exception's message."""

    status: int
    code: str
    detail: str | None = None
    headers: Mapping[str, str] | None = None


_UNRECORDED = "Nothing was recorded, and no submission was used"
_STORAGE = f"The server's database cannot be used now. {_UNRECORDED}; try again in a moment."
_FULL = f"The server's disk is full. {_UNRECORDED}; try again later, or tell the organiser."
_READ_ONLY = (
    f"The server's disk is read-only. {_UNRECORDED}; earlier answers can still be read. "
    "Try again later, or tell the organiser."
)
_UNCERTAIN = (
    "The server's database did not confirm the write. A retry is safe: the same predictions "
    "are never counted twice."
)
_NO_READER = "The server lacks a library for this file format; its log says which."
_NO_PARSER = "The server cannot read predictions now; try again."
_BROKEN = "Internal server error; nothing was released. The server's log says where."
_SOON = {"Retry-After": "5"}
_LATER = {"Retry-After": "10"}  # an estimate: retrying costs nothing
_CLOSE = {"Connection": "close"}  # otherwise the rest of the body would be read
_KINDS: tuple[tuple[type[Exception], ProblemKind], ...] = (
    (InvalidPredictions, ProblemKind(422, "invalid_predictions")),
    (IdempotencyKeyReused, ProblemKind(422, "key_reused")),
    (InvalidRules, ProblemKind(422, "invalid_rules")),
    (InvalidSetting, ProblemKind(422, "invalid_setting")),
    (NotAllowed, ProblemKind(403, "not_allowed")),
    (NotFound, ProblemKind(404, "not_found")),
    (NotOpen, ProblemKind(409, "not_open")),
    (SessionClosed, ProblemKind(409, "not_open", "The board is closed.")),
    (BudgetSpent, ProblemKind(409, "budget_spent")),
    (Conflict, ProblemKind(409, "taken")),
    (RateLimited, ProblemKind(429, "too_soon")),
    (QuotaExceeded, ProblemKind(507, "no_room")),
    (WorkerError, ProblemKind(503, "unavailable", _NO_PARSER, _SOON)),
    (MissingDependency, ProblemKind(503, "unavailable", _NO_READER, _SOON)),
    (DiskFull, ProblemKind(507, "disk_full", _FULL, {**_LATER, **_CLOSE})),
    (ReadOnly, ProblemKind(503, "read_only", _READ_ONLY, {**_SOON, **_CLOSE})),
    (LadderboardError, ProblemKind(503, "storage", _STORAGE, _SOON)),
    (Exception, ProblemKind(500, "broken", _BROKEN)),
)
PROBLEMS = {
    "bad_request": "400: malformed request",
    "no_token": "401: missing or invalid token",
    "not_allowed": "403: not allowed with this token",
    "csrf": "403: missing or invalid CSRF token, or a request from another site",
    "wrong_host": "403: unknown Host header",
    "not_found": "404: not found, or not visible to you",
    "method": "405: method not allowed",
    "not_acceptable": "406: unknown format",
    "too_slow": "408: the upload timed out",
    "not_open": "409: the board takes no submissions, teams or changes now",
    "budget_spent": "409: no submissions left",
    "taken": "409: the name is taken, or no place is left",
    "too_large": "413: the body is too large",
    "content_type": "415: unsupported content type, charset or encoding",
    "invalid": "422: invalid parameter or body; `errors` lists what",
    "invalid_predictions": "422: the file cannot be scored; `errors` lists why",
    "invalid_rules": "422: invalid change to the rules; `errors` lists why",
    "invalid_setting": "422: invalid value",
    "form": "400: malformed form",
    "key_reused": "422: the Idempotency-Key was used for another submission",
    "too_soon": "429: a rate limit of the rules; `Retry-After` says how long to wait",
    "rate": "429: too many failures from your address; `Retry-After` says how long to wait",
    "broken": "500: internal server error",
    "storage": "503: the database is unavailable; a retry is safe",
    "read_only": "503: the server's disk or database is read-only",
    "busy": "503: server busy; retry",
    "unavailable": "503: predictions cannot be read now",
    "disk_full": "507: the server's disk is full",
    "no_room": "507: the board's quota for stored submissions is used up",
}
"""Every code of a board's problems, with its status and what it means."""


def problem_type(code: str) -> str:
    """Return the URI of a problem's type.

    >>> problem_type("budget_spent")
    'urn:ladderboard:problem:budget_spent'
    """
    return f"urn:ladderboard:problem:{code}"


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
    kind: str | None = None,
) -> Response:
    """Return a problem document; ``kind`` is its URI."""
    document: dict[str, Any] = {
        "type": problem_type(code) if kind is None else kind,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [asdict(error) for error in errors],
    }
    return Response(
        json.dumps(document),
        status,
        headers=dict(headers or {}),
        media_type="application/problem+json",
    )


class ProblemTable(NamedTuple):
    """The problem of each exception, for one kind of server.

    ``uncertain`` is the detail when a database did not confirm a write; ``has_types`` tells whether
    each problem's type has its own URI.
    """

    kinds: tuple[tuple[type[Exception], ProblemKind], ...]
    uncertain: str
    has_types: bool = True


class ProblemResponse(NamedTuple):
    """The response to an exception, its code, and whether the exception belongs in the log."""

    response: Response
    code: str
    is_internal: bool


_BOARD_PROBLEMS = ProblemTable(_KINDS, _UNCERTAIN)


def problem_from_exception(
    error: Exception, table: ProblemTable = _BOARD_PROBLEMS
) -> ProblemResponse:
    """Return the response to an exception; the first row of the table that matches is used."""
    type_uri = None if table.has_types else "about:blank"
    if isinstance(error, RequestRefused):
        response = problem(
            error.status, error.code, str(error), headers=error.headers, kind=type_uri
        )
        return ProblemResponse(response, error.code, is_internal=False)
    kind = next(kind for error_type, kind in table.kinds if isinstance(error, error_type))
    detail, headers = kind.detail, dict(kind.headers or {})
    if isinstance(error, RateLimited):
        headers["Retry-After"] = str(error.wait)
    if isinstance(error, StorageFailed) and error.uncertain:
        detail = table.uncertain
    errors = error.problems if isinstance(error, InvalidInput) and detail is None else ()
    response = problem(
        kind.status,
        kind.code,
        str(error) if detail is None else detail,
        errors=errors,
        headers=headers,
        kind=type_uri,
    )
    is_internal = kind.status in {500, 503} or isinstance(error, DiskFull)
    return ProblemResponse(response, kind.code, is_internal)
