"""The server's problem documents (RFC 9457) as the exceptions that it raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import printable
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
    from collections.abc import Callable

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
