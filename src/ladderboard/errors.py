"""Every exception that Ladderboard raises.

::

    LadderboardError
    ├── InvalidInput (ValueError)      the input cannot be used
    │   ├── InvalidSetting             a loss, a tape or a mechanism has invalid settings
    │   │   ├── InvalidRules           a board's folder or its rules are invalid
    │   │   ├── OutsideTheorem         the theorem does not cover these settings
    │   │   ├── NoPerExampleLoss       a metric that is not a mean of per-example losses
    │   │   ├── IdempotencyKeyReused   an Idempotency-Key was used for another submission
    │   │   └── TooManyLadders         a guard has too few ladders for another name
    │   ├── InvalidLabels              the owner's labels do not fit the loss
    │   ├── InvalidPredictions         predictions cannot be scored, whatever the labels are
    │   ├── InvalidRisk                a risk, or a vector of losses, outside its range
    │   └── InvalidState               a saved state is damaged or belongs elsewhere
    │       └── WrongKey               a key file is missing, not needed or the wrong one
    ├── BrokenLoss                     a custom loss returned an invalid value
    ├── BrokenMechanism                a custom mechanism returned an invalid value
    ├── BrokenLedger                   a ledger was changed after it was written
    ├── BrokenDump                     a dump was changed after it was written
    ├── StorageFailed                  a database or a disk failed
    │   ├── DiskFull                   the disk is full
    │   └── ReadOnly                   the disk, or the database, is read-only
    ├── StaleCopy                      a ledger is behind its mark: an old copy was restored
    ├── GuardUnreachable               a served guard does not answer
    ├── ServerUnreachable              a server does not answer, or is not Ladderboard's
    ├── BudgetSpent                    no questions are left
    ├── NotOpen                        a board does not accept submissions now
    ├── RateLimited                    a limit per time is reached; says how long to wait
    ├── NotAllowed                     the caller does not have this permission
    ├── NotFound                       it does not exist, or the caller may not see it
    ├── Conflict                       the name is taken, or no place is left
    ├── QuotaExceeded                  a storage quota for submissions is used up
    ├── SessionClosed                  the session was closed and answers no more questions
    ├── GameFailed                     a mechanism or an analyst raised an error in a game
    ├── WorkerError                    worker processes or a cluster died or are unreachable
    └── MissingDependency (ImportError)  an optional dependency is not installed

Every message is one or two sentences: the rule, what was received, what to type instead.
No message ever holds a key, and none that a participant may see depends on the labels.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

__all__ = [
    "BrokenDump",
    "BrokenLedger",
    "BrokenLoss",
    "BrokenMechanism",
    "BudgetSpent",
    "Conflict",
    "DiskFull",
    "GameFailed",
    "GuardUnreachable",
    "IdempotencyKeyReused",
    "InvalidInput",
    "InvalidLabels",
    "InvalidPredictions",
    "InvalidRisk",
    "InvalidRules",
    "InvalidSetting",
    "InvalidState",
    "LadderboardError",
    "MissingDependency",
    "NoPerExampleLoss",
    "NotAllowed",
    "NotFound",
    "NotOpen",
    "OutsideTheorem",
    "QuotaExceeded",
    "RateLimited",
    "ReadOnly",
    "ServerUnreachable",
    "SessionClosed",
    "StaleCopy",
    "StorageFailed",
    "TooManyLadders",
    "WorkerError",
    "WrongKey",
]


@dataclass(frozen=True)
class Problem:
    """One item of what is wrong with an input, for programs to read.

    ``code`` is one of a fixed list, ``column`` the column at fault if any, ``count`` the number
    of rows (or ids, or columns) concerned, ``ids`` the first ten of them, ``message`` the same in
    words.
    """

    code: str
    column: str | None
    count: int
    ids: tuple[str, ...]
    message: str


class LadderboardError(Exception):
    """Base class of everything that Ladderboard raises on purpose."""


class InvalidInput(LadderboardError, ValueError):
    """The input cannot be used; nothing was changed.

    ``positions`` holds the positions of the first offending rows (at most ten), so that a caller
    that knows the ids can name them. ``problems`` holds the itemised problems, if there are any.
    """

    def __init__(
        self,
        message: str,
        *,
        positions: tuple[int, ...] = (),
        problems: tuple[Problem, ...] = (),
    ) -> None:
        super().__init__(message)
        self.positions = positions
        self.problems = problems


class InvalidSetting(InvalidInput):
    """A loss, a tape or a mechanism has invalid settings."""


class InvalidRules(InvalidSetting):
    """A board's folder, its rules or a change to them is invalid.

    For the organiser only: the message may depend on labels. ``problems`` lists everything that is
    wrong: ``column`` is the key or the file at fault, ``ids`` its line.
    """


class OutsideTheorem(InvalidSetting):
    """The theorem does not cover these settings.

    ``least_n`` is the smallest sufficient number of examples, or None if no number suffices.
    """

    def __init__(self, message: str, *, least_n: int | None = None) -> None:
        super().__init__(message)
        self.least_n = least_n


class NoPerExampleLoss(InvalidSetting):
    """The metric is not a mean of bounded per-example losses; ``nearest`` names one that is."""

    def __init__(self, message: str, *, nearest: str = "") -> None:
        super().__init__(message)
        self.nearest = nearest


class IdempotencyKeyReused(InvalidSetting):
    """The Idempotency-Key was used for another submission."""


class TooManyLadders(InvalidSetting):
    """A guard has fewer ladders than this needs; no question was used."""


class InvalidLabels(InvalidInput):
    """The owner's labels do not fit the loss. For the owner only: the message depends on labels."""


