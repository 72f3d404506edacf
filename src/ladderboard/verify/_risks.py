"""Recompute risks: read labels and submissions from the bundle, and score them again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import BrokenLedger, InvalidInput, InvalidState
from ladderboard.files import Limits
from ladderboard.holdout import (
    ALIGNED_FORMAT,
    AlignedPredictions,
    Scorer,
    sample_digest,
    sample_from_description,
)
from ladderboard.ledger import Commitment, broken_entry, encode
from ladderboard.verify._chain import has_exact_keys, same_encoding

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ladderboard.files import DeclaredColumns, HoldoutTable
    from ladderboard.losses import Loss
    from ladderboard.verify._replay import OpenedSecret

_MAX_COLUMNS = 2**20
_MAX_FILE = 2**34  # bytes and rows of a file, whatever the rules allow
_SAMPLE = {"ids", "labels", "weight", "split", "group", "kind"}


@dataclass(frozen=True)
class SubmittedFile:
    """A submitted file, as a bundle holds it."""

    id: str
    format: str | None
    selected: bool
    body: bytes | Path


@dataclass
class RiskChecker:
    """The labels of every epoch, and scorers for them."""

    loss: Loss | None
    is_board: bool
    columns: DeclaredColumns | None = None
    further: tuple[Loss | None, ...] = ()
    """The losses of a board's further metrics; None for a custom one."""
    live: tuple[int, ...] = (0,)
    """The places of the metrics that answer every submission; 0 is the first."""
    tables: list[HoldoutTable] = field(default_factory=list)
    _first: bytes | None = None
    _commitments: list[str] = field(default_factory=list)
    _scorers: dict[tuple[int, str, int], Scorer] = field(default_factory=dict)

    def add_labels(self, holdout: dict[str, Any]) -> None:
        """Add the labels of the next epoch."""
        if not same_encoding(holdout["epoch"], len(self.tables)):
            raise BrokenLedger("The labels in the bundle are not in the order of their epochs.")
        sample = holdout["sample"]
        if not has_exact_keys(sample, _SAMPLE):
            raise BrokenLedger("Labels in the bundle are malformed.")
        self._check_correction(sample)
        commitment = Commitment("holdout", sample_digest(sample), holdout["salt"])
        self._commitments.append(commitment.hash.hex())
        try:
            self.tables.append(sample_from_description(sample))
        except (LookupError, TypeError, ValueError):
            raise BrokenLedger("Labels in the bundle cannot be read.") from None

    def _check_correction(self, sample: dict[str, Any]) -> None:
        """Refuse a correction that changes anything but labels, such as which rows are private."""
        shape = sample["labels"]["shape"]
        others = {name: sample[name] for name in _SAMPLE - {"labels"}}
        decided = encode([shape, others])
        if self._first is None:
            self._first = decided
        elif self._first != decided:
            raise BrokenLedger("A correction in the bundle changes more than labels.")

    def check_description(self, rules: dict[str, Any]) -> None:
        """Refuse labels that contradict what the first entry states about them."""
        scorer = self.find_scorer(0) if self.tables else None
        if scorer is None:
            return
        table, grouping = self.tables[0], scorer.grouping
        stated = [rules[name] for name in ("n", "rows", "kind", "weighted")]
        live = [self.find_scorer(0, metric=number) for number in self.live]
        if None in live:
            return  # a custom metric, of which nothing can be checked
        zero_one = all(other is not None and other.zero_one for other in live)
        stated += [rules.get("zero_one", zero_one), rules.get("promise"), rules.get("further", [])]
        weighted = grouping.weight is not None
        actual: list[Any] = [grouping.n, len(table), table.kind, weighted, zero_one, scorer.promise]
        actual += [[other.promise for other in live[1:] if other is not None]]
        if not same_encoding(stated, actual) or rules["worth"] != int(grouping.effective_n):
            raise broken_entry(
                0, "what it states about the labels is not true of those in the bundle"
            )

    @property
    def has_private(self) -> bool:
        """Whether some rows are reserved for the final ranking."""
        split = self.tables[0].split
        return self.is_board and split is not None and bool(np.any(split == "private"))

    def check_commitment(self, number: int, epoch: int, holdout: str) -> None:
        """Refuse labels of an epoch that are not those that an entry commits to."""
        if not self.tables:
            return
        if epoch >= len(self.tables):
            raise broken_entry(number, "the labels that it commits to are not in the bundle")
        if self._commitments[epoch] != holdout:
            raise broken_entry(number, "the labels in the bundle are not those that it commits to")

    def find_scorer(self, epoch: int, split: str = "public", metric: int = 0) -> Scorer | None:
        """Return the scorer of a split with the labels of an epoch; None if it has no rows."""
        loss = self.loss if metric == 0 else self.further[metric - 1]
        if (epoch, split, metric) not in self._scorers:
            table = self.tables[epoch]
            rows = None
            if self.is_board and table.split is not None:
                rows = np.asarray(table.split == split)
            if loss is None or (split != "public" and (rows is None or not rows.any())):
                return None
            self._scorers[epoch, split, metric] = Scorer(
                table,
                loss,
                rows=rows,
                columns=self.columns,
                read_by=self.loss if metric else None,
            )
        return self._scorers[epoch, split, metric]

    def find_final_scorers(self) -> list[Scorer | None]:
        """Return the scorers of the private split, one for each metric; None for a custom one."""
        epoch = len(self.tables) - 1
        return [
            self.find_scorer(epoch, "private", number) for number in range(1 + len(self.further))
        ]


