"""A vote: the majority attack on a general estimator, once."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard._version import __version__
from ladderboard.arena._lineup import LINEUP
from ladderboard.arena._row import row_seed
from ladderboard.errors import BudgetSpent
from ladderboard.reduction import GeneralEstimator
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from ladderboard.mechanisms import Mechanism

__all__ = ["Vote", "VoteGame", "alpha_of", "voter"]

_MOST_QUESTIONS = 10**6  # the last of the calibrated settings
# Seconds a classifier, as measured on one core: mechanisms that see a risk, or every loss.
_BY_RISK, _BY_LOSSES = 2.8e-5, 1.4e-4


def alpha_of(k: int) -> Fraction:
    """Return the accuracy at which k guesses and their vote fit."""
    return Fraction(1, 3 * (k + 1))


def voter(label: str, n: int, k: int) -> Mechanism:
    """Return a mechanism of the line-up with settings for all classifiers k guesses may take."""
    return LINEUP[label](n, min(math.floor(1 / alpha_of(k) ** 2), _MOST_QUESTIONS))


@dataclass(frozen=True)
class Vote:
    """One game, with all that is needed to run it again.

    ``answered`` is how many of the k guesses were answered before the threshold was spent,
    ``classifiers`` how many the mechanism was given, ``bias`` how much better the vote looks on the
    holdout than it is, ``last_error`` how far the answer about the vote is from the truth, None if
    there was no answer, ``farthest`` the largest distance of an answer from its sample mean.
    """

    mechanism: str
    n: int
    k: int
    repetition: int
    seed: int
    version: str
    answered: int
    classifiers: int
    bias: float
    last_error: float | None
    farthest: float


@dataclass(frozen=True)
class VoteGame:
    """One repetition of the attack against a mechanism of the line-up."""

    label: str
    n: int
    k: int
    repetition: int
    seed: int

    @property
    def weight(self) -> float:
        """About how many seconds it takes, if the threshold lasts."""
        # A guess has mean 1/2, so that half of the rungs are climbed.
        classifiers = (self.k + 1) / (2 * float(alpha_of(self.k)))
        slow = voter(self.label, self.n, self.k).needs == "losses"
        return classifiers * (_BY_LOSSES if slow else _BY_RISK)

    def describe(self) -> dict[str, Any]:
        """Who is asked, how much, with which seed."""
        settings = voter(self.label, self.n, self.k).describe()
        return {"kind": "vote", **vars(self), "mechanism": settings}

    def accepts(self, result: Any) -> bool:
        """Tell whether a kept vote belongs to this game and holds numbers."""
        try:
            vote = Vote(**result)
            mine = (self.label, self.n, self.k, self.repetition)
            told = 0.0 if vote.last_error is None else vote.last_error
            return (vote.mechanism, vote.n, vote.k, vote.repetition) == mine and all(
                type(each) in (int, float) and math.isfinite(each)
                for each in (vote.answered, vote.classifiers, vote.bias, told, vote.farthest)
            )
        except TypeError:
            return False

    def run(self, threads: int | None) -> dict[str, Any]:
        """Guess, vote, and ask about the vote."""
        own = row_seed(self.seed, "vote", self.n, self.k, self.repetition)
        # Neither the labels nor the guesses depend on the mechanism.
        rng = np.random.default_rng(own)
        asked = _Asked(voter(self.label, self.n, self.k), self.n, self.k, own)
        labels = _coins(rng, self.n)
        votes = np.zeros(self.n, dtype=np.int64)
        answered = 0
        for _ in range(self.k):
            guess = _coins(rng, self.n)
            answer = asked.about(guess != labels)
            if answer is None:
                break
            answered += 1
            # As MajorityAttack with keep="signed".
            votes += np.where(guess == (answer < 0.5), 1, -1)
        wrong = (votes >= 0) != labels
        last = asked.about(wrong)
        return asdict(
            Vote(
                mechanism=self.label,
                n=self.n,
                k=self.k,
                repetition=self.repetition,
                seed=own,
                version=__version__,
                answered=answered,
                classifiers=asked.estimator.classifiers,
                bias=0.5 - int(wrong.sum()) / self.n,
                # Labels are coins, so the true mean is 1/2 whatever the vote.
                last_error=None if last is None else abs(last - 0.5),
                farthest=asked.farthest,
            )
        )


class _Asked:
    """An estimator, and how far its answers were from the sample means."""

    def __init__(self, mechanism: Mechanism, n: int, k: int, seed: int) -> None:
        tape = Tape(seed=seed)
        self.estimator = GeneralEstimator(mechanism, n=n, alpha=alpha_of(k), tape=tape)
        self.farthest = 0.0

    def about(self, wrong: Any) -> float | None:
        """Return the answer to a query of zeros and ones, or None if the threshold is spent."""
        try:
            answer = self.estimator.ask(wrong.astype(float)).value
        except BudgetSpent:
            return None
        self.farthest = max(self.farthest, abs(answer - int(wrong.sum()) / len(wrong)))
        return answer


def _coins(rng: np.random.Generator, n: int) -> Any:
    return rng.integers(0, 2, n, dtype=np.uint8).astype(bool)
