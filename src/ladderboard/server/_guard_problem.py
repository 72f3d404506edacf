"""What a served guard says when something cannot be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.errors import (
    BrokenLedger,
    BudgetSpent,
    DiskFull,
    InvalidInput,
    InvalidPredictions,
    InvalidRisk,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    MissingDependency,
    OldCopy,
    ReadOnly,
    SessionClosed,
    StorageFailed,
    TooManyLadders,
)
from ladderboard.server import _problems
from ladderboard.server._problems import Kind, Refused, find_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from ladderboard.errors import Problem

__all__ = ["Refused", "problem", "problem_of"]

_NOTHING = "Nothing was recorded, and no question was used"
_STORAGE = f"The guard's file cannot be used now; its owner's log says why. {_NOTHING}."
_FULL = f"The disk of the guard's file is full. {_NOTHING}; ask again when its owner made room."
_READABLE = f"The disk of the guard's file can only be read now. {_NOTHING}."
_UNCERTAIN = (
    "The guard's file did not say whether this was kept. Asking the same again is safe: it is "
    "answered once, and never counted twice."
)
_LACKS = "The guard lacks what reads such predictions; its owner's log says what. Try .npy."
_TRAINING = "This guard's mechanism needs training=, the mean loss on the training data."
_BROKEN = "The guard broke down, and nothing was released. Its owner's log says where."
# The first that fits counts.
_KINDS: tuple[tuple[type[Exception], Kind], ...] = (
    (InvalidPredictions, Kind(422, "invalid_predictions")),
    (TooManyLadders, Kind(409, "too_many_ladders")),
    (InvalidSetting, Kind(400, "invalid_setting")),
    (InvalidRisk, Kind(400, "invalid_setting", _TRAINING)),
    (BudgetSpent, Kind(409, "budget_spent")),
    (SessionClosed, Kind(409, "closed")),
    (DiskFull, Kind(507, "disk_full", _FULL)),
    (ReadOnly, Kind(503, "read_only", _READABLE)),
    (StorageFailed, Kind(503, "storage", _STORAGE)),
    (OldCopy, Kind(503, "storage", _STORAGE)),
    (BrokenLedger, Kind(503, "storage", _STORAGE)),
    (InvalidState, Kind(503, "storage", _STORAGE)),
    (MissingDependency, Kind(503, "unavailable", _LACKS)),
    (Exception, Kind(500, "broken", _BROKEN)),
)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem document; its code tells its kind."""
    return _problems.problem(
        status, code, detail, errors=errors, headers=headers, kind="about:blank"
    )


def problem_of(error: Exception) -> tuple[Response, str, bool]:
    """Return the document of an exception, its code, and whether the owner must look at it."""
    if isinstance(error, Refused):
        said = problem(error.status, error.code, str(error), headers=error.headers)
        return said, error.code, False
    kind = find_kind(_KINDS, error)
    detail = str(error) if kind.detail is None else kind.detail
    if isinstance(error, StorageFailed) and error.uncertain:
        detail = _UNCERTAIN
    errors = error.problems if isinstance(error, InvalidInput) and kind.detail is None else ()
    owners = kind.status >= 500 or not isinstance(error, LadderboardError)
    return problem(kind.status, kind.code, detail, errors=errors), kind.code, owners
