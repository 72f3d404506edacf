"""Releases: what is said after a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Release", "Releases"]


class Release(NamedTuple):
    """What is said after a question.

    ``value`` is the leaderboard's estimate after it (the paper's R_t, the best so far), ``score``
    what is said about this very model (None if nothing is), ``improved`` whether the value went
    down, ``question`` its number, from 1.
    """

    value: float | None
    score: float | None
    improved: bool
    question: int


@dataclass(frozen=True, eq=False)
class Releases:
    """Many releases as arrays, in the order of their questions; None is written as NaN."""

    value: NDArray[np.float64]
    score: NDArray[np.float64]
    improved: NDArray[np.bool_]
    question: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.question)

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> Releases: ...
    def __getitem__(self, index: int | slice) -> Release | Releases:
        if isinstance(index, slice):
            return Releases(
                self.value[index], self.score[index], self.improved[index], self.question[index]
            )
        value, score = float(self.value[index]), float(self.score[index])
        return Release(
            None if np.isnan(value) else value,
            None if np.isnan(score) else score,
            bool(self.improved[index]),
            int(self.question[index]),
        )

    def __iter__(self) -> Iterator[Release]:
        return (self[index] for index in range(len(self)))
