"""Every exception of the house.

::

    LadderboardError
    ├── InvalidInput (ValueError)      what was given cannot be used
    │   ├── InvalidSetting             a loss, a tape or a mechanism is described wrongly
    │   │   ├── InvalidRules           a board's folder or its rules are not as they must be
    │   │   ├── OutsideTheorem         the theorem asked for does not cover these settings
    │   │   ├── NoPerExampleLoss       a metric that is not a mean of per-example losses
    │   │   ├── KeyReused              a key to retry with that belongs to another submission
    │   │   └── TooManyLadders         a guard has no ladder left for another name
    │   ├── InvalidLabels              the owner's labels do not fit the loss
    │   ├── InvalidPredictions         predictions cannot be scored, whatever the labels are
    │   ├── InvalidRisk                a risk, or a vector of losses, outside its range
    │   └── InvalidState               a saved state does not belong here
    │       └── WrongKey               a key file is needed, or not, or is another one
    ├── BrokenLoss                     a custom loss returned something that is not a loss
    ├── BrokenMechanism                a mechanism said something that is not a value
    ├── BrokenLedger                   a ledger is not as it was written
    ├── BrokenDump                     a dump is not as it was written
    ├── StorageFailed                  a database could not do what it must
    │   ├── DiskFull                   there is no room on the disk
    │   └── ReadOnly                   the disk, or the database, may only be read
    ├── OldCopy                        a ledger is behind its mark: an old copy was put back
    ├── GuardUnreachable               a served guard that does not answer
    ├── ServerUnreachable              a server that does not answer, or is none of ours
    ├── BudgetSpent                    no question is left
    ├── NotOpen                        a board takes no submissions now
    ├── TooSoon                        a limit over time; it says how long to wait
    ├── NotAllowed                     who asks may not do this
    ├── NotFound                       there is no such thing, or none that may be seen
    ├── Taken                          a name or a place that somebody else has
    ├── NoRoom                         a board keeps as many bytes of submissions as it may
    ├── SessionClosed                  the session was closed; it answers no more
    ├── GameFailed                     a mechanism or an analyst broke down in a game
    ├── WorkersLost                    processes or a cluster that cannot be reached, or died
    └── MissingDependency (ImportError)  an optional part is not installed

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
    "DiskFull",
    "GameFailed",
    "GuardUnreachable",
    "InvalidInput",
    "InvalidLabels",
    "InvalidPredictions",
    "InvalidRisk",
    "InvalidRules",
    "InvalidSetting",
    "InvalidState",
    "KeyReused",
    "LadderboardError",
    "MissingDependency",
    "NoPerExampleLoss",
    "NoRoom",
    "NotAllowed",
    "NotFound",
    "NotOpen",
    "OldCopy",
    "OutsideTheorem",
    "ReadOnly",
    "ServerUnreachable",
    "SessionClosed",
    "StorageFailed",
    "Taken",
    "TooManyLadders",
    "TooSoon",
    "WorkersLost",
    "WrongKey",
]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with what was given, for a program to read.

    ``code`` is one of a fixed list, ``column`` the column to blame if one is, ``count`` the number
    of rows (or of ids, or columns), ``ids`` the first ten of them, ``message`` the same in words.
    """

    code: str
    column: str | None
    count: int
    ids: tuple[str, ...]
    message: str


class LadderboardError(Exception):
    """Anything that Ladderboard refuses or cannot do."""