class InvalidPredictions(InvalidInput):
    """Predictions cannot be scored. Message and problems are the same whatever the labels are."""


class InvalidRisk(InvalidInput):
    """A risk, or a vector of losses, is not a number in its range."""


class InvalidState(InvalidInput):
    """A saved state is damaged, or belongs to another mechanism, tape or version."""


class WrongKey(InvalidState):
    """The secret side needs a key file, needs none, or was encrypted with another one."""


class BrokenLoss(LadderboardError):
    """A custom loss did not return one number in [0, 1] for every example."""


class BrokenMechanism(LadderboardError):
    """A custom mechanism returned a value that is not a finite number."""


class BrokenLedger(LadderboardError):
    """A ledger was changed after it was written; the message names the first differing entry.

    ``entry`` is its number, or None if something other than an entry differs.
    """

    def __init__(self, message: str, *, entry: int | None = None) -> None:
        super().__init__(message)
        self.entry = entry


class BrokenDump(LadderboardError):
    """A dump was changed after it was written: damaged, truncated or extended."""


class StorageFailed(LadderboardError):
    """A database or a disk failed; nothing was released.

    ``uncertain`` is true if a commit was sent and no answer came: it may have succeeded or not.
    """

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain


class DiskFull(StorageFailed):
    """The disk is full; nothing was recorded, and earlier records are intact."""


class ReadOnly(StorageFailed):
    """The disk, or the database, is read-only; earlier records can still be read."""


_ERRNO_CLASSES = {errno.ENOSPC: DiskFull, errno.EDQUOT: DiskFull, errno.EROFS: ReadOnly}


def storage_error(error: OSError, message: str) -> StorageFailed:
    """Return the exception to raise for a file that could not be used; ``message`` names the file.

    >>> storage_error(OSError(errno.ENOSPC, "No space left on device"), "guard.db cannot be made")
    DiskFull('guard.db cannot be made: No space left on device.')
    """
    error_class = _ERRNO_CLASSES.get(error.errno or 0, StorageFailed)
    return error_class(f"{message}: {error.strerror or type(error).__name__}.")


class StaleCopy(LadderboardError):
    """A ledger is behind its mark: an old copy was restored, and later questions are lost.

    ``missing`` is the smallest number of questions that must be missing.
    """

    def __init__(self, message: str, *, missing: int = 0) -> None:
        super().__init__(message)
        self.missing = missing


class GuardUnreachable(LadderboardError):
    """A served guard does not answer, or the answer is not a guard's; the message says which.

    Asking again is safe: the same predictions never cost twice.
    """


class ServerUnreachable(LadderboardError):
    """A board server does not answer, or the answer is not Ladderboard's; the message says which.

    Sending again is safe: the same predictions never cost twice.
    """


class BudgetSpent(LadderboardError):
    """No questions are left."""


class NotOpen(LadderboardError):
    """A board does not accept submissions now: not started, paused, over or moved."""


class RateLimited(LadderboardError):
    """A limit per time is reached; ``wait`` is the number of seconds until the next attempt."""

    def __init__(self, message: str, *, wait: int) -> None:
        super().__init__(message)
        self.wait = wait


class NotAllowed(LadderboardError):
    """The caller does not have the permission for this."""


class NotFound(LadderboardError):
    """It does not exist, or the caller may not see it."""


class Conflict(LadderboardError):
    """The name is taken, or no place is left."""


class QuotaExceeded(LadderboardError):
    """A storage quota for submissions is used up; no question was used."""


class SessionClosed(LadderboardError):
    """The session was closed and answers no more questions."""


class GameFailed(LadderboardError):
    """A mechanism or an analyst raised an error in a game; the message says which, and where."""


class WorkerError(LadderboardError):
    """The worker processes or the cluster died or cannot be reached."""


class MissingDependency(LadderboardError, ImportError):
    """An optional dependency is not installed; the message holds the command that installs it."""
