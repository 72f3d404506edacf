"""Losses of ranked lists: average precision, gain, reciprocal rank, and whether there is a hit.

A prediction is a list in a cell, best first: "71 108 339". A label is one item, or several that
are all relevant. Without relevant items, or without guesses, the cost is 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.losses._arrays import ExpectedColumns
from ladderboard.losses._cells import CellLoss, object_array, split_cell

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class RankedLoss(CellLoss):
    """A loss of the first ``k`` items of a list; a repeated item counts where it is first.

    Parameters
    ----------
    k
        How many items of the list count.
    separator
        Of the items; blanks if not given.
    """

    k: int = 5
    separator: str | None = None

    def __post_init__(self) -> None:
        _settings.set_frozen(self, k=_settings.integer("k", self.k, at_least=1))

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of lists."""
        between = "blanks" if self.separator is None else repr(self.separator)
        rule = f"prediction: up to {self.k} items, best first, with {between} between them."
        example = (self.separator or " ").join(("71", "108", "339")[: self.k])
        return ExpectedColumns("text", "one", rules=(rule,), example=(example,), empty=True)

    def read_cell(self, cell: Any) -> list[str]:
        """The items, each once, best first."""
        return list(dict.fromkeys(split_cell(cell, self.separator)))

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """The most frequent items."""
        items, counts = np.unique(
            [item for label in labels.tolist() for item in label], return_counts=True
        )
        frequent = items[np.argsort(-counts, kind="stable")[: self.k]].tolist()
        return [object_array([(self.separator or " ").join(frequent)] * len(labels))]

    @abstractmethod
    def gain(self, hits: list[bool], relevant: int) -> float:
        """Return the score in [0, 1] of a list, from where its hits are."""

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """1 - gain."""
        return np.array(
            [
                1 - self._gain_of(label, guesses)
                for label, guesses in zip(labels.tolist(), predictions.tolist(), strict=True)
            ],
            dtype=np.float64,
        )

    def _gain_of(self, label: list[str], guesses: list[str]) -> float:
        relevant = set(label)
        hits = [guess in relevant for guess in guesses[: self.k]]
        return self.gain(hits, len(relevant)) if any(hits) else 0.0


@dataclass(frozen=True)
class AveragePrecisionAtK(RankedLoss):
    """1 - average precision at k: over the hits among the first k, the mean share of hits so far.

    Examples
    --------
    >>> AveragePrecisionAtK(k=3)(["a", "b c"], ["x a", "b x c"]).round(4).tolist()
    [0.5, 0.1667]
    """

    name: ClassVar[str] = "map_at_k"

    @property
    def explanation(self) -> str:
        """1 - average precision."""
        return f"a list costs 1 minus its average precision at {self.k}"

    def gain(self, hits: list[bool], relevant: int) -> float:
        """The sum of precisions at the hits, as a part of the most possible hits."""
        total = sum(sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit)
        return total / min(relevant, self.k)


@dataclass(frozen=True)
class GainAtK(RankedLoss):
    """1 - normalised discounted cumulative gain at k (NDCG), every relevant item gaining 1.

    Examples
    --------
    >>> GainAtK(k=3)(["a", "b"], ["x a", "b"]).round(4).tolist()
    [0.3691, 0.0]
    """

    name: ClassVar[str] = "ndcg_at_k"

    @property
    def explanation(self) -> str:
        """1 - NDCG."""
        return f"a list costs 1 minus its discounted gain at {self.k}"

    def gain(self, hits: list[bool], relevant: int) -> float:
        """The sum of 1 / log2(1 + place) over hits, as a part of the largest possible."""
        discounts = [
            1 / math.log2(place + 2) for place in range(max(len(hits), min(relevant, self.k)))
        ]
        gained = sum(discount for discount, hit in zip(discounts, hits, strict=False) if hit)
        return min(gained / sum(discounts[: min(relevant, self.k)]), 1.0)


@dataclass(frozen=True)
class ReciprocalRank(RankedLoss):
    """1 - 1 / the place of the first hit.

    Examples
    --------
    >>> ReciprocalRank()(["a", "b"], ["x a", "y"]).tolist()
    [0.5, 1.0]
    """

    name: ClassVar[str] = "reciprocal_rank"

    k: int = 1_000

    @property
    def explanation(self) -> str:
        """1 - 1 / place."""
        return "a list costs 1 minus 1 divided by the place of its first hit"

    def gain(self, hits: list[bool], relevant: int) -> float:
        """1 / the place of the first hit."""
        return 1 / (hits.index(True) + 1)


@dataclass(frozen=True)
class HitAtK(RankedLoss):
    """0 where a relevant item is among the first k, 1 where none is.

    Examples
    --------
    >>> HitAtK(k=1)(["a", "b"], ["x a", "b"]).tolist()
    [1.0, 0.0]
    """

    name: ClassVar[str] = "hit_at_k"
    binary: ClassVar[bool] = True

    @property
    def explanation(self) -> str:
        """Hit or miss."""
        return f"a list costs 0 if a relevant item is among its first {self.k}, and 1 if none is"

    def gain(self, hits: list[bool], relevant: int) -> float:
        """1: there is a hit."""
        return 1.0
