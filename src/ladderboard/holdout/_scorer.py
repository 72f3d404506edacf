"""The scorer turns predictions into a risk, and tests whether a new best is proven better.

It holds the labels and reveals nothing. Proof of the test: docs/explanation/gate.md; of its price:
docs/explanation/growing-ladder.md, "Proven records".
"""

from __future__ import annotations

import math
import os
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidInput, InvalidSetting, InvalidState
from ladderboard.files import Limits, Roster, read_predictions, read_small_classes
from ladderboard.holdout._status import Meter
from ladderboard.ledger import (
    RecordTest,
    decode,
    decode_predictions,
    digest_predictions,
    encode,
    write_array,
)
from ladderboard.losses import LOSSES, predictions_converter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ladderboard.files import DeclaredColumns, HoldoutTable
    from ladderboard.ledger import Book, ChainState
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Grouping, Mechanism, VisibleChange


ALIGNED_FORMAT = "aligned"
"""The name of the format of ``AlignedPredictions.packed``."""

_DEFAULT = Limits()
_DIGITS = 12
_LEAST_BETA = 1e-99
_FEW_EXAMPLES = 100_000  # to compare them as bytes takes 50 us
_NONCE_BYTES = 16


@dataclass(frozen=True, repr=False)
class AlignedPredictions:
    """Predictions in the holdout's order, their digest, and how the ledger writes their array.

    ``read`` holds them as they were read: whole numbers may be signed bytes.
    """

    digest: bytes
    read: NDArray[Any]
    written: Mapping[str, Any]

    @cached_property
    def values(self) -> NDArray[Any]:
        """The predictions, with eight bytes for each whole number."""
        return self.read.astype(np.int64) if self.read.dtype == np.int8 else self.read

    @classmethod
    def from_values(
        cls, values: NDArray[Any], *, training: float | None = None
    ) -> AlignedPredictions:
        """Return predictions that are in the holdout's order already, with their digest."""
        written = write_array(values)
        return cls(digest_predictions(written, training), values, written)

    @property
    def compact(self) -> NDArray[Any]:
        """The values to compare: read-only bytes if they are small whole numbers."""
        written = self.written
        if written["type"] != "i1":
            return self.read
        return np.frombuffer(written["values"], np.int8).reshape(written["shape"])

    @cached_property
    def packed(self) -> bytes:
        """The predictions as bytes, which can be read back without parsing a file."""
        return encode({"kind": self.read.dtype.kind, "predictions": self.written})

    @classmethod
    def from_written(
        cls, kind: str, written: Mapping[str, Any], *, training: float | None = None
    ) -> AlignedPredictions:
        """Return predictions from an array as the ledger writes it; ``kind`` is its dtype's."""
        return cls(*decode_predictions(kind, written, training))

    @classmethod
    def unpack(cls, packed: bytes, *, training: float | None = None) -> AlignedPredictions:
        """Return the predictions that were packed.

        >>> packed = AlignedPredictions.from_values(np.array([1.0, 0.0])).packed
        >>> AlignedPredictions.unpack(packed).values
        array([1., 0.])
        """
        try:
            content = decode(packed)
            return cls.from_written(content["kind"], content["predictions"], training=training)
        except (KeyError, TypeError, ValueError):
            raise InvalidState("The stored predictions are damaged.") from None


@dataclass(frozen=True, repr=False)
class ScoringResult:
    """The result of scoring predictions. Secret.

    ``losses`` holds the loss of each example, or a mask of those with a loss of 1. ``broken`` says
    that the loss function failed, so that the worst risk is used.
    """

    risk: float
    losses: NDArray[np.float64] | NDArray[np.bool_]
    broken: bool


def describe_further(live: Sequence[Scorer]) -> dict[str, Any]:
    """Return what a board with several live metrics publishes of the further ones."""
    if len(live) == 1:
        return {}
    return {"answers": len(live), "further": [scorer.promise for scorer in live[1:]]}


def is_zero_one(loss: Loss, grouping: Grouping) -> bool:
    """Return whether every risk is a multiple of 1/n: losses 0 or 1, without weights and groups.

    It depends on the loss and on public columns only, never on labels.
    """
    unweighted = grouping.weight is None and grouping.n == grouping.examples
    return loss.is_binary and unweighted


