"""Refusals: the problem documents of a server, as the exceptions that it had raised itself."""

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
"""What is raised for every code of a server's problems."""
_STATUSES: dict[int, type[LadderboardError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound}


def error_from_problem(status: int, said: Any, wait: float | None) -> LadderboardError | None:
    """Return what to raise for a problem document; None for what is none.

    A code that is not known yet, from a newer server, is told by its status.
    """
    try:
        detail, code = _printable_text(said["detail"]), _printable_text(said["code"])
        problems = tuple(map(_parse_problem, said["errors"]))
    except (ValueError, TypeError, KeyError, ArithmeticError):
        return None
    kind = ERRORS_BY_CODE.get(code)
    if kind is None:
        kind = _STATUSES.get(status, ServerUnreachable if status >= 500 else InvalidSetting)
    if kind is RateLimited:
        return RateLimited(detail, wait=0 if wait is None else int(wait))
    if kind is StorageFailed:
        # Whether anything was kept it does not say in a word for programs.
        return StorageFailed(detail, uncertain=True)
    if code == "too_large":
        problems = (Problem("too_many_bytes", None, 1, (), detail),)
    if issubclass(kind, InvalidInput):
        make: Callable[..., LadderboardError] = kind
        return make(detail, problems=problems)
    return kind(detail)


def _parse_problem(written: dict[str, Any]) -> Problem:
    column = written["column"]
    return Problem(
        code=_printable_text(written["code"]),
        column=None if column is None else _printable_text(column),
        count=int(written["count"]),
        ids=tuple(map(_printable_text, written["ids"])),
        message=_printable_text(written["message"]),
    )


def _printable_text(text: Any) -> str:
    """Return a server's text without what a terminal might obey."""
    if not isinstance(text, str):
        raise TypeError
    return printable(text, keep="\n")
