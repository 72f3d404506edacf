"""Proven records: whether a new best is better than the best before it on its ladder.

By Theorem P, docs/explanation/gate.md, at the price of everything that was released before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidState
from ladderboard.holdout._status import Meter
from ladderboard.ledger import RecordTest, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ladderboard.holdout._scorer import Scorer
    from ladderboard.ledger import Book, ChainState
    from ladderboard.mechanisms import Mechanism, VisibleChange


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
    def for_book(cls, book: Book, scorer: Scorer) -> RecordProver | None:
        """Return the tests of a guard's or a board's book; None if its rules have none."""
        return cls.of(book.mechanism, book.opening, scorer) if book.tests_records else None

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
