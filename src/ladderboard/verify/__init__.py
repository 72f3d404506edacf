"""Recompute a bundle from nothing but itself.

:func:`check` takes a bundle, or the public side of a ledger alone, and what somebody kept from
before: a head, a receipt. It opens no database, trusts no storage, and imports no code that the
file names. It returns what holds, and what could not be checked, as :class:`Verified`; the first
entry that differs is named by :class:`~ladderboard.errors.BrokenLedger`.
"""

from ladderboard.verify._check import check
from ladderboard.verify._receipts import KeptReceipt, read_receipts
from ladderboard.verify._result import Ranked, Verified

__all__ = ["KeptReceipt", "Ranked", "Verified", "check", "read_receipts"]
