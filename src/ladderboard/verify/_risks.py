"""Risks again: labels and submissions, read and scored as they were."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import BrokenLedger, InvalidInput
from ladderboard.files import Limits
from ladderboard.holdout import Scorer, Submission, sample_digest, table_of
from ladderboard.ledger import Commitment, differs

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ladderboard.files import HoldoutTable
    from ladderboard.losses import Loss
    from ladderboard.verify._opened import Opened

__all__ = ["File", "Risks"]

_LIMITS = Limits(bytes=2**36, rows=2**50, columns=2**20)


@dataclass(frozen=True)
class File:
    """A submitted file, as a bundle holds it."""

    id: str
    format: str | None
    sha256: bytes
    selected: bool
    body: bytes | Path


@dataclass
class Risks:
    """The labels of every epoch, and who scores with them."""

    loss: Loss | None
    is_board: bool
    tables: list[HoldoutTable] = field(default_factory=list)
    _shown: list[str] = field(default_factory=list)
    _scorers: dict[tuple[int, str], Scorer] = field(default_factory=dict)

    def add(self, held: dict[str, Any]) -> None:
        """Take the labels of the next epoch."""
        if held["epoch"] != len(self.tables):
            raise BrokenLedger("The labels in the bundle are not in the order of their epochs.")
        sample = held["sample"]
        shown = Commitment("holdout", sample_digest(sample), held["salt"])
        self._shown.append(shown.hash.hex())
        try:
            self.tables.append(table_of(sample))
        except (LookupError, TypeError, ValueError):
            raise BrokenLedger("There are labels in the bundle that cannot be read.") from None

    def committed(self, number: int, epoch: int, holdout: str) -> None:
        """Refuse labels that are not those that an entry commits to."""
        if not self.tables:
            return
        if epoch >= len(self.tables):
            raise differs(number, "the labels that it commits to are not in the bundle")
        if self._shown[epoch] != holdout:
            raise differs(number, "the labels in the bundle are not those that it commits to")

    def scorer(self, epoch: int, split: str = "public") -> Scorer | None:
        """Return who scores a split with the labels of an epoch; None where it has no rows."""
        if (epoch, split) not in self._scorers:
            table = self.tables[epoch]
            rows = None
            if self.is_board and table.split is not None:
                rows = np.asarray(table.split == split)
            if self.loss is None or (split != "public" and (rows is None or not rows.any())):
                return None
            self._scorers[epoch, split] = Scorer(table, self.loss, _LIMITS, rows=rows)
        return self._scorers[epoch, split]

    def score(
        self, number: int, epoch: int, opened: Opened, file: File
    ) -> tuple[Submission, NDArray[Any] | None]:
        """Score a file again, and return it as read, and its losses."""
        scorer = self.scorer(epoch)
        if scorer is None:
            raise differs(number, "its file cannot be scored")
        try:
            submission = scorer.read(file.body, training=opened.training, format=file.format)
        except InvalidInput as error:  # a library that is missing is no fault of the ledger
            raise differs(number, f"its file cannot be read ({error})") from None
        if submission.digest != opened.submission:
            raise differs(number, "its file is not what was submitted")
        scored = scorer.score(submission)
        if (scored.risk, scored.broken) != (opened.risk, opened.broken):
            raise differs(number, "its risk is not that of its file on the labels")
        return submission, scorer.by_group(scored)


def sha256_of(body: bytes | Path) -> bytes:
    """Return the hash of a body."""
    if isinstance(body, bytes):
        return hashlib.sha256(body).digest()
    with body.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
