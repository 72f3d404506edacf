"""The scorer: from predictions to a risk. It knows the labels, and says nothing to anybody."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidState
from ladderboard.files import Limits, Roster, read_predictions
from ladderboard.ledger import decode, digest, encode, read_array, write_array
from ladderboard.losses import LOSSES, TopK, ZeroOne

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files import HoldoutTable
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Grouping

ALIGNED_FORMAT = "aligned"
"""The format of predictions that were read before: what ``Submission.pack`` returns."""

_DEFAULT = Limits()
_BINARY = (ZeroOne, TopK)
_HELD: dict[str, Any] = {"i": np.int64, "f": np.float64}


@dataclass(frozen=True, repr=False)
class AlignedPredictions:
    """Predictions in the holdout's order, and the digest of them."""

    digest: bytes
    values: NDArray[Any]

    @classmethod
    def of(cls, values: NDArray[Any], *, training: float | None = None) -> AlignedPredictions:
        """Return the submission of predictions that were read, whoever read them."""
        written = {"predictions": write_array(values), "training": training}
        return cls(digest("predictions", written), values)

    def pack(self) -> bytes:
        """Return the aligned predictions as bytes that can be read back without parsing a file."""
        kind = self.values.dtype.kind
        return encode({"kind": kind, "predictions": write_array(self.values)})

    @classmethod
    def unpack(cls, packed: bytes, *, training: float | None = None) -> AlignedPredictions:
        """Return what ``pack`` wrote.

        >>> AlignedPredictions.unpack(AlignedPredictions.of(np.array([1.0, 0.0])).pack()).values
        array([1., 0.])
        """
        try:
            written = decode(packed)
            values = read_array(written["predictions"])
            if written["kind"] in _HELD:
                values = values.astype(_HELD[written["kind"]])
            return cls.of(values, training=training)
        except (KeyError, TypeError, ValueError):
            raise InvalidState("Predictions that were kept are damaged.") from None


@dataclass(frozen=True, repr=False)
class ScoringResult:
    """What is known of a submission. Secret.

    ``losses`` holds the loss of each example, ``broken`` says that the loss broke down and that
    the worst was taken.
    """

    risk: float
    losses: NDArray[np.float64]
    broken: bool


def is_zero_one(loss: Loss, grouping: Grouping) -> bool:
    """Return whether every risk is a multiple of 1/n: losses 0 or 1, without weights and groups.

    It depends on the loss and on public columns only, never on labels.
    """
    alike = grouping.weight is None and grouping.n == grouping.examples
    return type(loss) in _BINARY and alike


class Scorer:
    """Labels, a loss and how losses become a risk.

    Parameters
    ----------
    table
        The hidden labelled sample.
    loss
        What a prediction costs.
    limits
        How large a file may be.
    rows
        Which rows are scored, all if None. Predictions are read for all of them.
    """

    def __init__(
        self,
        table: HoldoutTable,
        loss: Loss,
        limits: Limits = _DEFAULT,
        *,
        rows: NDArray[np.bool_] | None = None,
    ) -> None:
        self.loss = loss
        self.roster = Roster.of(table)
        self._rows = rows
        scored = table if rows is None else table.where(rows)
        self.grouping = scored.grouping
        self._labels = loss.read_labels(scored.labels)
        self._limits = limits
        self._own = type(loss) not in LOSSES.values()
        self._binary = type(loss) in _BINARY

    @property
    def zero_one(self) -> bool:
        """Whether every risk is a multiple of 1/n."""
        return is_zero_one(self.loss, self.grouping)

    def with_limits(self, limits: Limits) -> Scorer:
        """Return the same scorer with other limits."""
        other = copy(self)
        other._limits = limits  # noqa: SLF001 - our own kind
        return other

    def read(
        self,
        predictions: Any,
        *,
        training: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> AlignedPredictions:
        """Read predictions. It looks at no label, so nothing that it does can depend on one."""
        read = read_predictions(
            predictions, self.roster, self.loss, format=format, limits=self._limits
        )
        return AlignedPredictions.of(read, training=training)

    def score(self, submission: AlignedPredictions) -> ScoringResult:
        """Score predictions: only those of questions that will be asked, for it takes its time.

        A loss of the owner's own that breaks down may do so because of a label. So that nobody
        learns from it, it counts as the worst risk there is.
        """
        try:
            with np.errstate(all="ignore"):
                each = self.loss.score(self._labels, self._scored(submission.values))
            return ScoringResult(self.grouping.risk(each, binary=self._binary), each, broken=False)
        except (Exception, SystemExit):
            if self._own:
                return ScoringResult(1.0, np.ones(self.grouping.examples), broken=True)
            raise  # as where memory is short: nothing was asked, and nothing is spent

    def constant_risk(self) -> float | None:
        """Return the risk of the best constant prediction. Secret: for the owner's eyes only."""
        risks = [
            self.grouping.risk(self.loss.score(self._labels, each))
            for each in self.loss.constant_predictions(self._labels)
        ]
        return min(risks, default=None)

    def _scored(self, aligned: NDArray[Any]) -> NDArray[Any]:
        return aligned if self._rows is None else aligned[self._rows]

    def group_losses(self, scored: ScoringResult) -> NDArray[np.float64]:
        """Return the losses that a mechanism may look at: one for each group."""
        return self.grouping.losses(scored.losses)