class Scorer:
    """Scores predictions with the labels, a loss, and the grouping of examples.

    Parameters
    ----------
    table
        The hidden labelled sample.
    loss
        The loss function.
    limits
        The maximum size of a file.
    rows
        A mask of the rows to score; all if None. Predictions must cover all rows.
    columns
        The declared names of a submission's columns.
    read_by
        The loss that predictions are read for, if it is another: that of the board's first metric.
    may_be_labels
        Whether predictions may be named like labels. Sample submissions of boards often are; for a
        guard such a file may be the labels, and one question about them ends its use.
    """

    def __init__(
        self,
        table: HoldoutTable,
        loss: Loss,
        limits: Limits = _DEFAULT,
        *,
        rows: NDArray[np.bool_] | None = None,
        columns: DeclaredColumns | None = None,
        read_by: Loss | None = None,
        may_be_labels: bool = True,
    ) -> None:
        self.loss = loss
        self.roster = Roster.of(table, columns=columns)
        self.roster.may_be_labels = may_be_labels or not loss.uses_labels
        self._rows = rows
        scored = table if rows is None else table.select_rows(rows)
        self.grouping = scored.grouping
        is_grouped = self.grouping.weight is not None or self.grouping.n != len(scored)
        if is_grouped and not loss.is_mean:
            raise InvalidSetting(
                f"{loss.name} is computed from all examples together; it takes no groups and no "
                "weights. Leave out those columns, or take a mean over examples, such as accuracy."
            )
        self._labels = loss.read_labels(scored.labels)
        self._compact = None if read_by is not None else loss.compact_labels(self._labels)
        self._limits = limits
        self._is_custom_loss = LOSSES.get(loss.name) is not type(loss)
        self._convert = None if read_by is None else self._converter(read_by)
        self._binary = loss.is_binary
        self.zero_one = is_zero_one(loss, self.grouping)
        """Whether every risk is a multiple of 1/n."""
        self.nonce: Callable[[], bytes] = (
            bytes if loss.uses_labels else partial(os.urandom, _NONCE_BYTES)
        )
        """Returns nothing for predictions, and random bytes for scores.

        So equal scores are different questions: that they are equal depends on the labels.
        """
        is_few = len(self._labels) <= _FEW_EXAMPLES
        self.is_quick = is_few and self._compact is not None and not self._is_custom_loss
        """Whether scoring is so quick that others may wait for it."""
        self._prover: RecordProver | None = None  # of the scorer's only book

    def _converter(self, read_by: Loss) -> Callable[[NDArray[Any]], NDArray[Any]]:
        if self.loss.takes_any_columns:
            return lambda values: values
        given, wanted = (
            loss.columns(kind=self.roster.kind, width=self.roster.width)
            for loss in (read_by, self.loss)
        )
        convert = predictions_converter(given, wanted)
        if convert is None:
            raise InvalidSetting(
                f"{self.loss.name} cannot be computed from the predictions that {read_by.name} "
                "takes."
            )
        return convert

    def check(self, submission: AlignedPredictions) -> None:
        """Refuse predictions that another loss read and this one refuses, whatever labels are."""
        if self._convert is not None:
            shape = (self.roster.n, *self._labels.shape[1:])
            self.loss.read_predictions(self._convert(submission.values), shape)

    def with_limits(self, limits: Limits) -> Scorer:
        """Return the same scorer with other limits."""
        other = copy(self)
        other._limits = limits  # noqa: SLF001 - same class
        return other

    def accepting_label_names(self) -> Scorer:
        """Return the same scorer for senders who have no labels that they could send by mistake."""
        other = copy(self)
        other.roster = copy(self.roster)
        other.roster.may_be_labels = True
        return other

    def read(
        self,
        predictions: Any,
        *,
        training: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> AlignedPredictions:
        """Read predictions without using labels, so that no refusal can depend on them."""
        read = None
        if self._compact is not None:
            read = read_small_classes(predictions, self.roster, self.loss, self._limits)
        if read is None:
            read = read_predictions(
                predictions, self.roster, self.loss, format=format, limits=self._limits
            )
        return AlignedPredictions.from_values(read, training=training)

    def score(self, submission: AlignedPredictions) -> ScoringResult:
        """Score predictions. Call it only for questions that will be asked, because it is slow.

        A custom loss that fails may fail because of a label. To reveal nothing, a failure counts
        as the worst risk.
        """
        try:
            if self._convert is not None:
                values = self._convert(submission.values)
            else:  # as bytes there is eight times less memory to read
                values = submission.values if self._compact is None else submission.compact
            return self._evaluate(self._scored_rows(values))
        except (Exception, SystemExit) as error:
            # Predictions that another loss accepted may be none for this one.
            refused = self._convert is not None and isinstance(error, InvalidInput)
            if self._is_custom_loss or refused:
                return ScoringResult(1.0, np.ones(self.grouping.examples), broken=True)
            raise  # such as a lack of memory: nothing was asked, and nothing is spent

    def best_constant(self) -> ScoringResult | None:
        """Return the result of the best constant prediction. Secret: for the owner only."""
        predictions = self.loss.constant_predictions(self._labels)
        results = [self._evaluate(constant) for constant in predictions]
        return min(results, key=lambda result: result.risk, default=None)

    def plausible_model(self) -> ScoringResult | None:
        """Return the result of a plausible good model, made from the labels. For the owner only.

        None for a mean of losses, and for a loss of one's own.
        """
        with np.errstate(all="ignore"):
            result = None if self._is_custom_loss else self.loss.plausible_evaluation(self._labels)
        if result is None or result.risk is None:
            return None
        return ScoringResult(round(result.risk, _DIGITS), result.costs, broken=False)

    def class_sizes(self) -> dict[Any, int]:
        """Return the examples of each class, if standard errors depend on them. For the owner."""
        return self.loss.class_sizes(self._labels)

    def _evaluate(self, predictions: NDArray[Any]) -> ScoringResult:
        if self._compact is not None:  # to compare whole numbers warns of nothing
            losses, risk = self.loss.evaluate(self._compact, predictions)
        else:
            with np.errstate(all="ignore"):
                losses, risk = self.loss.evaluate(self._labels, predictions)
        if risk is None:
            risk = self.grouping.risk(losses, binary=self._binary)
        else:
            risk = round(risk, _DIGITS)  # so that another machine's rounding does not matter
        return ScoringResult(risk, losses, broken=False)

    @property
    def promise(self) -> dict[str, Any] | None:
        """What is proved of a statistic, and must be published; None for a mean of losses."""
        if self.loss.is_mean:
            return None
        proved = self.loss.promise(self._labels)
        if proved is None:
            return {}
        return {
            "effective_n": int(proved.effective_n),
            "nats": round(proved.nats, 6),
            "published": proved.published,
        }

    def fresh_interval(self, risk: float, *, models: int, beta: float) -> tuple[float, float]:
        """Return an interval for the true risk of a model that was chosen without these rows.

        ``models`` is how many such intervals hold together. From 0 to 1 if nothing is proved.
        """
        from ladderboard.bounds import fresh_sample_interval  # noqa: PLC0415 - for finals only

        promise = self.promise
        if promise is None:
            weighted = self.grouping.weight is not None
            n = int(self.grouping.effective_n)
            return fresh_sample_interval(n, risk, models=models, beta=beta, weighted=weighted)
        if not promise.get("effective_n"):
            return 0.0, 1.0
        share = max(beta * math.exp(-promise["nats"]), _LEAST_BETA)
        n = promise["effective_n"]
        return fresh_sample_interval(n, risk, models=models, beta=share, weighted=True)

    def standard_error(self, scored: ScoringResult) -> float:
        """Return the standard error of the risk. Secret."""
        if self.loss.is_mean:
            return self.grouping.standard_error(scored.losses)
        deviations = scored.losses - scored.losses.mean()
        return min(round(math.sqrt(math.fsum(deviations**2)) / len(deviations), _DIGITS), 1.0)

    def _scored_rows(self, aligned: NDArray[Any]) -> NDArray[Any]:
        return aligned if self._rows is None else aligned[self._rows]

    def contributions(self, scored: ScoringResult) -> NDArray[np.float32]:
        """Return one number per group whose plain mean is the risk, to compare models in pairs."""
        losses, weight = self.group_losses(scored), self.grouping.weight
        if weight is not None:
            losses = losses * (weight / weight.mean())
        return losses.astype(np.float32)

    def group_losses(self, scored: ScoringResult) -> NDArray[np.float64]:
        """Return one loss per group, for mechanisms that use losses and store them."""
        return self.paired_losses(scored).astype(np.float64, copy=False)

    def paired_losses(self, scored: ScoringResult) -> NDArray[np.float64] | NDArray[np.bool_]:
        """Return one loss per group, or a mask of those of 1, to compare two models by."""
        if not self.loss.is_mean or self.zero_one:  # zeros and ones need no rounding
            return scored.losses
        return self.grouping.losses(scored.losses)

    def evidence(self, submission: AlignedPredictions, book: Book) -> dict[str, Any]:
        """Score predictions; return what the book needs, as fields of a ``ScoredQuestion``."""
        scored, mechanism = self.score(submission), book.mechanism
        fields: dict[str, Any] = {"risk": scored.risk, "broken": scored.broken}
        if mechanism.needs == "losses":
            fields["losses"] = self.group_losses(scored)
        elif mechanism.needs == "standard_error":
            fields["standard_error"] = self.standard_error(scored)
        if book.tests_records:
            if self._prover is None:
                self._prover = RecordProver.of(mechanism, book.opening, self)
            fields["record"] = self._prover.test(partial(self.paired_losses, scored))
        return fields


@dataclass(frozen=True)
class RecordProver:
    """Tests new bests of a book against those before them.

    Two models are compared by their losses: with the sign test for zero-one loss with two classes,
    with bets otherwise.
    """

    mechanism: Mechanism
    opening: dict[str, Any]
    zero_one: bool
    binary: bool
    weight: NDArray[Any] | None

    @classmethod
    def of(cls, mechanism: Mechanism, opening: dict[str, Any], scorer: Scorer) -> RecordProver:
        """Return the tests for a loss and a grouping; they depend on nothing else."""
        binary = scorer.zero_one and len(scorer.loss.allowed or ()) == 2
        return cls(mechanism, opening, scorer.zero_one, binary, scorer.grouping.weight)

    def test(self, losses: Callable[[], NDArray[Any]]) -> RecordTest:
        """Return the test of a model; ``losses`` returns one per group, and is called for records.

        So a question that is no record costs nothing more.
        """

        def pack() -> bytes:
            return pack_losses(losses(), bits=self.zero_one)

        def is_proven(
            packed_before: bytes, changes: tuple[VisibleChange, ...], chain_state: ChainState
        ) -> bool:
            before = unpack_losses(packed_before)
            return self.is_proven(before, losses(), self.nats(changes, chain_state))

        return RecordTest(pack, is_proven)

    def is_proven(self, before: NDArray[Any], after: NDArray[Any], nats: float) -> bool:
        """Return whether losses prove a model better than the one before, at this price."""
        from ladderboard.bounds import proven_better  # noqa: PLC0415 - few questions are records

        return math.isfinite(nats) and proven_better(
            before,
            after,
            nats,
            self.opening["rules"]["beta"],
            binary=self.binary,
            weight=self.weight,
        )

    def nats(self, changes: tuple[VisibleChange, ...], chain_state: ChainState) -> float:
        """Return the price of the next question and of what was released before it.

        It is infinite if some of that is unknown, because an old copy was restored.
        """
        if chain_state.charged:
            return math.inf
        rules = self.opening["rules"]
        later = chain_state._replace(asked=chain_state.asked + 1)
        meter = Meter(self.mechanism, rules, later, read_changes=lambda: changes)
        priced = meter.certificate(None).nats
        return math.inf if priced is None else priced + math.log(rules["beta"] / 2)


def pack_losses(losses: NDArray[Any], *, bits: bool) -> bytes:
    """Return losses as bytes; a bit for each if all are 0 or 1."""
    if bits:
        return encode({"bits": np.packbits(losses != 0).tobytes(), "n": len(losses)})
    return encode({"doubles": losses.astype(">f8").tobytes(), "n": len(losses)})


def unpack_losses(packed: bytes) -> NDArray[np.float64]:
    """Return the losses that ``pack_losses`` encoded.

    >>> unpack_losses(pack_losses(np.array([1.0, 0.0]), bits=True)).tolist()
    [1.0, 0.0]
    >>> unpack_losses(pack_losses(np.array([0.25, 0.0]), bits=False)).tolist()
    [0.25, 0.0]
    """
    try:
        content = decode(packed)
        if "bits" in content:
            bits = np.unpackbits(np.frombuffer(content["bits"], np.uint8), count=content["n"])
            return bits.astype(np.float64)
        return np.frombuffer(content["doubles"], ">f8").astype(np.float64)
    except (KeyError, TypeError, ValueError):
        raise InvalidState("The stored losses of a record are damaged.") from None
