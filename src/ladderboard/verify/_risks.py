"""Risks again: labels and submissions, read and scored as they were."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import BrokenLedger, InvalidInput, InvalidState
from ladderboard.files import Limits
from ladderboard.holdout import ALIGNED, Scorer, Submission, sample_digest, table_of
from ladderboard.ledger import Commitment, broken_entry, encode
from ladderboard.verify._strict import has, same

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ladderboard.files import HoldoutTable
    from ladderboard.losses import Loss
    from ladderboard.verify._replay import Opened

_COLUMNS = 2**20
_MOST = 2**34  # bytes and rows of a file, whatever the rules allow
_SAMPLE = {"ids", "labels", "weight", "split", "group", "kind"}


@dataclass(frozen=True)
class File:
    """A submitted file, as a bundle holds it."""

    id: str
    format: str | None
    selected: bool
    body: bytes | Path


@dataclass
class Risks:
    """The labels of every epoch, and who scores with them."""

    loss: Loss | None
    is_board: bool
    tables: list[HoldoutTable] = field(default_factory=list)
    _first: bytes | None = None
    _shown: list[str] = field(default_factory=list)
    _scorers: dict[tuple[int, str], Scorer] = field(default_factory=dict)

    def add(self, held: dict[str, Any]) -> None:
        """Take the labels of the next epoch."""
        if not same(held["epoch"], len(self.tables)):
            raise BrokenLedger("The labels in the bundle are not in the order of their epochs.")
        sample = held["sample"]
        if not has(sample, _SAMPLE):
            raise BrokenLedger("There are labels in the bundle that are not as we write them.")
        self._check_correction(sample)
        shown = Commitment("holdout", sample_digest(sample), held["salt"])
        self._shown.append(shown.hash.hex())
        try:
            self.tables.append(table_of(sample))
        except (LookupError, TypeError, ValueError):
            raise BrokenLedger("There are labels in the bundle that cannot be read.") from None

    def _check_correction(self, sample: dict[str, Any]) -> None:
        """Refuse labels that change anything but labels: rows that move would be asked about."""
        shape = sample["labels"]["shape"]
        others = {name: sample[name] for name in _SAMPLE - {"labels"}}
        decided = encode([shape, others])
        if self._first is None:
            self._first = decided
        elif self._first != decided:
            raise BrokenLedger("A correction in the bundle changes more than labels.")

    def described(self, rules: dict[str, Any]) -> None:
        """Refuse labels that are others than the first entry says they are."""
        scorer = self.scorer(0) if self.tables else None
        if scorer is None:
            return
        table, grouping = self.tables[0], scorer.grouping
        told = [rules[each] for each in ("n", "rows", "kind", "weighted")]
        told.append(rules.get("zero_one", scorer.zero_one))
        weighted = grouping.weight is not None
        found = [grouping.n, len(table), table.kind, weighted, scorer.zero_one]
        if not same(told, found) or rules["worth"] != int(grouping.effective_n):
            raise broken_entry(0, "what it says of the labels is not true of those in the bundle")

    @property
    def has_private(self) -> bool:
        """Whether some rows are kept for the final ranking."""
        split = self.tables[0].split
        return self.is_board and split is not None and bool(np.any(split == "private"))

    def committed(self, number: int, epoch: int, holdout: str) -> None:
        """Refuse labels that are not those that an entry commits to."""
        if not self.tables:
            return
        if epoch >= len(self.tables):
            raise broken_entry(number, "the labels that it commits to are not in the bundle")
        if self._shown[epoch] != holdout:
            raise broken_entry(number, "the labels in the bundle are not those that it commits to")

    def scorer(self, epoch: int, split: str = "public") -> Scorer | None:
        """Return who scores a split with the labels of an epoch; None where it has no rows."""
        if (epoch, split) not in self._scorers:
            table = self.tables[epoch]
            rows = None
            if self.is_board and table.split is not None:
                rows = np.asarray(table.split == split)
            if self.loss is None or (split != "public" and (rows is None or not rows.any())):
                return None
            self._scorers[epoch, split] = Scorer(table, self.loss, rows=rows)
        return self._scorers[epoch, split]


def score(
    number: int, scorer: Scorer, opened: Opened, file: File, *, largest: tuple[int, int]
) -> tuple[Submission, NDArray[Any] | None]:
    """Score a file again, and return it as read, and its losses."""
    size, rows = (min(each, _MOST) for each in largest)
    scorer = scorer.within(Limits(bytes=size, rows=rows, columns=_COLUMNS))
    try:
        if file.format == ALIGNED:
            body = file.body if isinstance(file.body, bytes) else file.body.read_bytes()
            submission = Submission.unpack(body, training=opened.training)
        else:
            submission = scorer.read(file.body, training=opened.training, format=file.format)
    except (InvalidInput, InvalidState) as error:  # not a library that is missing
        raise broken_entry(number, f"its file cannot be read ({error})") from None
    if submission.aligned.shape[:1] != (scorer.roster.n,):
        raise broken_entry(number, "its predictions are not for the rows of the holdout")
    if submission.digest != opened.submission:
        raise broken_entry(number, "its file is not what was submitted")
    try:
        scored = scorer.score(submission)
    except (IndexError, TypeError, ValueError):  # of predictions that no parser has checked
        raise broken_entry(number, "its predictions cannot be scored") from None
    if (scored.risk, scored.broken) != (opened.risk, opened.broken):
        raise broken_entry(number, "its risk is not that of its file on the labels")
    return submission, scorer.by_group(scored)


def sha256_of(body: bytes | Path) -> bytes:
    """Return the hash of a body."""
    if isinstance(body, bytes):
        return hashlib.sha256(body).digest()
    with body.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
