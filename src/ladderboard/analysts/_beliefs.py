"""What an attacker believes about the labels: a base vector, and how much of it is wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Beliefs", "Flip"]

_SURE = 1e-4  # no example is ever believed beyond this
_EXACT = 0.3  # a variance below which a count of examples is known


class Flip(NamedTuple):
    """A set of examples to flip: how many of them are believed wrong, and what that makes likely.

    ``wrong`` is the expected number of wrong ones among them; ``expected`` and ``variance``
    describe how many hard examples the flipped model has wrong; ``share`` is the part of all
    doubt that lies in the set.
    """

    examples: NDArray[np.intp]
    wrong: float
    expected: float
    variance: float
    share: float


class Beliefs:
    """A base vector of predictions and, for each, the doubt: the chance that it is wrong.

    The number of wrong ones in all is known better than the doubts alone would tell, because
    releases speak of it. It is believed normal with ``mean`` and ``variance``; given it, doubts
    are independent but for their sum.
    """

    def __init__(
        self, rng: np.random.Generator, hard: int, votes: NDArray[np.float64] | None = None
    ) -> None:
        self.hard = hard
        self.base = rng.integers(0, 2, hard).astype(np.bool_)
        self.doubt = np.full(hard, 0.5)
        if votes is not None:  # log-odds of the label 1
            self.base = np.where(votes == 0, self.base, votes > 0)
            self.doubt = 1 / (1 + np.exp(np.abs(votes)))
        self._sum = self.mean = float(self.doubt.sum())
        self._spread = self.variance = float((self.doubt * (1 - self.doubt)).sum())

    @property
    def exact(self) -> bool:
        """Whether the number of wrong examples is known."""
        return self.variance < _EXACT

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.base ^ (self.doubt > 0.5)

    def hear(self, wrong: float, blur: float) -> None:
        """Take in what was told about the base itself, with this variance."""
        trust = self.variance / (self.variance + blur) if self.variance + blur else 0.0
        self.mean += trust * (wrong - self.mean)
        self.variance *= 1 - trust

    def settle(self) -> None:
        """Make the doubts agree with the number of wrong examples, moving the doubtful most."""
        room = self.doubt * (1 - self.doubt)
        self.doubt += (self.mean - self.doubt.sum()) * room / max(room.sum(), 1e-300)
        np.clip(self.doubt, _SURE, 1 - _SURE, out=self.doubt)
        self._sum = float(self.doubt.sum())
        self._spread = float((self.doubt * (1 - self.doubt)).sum())

    def flip(self, examples: NDArray[np.intp]) -> Flip:
        """Describe the model that flips these."""
        doubt = self.doubt[examples]
        spread = float((doubt * (1 - doubt)).sum())
        share = min(spread / self._spread, 1.0)
        wrong = float(doubt.sum()) + share * (self.mean - self._sum)
        wrong = min(max(wrong, 0.0), float(len(examples)))
        expected = self.mean + len(examples) - 2 * wrong
        variance = (1 - 2 * share) ** 2 * self.variance + 4 * spread * (1 - share)
        return Flip(examples, wrong, expected, variance, share)

    def learn(self, flip: Flip, wrong: float) -> None:
        """Take in that so many of the flipped examples are believed wrong now."""
        doubt = self.doubt[flip.examples]
        room = doubt * (1 - doubt)
        before, spread = doubt.sum(), room.sum()
        doubt += (wrong - before) * room / max(spread, 1e-300)
        np.clip(doubt, _SURE, 1 - _SURE, out=doubt)
        self.doubt[flip.examples] = doubt
        self._sum += float(doubt.sum() - before)
        self._spread += float((doubt * (1 - doubt)).sum() - spread)

    def accept(self, flip: Flip, mean: float, variance: float) -> None:
        """Make the flipped model the base; it has so many wrong."""
        chosen = flip.examples
        self.base[chosen] ^= True
        before = self.doubt[chosen]
        self.doubt[chosen] = 1 - before
        self._sum += float((1 - 2 * before).sum())
        self.mean, self.variance = mean, max(variance, 0.0)

    def regress(self, flip: Flip, moved: float, left: float) -> float:
        """Return the wrong ones among the flipped, and correct the base, by linear regression.

        The flipped model's wrong examples turned out ``moved`` above what was expected, with
        variance ``left`` remaining.
        """
        if not flip.variance:
            return flip.wrong
        carried = (1 - 2 * flip.share) * self.variance
        inner = (flip.variance - (1 - 2 * flip.share) * carried) / 4
        wrong = flip.wrong + (flip.share * carried - 2 * inner) / flip.variance * moved
        gone = max(1 - left / flip.variance, 0.0)
        self.mean += carried / flip.variance * moved
        self.variance = max(self.variance - carried**2 / flip.variance * gone, 0.0)
        return min(max(wrong, 0.0), float(len(flip.examples)))


def counts(chance: float, most: int) -> NDArray[np.float64]:
    """Return the binomial probabilities of 0 .. ``most``."""
    chance = min(max(chance, 1e-12), 1 - 1e-12)
    number = np.arange(1, most + 1)
    ratios = np.log((most - number + 1) / number) + math.log(chance / (1 - chance))
    logs = np.concatenate(([0.0], np.cumsum(ratios)))
    odds = np.exp(logs - logs.max())
    return odds / odds.sum()