def rescore_file(
    number: int,
    scorer: Scorer,
    opened: OpenedSecret,
    file: SubmittedFile,
    *,
    max_file: tuple[int, int],
) -> tuple[AlignedPredictions, NDArray[Any] | None]:
    """Score a file again; return the parsed submission and the loss of every example."""
    size, rows = (min(limit, _MAX_FILE) for limit in max_file)
    scorer = scorer.with_limits(Limits(bytes=size, rows=rows, columns=_MAX_COLUMNS))
    try:
        if file.format == ALIGNED_FORMAT:
            body = file.body if isinstance(file.body, bytes) else file.body.read_bytes()
            submission = AlignedPredictions.unpack(body, training=opened.training)
        else:
            submission = scorer.read(file.body, training=opened.training, format=file.format)
    except (InvalidInput, InvalidState) as error:  # but not MissingDependency
        raise broken_entry(number, f"its file cannot be read ({error})") from None
    if submission.values.shape[:1] != (scorer.roster.n,):
        raise broken_entry(number, "its predictions are not for the rows of the holdout")
    if submission.digest != opened.submission:
        raise broken_entry(number, "its file is not what was submitted")
    return submission, check_risk(number, scorer, submission, opened)


def check_risk(
    number: int, scorer: Scorer, submission: AlignedPredictions, opened: OpenedSecret
) -> NDArray[Any] | None:
    """Score a submission again; refuse another risk than the recorded one.

    Returns the loss of every example.
    """
    try:
        scored = scorer.score(submission)
    except (IndexError, TypeError, ValueError):  # predictions that no parser has checked
        raise broken_entry(number, "its predictions cannot be scored") from None
    if (scored.risk, scored.broken) != (opened.risk, opened.broken):
        raise broken_entry(number, "its risk is not that of its file on the labels")
    if opened.standard_error not in {None, scorer.standard_error(scored)}:
        raise broken_entry(number, "its standard error is not that of its file on the labels")
    return scorer.group_losses(scored)


def sha256_digest(body: bytes | Path) -> bytes:
    """Return the SHA-256 of a body in memory or in a file."""
    if isinstance(body, bytes):
        return hashlib.sha256(body).digest()
    with body.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
