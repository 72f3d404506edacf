"""The guard.

Labels, loss, mechanism and ledger in one file: ask as often as the budget allows. A
:class:`Holdout` is the guard, its :class:`Scorer` turns predictions into a risk that nobody sees,
the ledger decides what is said about it, and a :class:`Reply` says it. A :class:`Judge` asks about
the models of a search, and knows which of them won.
"""

from typing import TYPE_CHECKING, Any

from ladderboard.holdout._export import (
    export_entries,
    open_entries,
    put_opening,
    write_guard_bundle,
)
from ladderboard.holdout._file import make_key_file, read_key_file
from ladderboard.holdout._file import refuse_strange_log as refuse_strange_log
from ladderboard.holdout._guard import Holdout
from ladderboard.holdout._judge import Guard, Judge, Verdict, last_improved
from ladderboard.holdout._payload import Parcel, pack
from ladderboard.holdout._reply import UNDECLARED, Reply, left, sentence
from ladderboard.holdout._sample import (
    keep_sample,
    read_sample,
    sample_digest,
    table_of,
    write_sample,
)
from ladderboard.holdout._scorer import ALIGNED, Scored, Scorer, Submission, is_zero_one
from ladderboard.holdout._status import LadderStatus, Meter, Status, Told, coarseness, unseen

if TYPE_CHECKING:
    from ladderboard.holdout._remote import RemoteHoldout

__all__ = [
    "ALIGNED",
    "UNDECLARED",
    "Guard",
    "Holdout",
    "Judge",
    "LadderStatus",
    "Meter",
    "Parcel",
    "RemoteHoldout",
    "Reply",
    "Scored",
    "Scorer",
    "Status",
    "Submission",
    "Told",
    "Verdict",
    "coarseness",
    "export_entries",
    "is_zero_one",
    "keep_sample",
    "last_improved",
    "left",
    "make_key_file",
    "open_entries",
    "pack",
    "put_opening",
    "read_key_file",
    "read_sample",
    "sample_digest",
    "sentence",
    "table_of",
    "unseen",
    "write_guard_bundle",
    "write_sample",
]


def __getattr__(name: str) -> Any:
    if name != "RemoteHoldout":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Loads HTTP, which a guard that is a file can do without.
    from ladderboard.holdout._remote import RemoteHoldout  # noqa: PLC0415

    return RemoteHoldout
