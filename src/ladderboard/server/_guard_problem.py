"""Problem documents (RFC 9457): what is said when something cannot be done.

None holds a traceback, a path of the owner's, or anything that depends on the labels: where an
exception's sentence might, a fixed one stands in its place.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from ladderboard.errors import (
    BrokenLedger,
    BudgetSpent,
    InvalidInput,
    InvalidPredictions,
    InvalidRisk,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    MissingDependency,
    OldCopy,
    SessionClosed,
    StorageFailed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.errors import Problem

__all__ = ["Refused", "problem", "problem_of"]


class Refused(Exception):
    """A request that is refused before the guard has looked at it."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers = status, code, headers


class _Kind(NamedTuple):
    """How an exception is told: ``detail`` replaces its own sentence."""

    status: int
    code: str
    detail: str | None = None


_STORAGE = "The guard's file cannot be used now; its owner's log says why. Nothing was released."
_LACKS = "The guard lacks what reads such predictions; its owner's log says what. Try .npy."
_TRAINING = "This guard's mechanism needs training=, the mean loss on the training data."
_BROKEN = "The guard broke down, and nothing was released. Its owner's log says where."
# The first that fits counts.
_KINDS: tuple[tuple[type[Exception], _Kind], ...] = (
    (InvalidPredictions, _Kind(422, "invalid_predictions")),
    (InvalidSetting, _Kind(400, "invalid_setting")),
    (InvalidRisk, _Kind(400, "invalid_setting", _TRAINING)),
    (BudgetSpent, _Kind(409, "budget_spent")),
    (SessionClosed, _Kind(409, "closed")),
    (StorageFailed, _Kind(503, "storage", _STORAGE)),
    (OldCopy, _Kind(503, "storage", _STORAGE)),
    (BrokenLedger, _Kind(503, "storage", _STORAGE)),
    (InvalidState, _Kind(503, "storage", _STORAGE)),
    (MissingDependency, _Kind(503, "unavailable", _LACKS)),
    (Exception, _Kind(500, "broken", _BROKEN)),
)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem document."""
    said: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [asdict(each) for each in errors],
    }
    return Response(
        json.dumps(said),
        status,
        headers=dict(headers or {}),
        media_type="application/problem+json",
    )


def problem_of(error: Exception) -> tuple[Response, str, bool]:
    """Return the document of an exception, its code, and whether the owner must look at it."""
    if isinstance(error, Refused):
        said = problem(error.status, error.code, str(error), headers=error.headers)
        return said, error.code, False
    kind = next(kind for each, kind in _KINDS if isinstance(error, each))
    detail = str(error) if kind.detail is None else kind.detail
    errors = error.problems if isinstance(error, InvalidInput) and kind.detail is None else ()
    owners = kind.status >= 500 or not isinstance(error, LadderboardError)
    return problem(kind.status, kind.code, detail, errors=errors), kind.code, owners
