"""Recompute a bundle from nothing but itself.

:func:`verify_bundle` takes a bundle or a public ledger, and optionally heads and receipts that
were saved earlier. It opens no database, trusts no storage, and imports no code that the file
names. It returns a :class:`VerificationResult` with what holds and what could not be checked, or
raises :class:`~ladderboard.errors.BrokenLedger` that names the first wrong entry.
"""

from ladderboard.verify._check import verify_bundle
from ladderboard.verify._history import ShownMetric
from ladderboard.verify._receipts import SavedReceipt, read_receipts
from ladderboard.verify._result import RankedTeam, VerificationResult

__all__ = [
    "RankedTeam",
    "SavedReceipt",
    "ShownMetric",
    "VerificationResult",
    "read_receipts",
    "verify_bundle",
]
