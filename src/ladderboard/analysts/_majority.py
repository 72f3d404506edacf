"""Majority attacks, on two classes and on several: random guesses, and a vote of the good ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._worlds import (
    CoinFlipWorld,
    UniformLabelsWorld,
    pack_bits,
    random_bits,
    unpack_bits,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game

_MAX_CLASSES = 10_000


@dataclass(frozen=True)
class MajorityAttack(Analyst):
    """Ask random guesses, then the majority vote of those that scored well.

    Parameters
    ----------
    keep
        ``"signed"``: a guess that scores no better than chance votes with its complement, as in the
        appendix of Hardt (2017). ``"better"``: it does not vote, as in the boosting attack of Blum
        and Hardt (2015).
    easy
        The share of the labels known from the start; the guesses are right there.

    Notes
    -----
    A guess without a score cannot vote, so against a ladder the attack soon learns nothing.
    Against ``Exact`` its error is that of ``majority_attack_moments(hard, questions - 1)``, where
    ``hard`` counts the labels that are not easy.

    Examples
    --------
    >>> import ladderboard as lb
    >>> attack = MajorityAttack()
    >>> round(attack.play_against(lb.Exact(), n=10_000, questions=1_001, seed=1).bias, 2)
    0.1
    >>> round(attack.play_against(lb.Ladder(step=0.01), n=10_000, questions=1_001, seed=1).bias, 2)
    0.01
    """

    name: ClassVar[str] = "majority"

    keep: Literal["signed", "better"] = "signed"
    easy: float = 0.0

    def __post_init__(self) -> None:
        _settings.choice("keep", self.keep, ("signed", "better"))
        _settings.set_frozen(self, easy=_settings.number("easy", self.easy, at_least=0, at_most=1))

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Guess, then ask about the vote."""
        n, easy = game.n, game.known.size
        chance = (n - easy) / 2 / n
        known = unpack_bits(game.known.labels, n)
        votes = np.zeros(n, dtype=np.int64)

        def vote() -> NDArray[np.uint64]:
            chosen = votes >= 0
            chosen[:easy] = known[:easy]
            return pack_bits(chosen)

        game.register_final_model(vote)
        for _ in range(game.questions - 1):
            bits = unpack_bits(random_bits(game.rng, n), n)
            bits[:easy] = known[:easy]
            score = game.ask(pack_bits(bits)).score
            if score is None:
                continue
            if score < chance:
                votes += bits
                votes -= ~bits
            elif self.keep == "signed":
                votes -= bits
                votes += ~bits
        game.ask(vote())


@dataclass(frozen=True)
class MulticlassAttack(Analyst):
    """Ask random labels, then for each example the label with the greatest summed log-odds.

    Parameters
    ----------
    classes
        How many labels there are.
    vote
        ``"odds"``: every guess with a score votes for the labels it chose, with the log-odds that
        the score gives them (against them, if it did worse than chance). ``"plurality"``: guesses
        that score better than chance have one vote for each label they chose, the others none;
        for comparison.
    easy
        The share of the labels known from the start; the guesses are right there.

    Notes
    -----
    A guess that is right on a share s of the hard examples was right on any one of them with
    probability s, so the posterior of a label there is the product over the guesses that chose it
    of s (m - 1) / (1 - s), m being the number of classes. Against exact scores of K guesses on h
    hard examples the vote is right on a share of them close to the integral of
    ``phi(x - d) Phi(x)**(m - 1)`` with ``d = sqrt(K m / ((m - 1) h))``. With two classes that is
    ``Phi(sqrt(K / h))``; the majority attack, which votes with signs, has ``2 K / pi`` for K.

    Examples
    --------
    >>> import ladderboard as lb
    >>> attack = MulticlassAttack(classes=10)
    >>> round(attack.play_against(lb.Exact(), n=1_000, questions=1_001, seed=1).bias, 2)
    0.26
    >>> round(attack.play_against(lb.Ladder(step=0.03), n=1_000, questions=1_001, seed=1).bias, 2)
    0.03

    References
    ----------
    Feldman, Frostig, Hardt, "The advantages of multiple classes for reducing overfitting from test
    set reuse", 2019.
    """

    name: ClassVar[str] = "multiclass"

    classes: int = 10
    vote: Literal["odds", "plurality"] = "odds"
    easy: float = 0.0

    def __post_init__(self) -> None:
        _settings.choice("vote", self.vote, ("odds", "plurality"))
        _settings.set_frozen(
            self,
            classes=_settings.integer("classes", self.classes, at_least=2, at_most=_MAX_CLASSES),
            easy=_settings.number("easy", self.easy, at_least=0, at_most=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> UniformLabelsWorld:
        """Return uniform labels, some of them known."""
        return UniformLabelsWorld(n, rng, classes=self.classes, easy=self.easy)

    def play(self, game: Game) -> None:
        """Guess, then ask about the vote."""
        n, easy = game.n, game.known.size
        hard = n - easy
        examples = np.arange(hard)
        model = game.known.labels.copy()
        votes = np.zeros((hard, self.classes))
        for _ in range(game.questions - 1):
            guess = game.rng.integers(0, self.classes, hard)
            model[easy:] = guess
            score = game.ask(model).score
            if score is not None and hard:
                votes[examples, guess] += self._weight(1 - score * n / hard, hard)
        # Break ties at random.
        votes += 1e-9 * game.rng.random(votes.shape)
        model[easy:] = votes.argmax(axis=1)
        game.ask(model)

    def _weight(self, right: float, hard: int) -> float:
        """Return the vote of a guess that is right on this share of the hard examples."""
        others = self.classes - 1
        if self.vote == "plurality":
            return float(right > 1 / self.classes)
        # Scores may be rounded or noisy: no guess is surer than one doubtful example allows.
        edge = 1 / (self.classes * (hard + 1))
        right = min(max(right, edge), 1 - edge)
        return math.log(right * others / (1 - right))
