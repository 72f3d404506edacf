"""The sybil attack: many accounts, a ladder each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._coins import Coins
from ladderboard.analysts._easy_set import EasySet
from ladderboard.analysts._guessing import Guessing
from ladderboard.analysts._rule import Rule
from ladderboard.analysts._shifted import FEW, ask_again, listen
from ladderboard.analysts._walking import Walking

if TYPE_CHECKING:
    import numpy as np

    from ladderboard.analysts._game import Game

__all__ = ["SybilAttack"]


@dataclass(frozen=True)
class SybilAttack(Analyst):
    """Register many accounts, take the first release of each, then be patient on every ladder.

    A ladder starts from the worst risk, so whoever asks first is told. With a ladder for every
    account, m accounts are m answers, as good as the noise on the release allows: the majority
    attack over accounts. The questions left are spent as the shifted majority attack spends them,
    with a fresh set of rungs on every ladder.

    Parameters
    ----------
    accounts
        How many; never more than there are questions to ask.
    easy
        The part of the labels that is known, in [0, 1).

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.Ladder(step=0.01)
    >>> one = SybilAttack(accounts=1).meet(ladder, n=10_000, questions=1_000, seed=1)
    >>> many = SybilAttack(accounts=500).meet(ladder, n=10_000, questions=1_000, seed=1)
    >>> round(one.bias, 2), round(many.bias, 2)
    (0.05, 0.07)
    """

    name: ClassVar[str] = "sybil"

    accounts: int = 100
    easy: float = 0.5

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            accounts=_settings.whole("accounts", self.accounts, at_least=1, at_most=2**62),
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> Coins:
        """Return coin flips, some of them known."""
        return Coins(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Open every account, climb every ladder, and ask the vote last."""
        easy = EasySet(game.known, game.n)
        rule = Rule.of(game.mechanism, game.n)
        walking = Walking(game, easy, rule)
        tactic: Walking | Guessing = walking
        if game.questions < FEW:
            easy.ask(game, tactic.vote(), 0)
            return
        values = [walking.open()]
        if ask_again(game, easy, walking).score is not None:
            # Told of every model, one account hears as much as many.
            easy.ask(game, listen(game, easy, walking).vote(), 0)
            return
        count = min(self.accounts, game.remaining)
        if rule.compare or rule.drowns:
            tactic = Guessing(game, easy, rule)
        values += [tactic.open(account) for account in range(1, count)]
        if not rule.compare and isinstance(tactic, Guessing):
            tactic = Walking(game, easy, rule, votes=tactic.votes)
        spare = game.remaining - 1
        for account, value in enumerate(values):
            keep = 1 + spare * (count - 1 - account) // count
            tactic.climb(value, account=account, keep=keep)
        easy.ask(game, tactic.vote(), 0)
