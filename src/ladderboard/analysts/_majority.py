"""The majority attack: random guesses, and the vote of those that did well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._bits import pack, random_bits, unpack
from ladderboard.analysts._coins import Coins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game

__all__ = ["MajorityAttack"]


@dataclass(frozen=True)
class MajorityAttack(Analyst):
    """Ask random guesses, then the majority vote of those that scored well.

    Parameters
    ----------
    keep
        ``"signed"``: a guess told to be no better than chance votes with its complement, as in the
        appendix of Hardt (2017). ``"better"``: it does not vote, the boosting attack of Blum and
        Hardt (2015).
    easy
        The part of the labels known from the start, as in the other attacks; the guesses are right
        there.

    Notes
    -----
    A guess about which nothing is said cannot vote, so against a ladder the attack soon starves.
    Against ``Exact`` its error is that of ``majority_attack_moments(hard, questions - 1)``, where
    ``hard`` counts the labels that are not easy.

    Examples
    --------
    >>> import ladderboard as lb
    >>> attack = MajorityAttack()
    >>> round(attack.meet(lb.Exact(), n=10_000, questions=1_001, seed=1).bias, 2)
    0.1
    >>> round(attack.meet(lb.Ladder(step=0.01), n=10_000, questions=1_001, seed=1).bias, 2)
    0.01
    """

    name: ClassVar[str] = "majority"

    keep: Literal["signed", "better"] = "signed"
    easy: float = 0.0

    def __post_init__(self) -> None:
        _settings.one_of("keep", self.keep, ("signed", "better"))
        _settings.settle(self, easy=_settings.number("easy", self.easy, at_least=0, at_most=1))

    def world(self, n: int, rng: np.random.Generator) -> Coins:
        """Return coin flips, some of them known."""
        return Coins(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Guess, and vote with the last question."""
        n, easy = game.n, game.known.until
        chance = (n - easy) / 2 / n
        known = unpack(game.known.labels, n)
        votes = np.zeros(n, dtype=np.int64)

        def vote() -> NDArray[np.uint64]:
            chosen = votes >= 0
            chosen[:easy] = known[:easy]
            return pack(chosen)

        game.intend(vote)
        for _ in range(game.questions - 1):
            bits = unpack(random_bits(game.rng, n), n)
            bits[:easy] = known[:easy]
            score = game.ask(pack(bits)).score
            if score is None:
                continue
            if score < chance:
                votes += bits
                votes -= ~bits
            elif self.keep == "signed":
                votes -= bits
                votes += ~bits
        game.ask(vote())