class InvalidInput(LadderboardError, ValueError):
    """What was given cannot be used; nothing was changed.

    ``positions`` are those of the first offending rows (at most ten), where rows are to blame,
    so that a room that knows the ids can name them. ``problems`` holds what is wrong item by item,
    where it was itemised.
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
    """A loss, a tape or a mechanism is described wrongly."""


class InvalidRules(InvalidSetting):
    """A board's folder, its rules or a change to them. For the organiser: it may speak of labels.

    ``problems`` holds everything that is wrong: ``column`` is the key or the file to blame, ``ids``
    the line of it.
    """


class OutsideTheorem(InvalidSetting):
    """The theorem asked for does not cover these settings.

    ``least_n`` is the least number of examples that would do, or None where none does.
    """

    def __init__(self, message: str, *, least_n: int | None = None) -> None:
        super().__init__(message)
        self.least_n = least_n


class NoPerExampleLoss(InvalidSetting):
    """The metric is not a mean of bounded per-example losses; ``nearest`` names one that is."""

    def __init__(self, message: str, *, nearest: str = "") -> None:
        super().__init__(message)
        self.nearest = nearest


class KeyReused(InvalidSetting):
    """A key under which to retry was used for another submission."""


class TooManyLadders(InvalidSetting):
    """A guard has fewer ladders than this needs; nothing was asked."""


class InvalidLabels(InvalidInput):
    """The owner's labels do not fit the loss. For the owner's eyes: it speaks of labels."""


class InvalidPredictions(InvalidInput):
    """Predictions cannot be scored. Message and problems are the same whatever the labels are."""


class InvalidRisk(InvalidInput):
    """A risk, or a vector of losses, is not a number in its range."""


class InvalidState(InvalidInput):
    """A saved state is damaged, or belongs to another mechanism, tape or version."""


class WrongKey(InvalidState):
    """The secret side needs a key file, needs none, or was closed with another one."""


class BrokenLoss(LadderboardError):
    """A custom loss returned something that is not one number in [0, 1] for every example."""


class BrokenMechanism(LadderboardError):
    """A mechanism said something that is not a finite number where it should tell a value."""


class BrokenLedger(LadderboardError):
    """A ledger is not as it was written; the message names the first entry that differs.

    ``entry`` is its number; None where something else than an entry differs.
    """

    def __init__(self, message: str, *, entry: int | None = None) -> None:
        super().__init__(message)
        self.entry = entry


class BrokenDump(LadderboardError):
    """A dump is not as it was written: damaged, cut off, or something was added to it."""


class StorageFailed(LadderboardError):
    """A database could not do what it must; nothing was released.

    ``uncertain`` says that a commit was sent and no answer came: it may stand, or not.
    """

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain


class DiskFull(StorageFailed):
    """There is no room on the disk: nothing was recorded, and what was there is still there."""


class ReadOnly(StorageFailed):
    """The disk, or the database, may only be read; what was recorded can still be looked at."""


_DISK = {errno.ENOSPC: DiskFull, errno.EDQUOT: DiskFull, errno.EROFS: ReadOnly}


def disk_failed(error: OSError, message: str) -> StorageFailed:
    """Return what to raise where a file could not be read or written; ``message`` says which.

    >>> disk_failed(OSError(errno.ENOSPC, "No space left on device"), "guard.db cannot be made")
    DiskFull('guard.db cannot be made: No space left on device.')
    """
    kind = _DISK.get(error.errno or 0, StorageFailed)
    return kind(f"{message}: {error.strerror or type(error).__name__}.")


class OldCopy(LadderboardError):
    """A ledger is behind its mark: an old copy was put back, and questions asked since are lost.

    ``least`` is how many questions are known to be missing.
    """

    def __init__(self, message: str, *, least: int = 0) -> None:
        super().__init__(message)
        self.least = least


class GuardUnreachable(LadderboardError):
    """A served guard does not answer, or what answers is none of ours; the message says which.

    Asking again is safe: the same predictions never cost twice.
    """


class ServerUnreachable(LadderboardError):
    """A server of boards does not answer, or what answers is none of ours; the message says which.

    Sending again is safe: the same predictions never cost twice.
    """


class BudgetSpent(LadderboardError):
    """No question is left."""


class NotOpen(LadderboardError):
    """A board takes no submissions now: it has not begun, is paused, is over or has moved."""


class TooSoon(LadderboardError):
    """A limit over time is reached; ``wait`` is for how many seconds."""

    def __init__(self, message: str, *, wait: int) -> None:
        super().__init__(message)
        self.wait = wait


class NotAllowed(LadderboardError):
    """Who asks may not do this."""


class NotFound(LadderboardError):
    """There is no such thing, or none that may be seen."""


class Taken(LadderboardError):
    """Somebody else has this name, or there is no place left."""


class NoRoom(LadderboardError):
    """A board keeps as many bytes of submissions as its rules allow; nothing was asked."""


class SessionClosed(LadderboardError):
    """The session was closed; it answers no more questions."""


class GameFailed(LadderboardError):
    """A mechanism or an analyst broke down in a game; the message says which, and where."""


class WorkersLost(LadderboardError):
    """The processes or the cluster that should do the work cannot be reached, or died."""


class MissingDependency(LadderboardError, ImportError):
    """An optional part is not installed; the message holds the command that installs it."""
