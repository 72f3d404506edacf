"""The easy set: labels that the analyst knows, and pays with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.analysts._bits import pack, unpack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ladderboard.analysts._coins import Easy
    from ladderboard.analysts._game import Game
    from ladderboard.mechanisms import Release

__all__ = ["EasySet"]


class EasySet:
    """The first ``size`` examples, whose labels are known.

    A model that is wrong on a chosen number of them has its risk shifted by as much.
    """

    def __init__(self, known: Easy, n: int) -> None:
        self.size = known.until
        self._labels = unpack(known.labels, n)

    def clip(self, wrong: float) -> int:
        """Return the nearest number of easy examples that a model can be wrong on."""
        return min(max(round(wrong), 0), self.size)

    def ask(self, game: Game, hard: NDArray[np.bool_], wrong: int, *, account: int = 0) -> Release:
        """Ask about a model: these predictions on the hard examples, so many easy ones wrong."""
        return game.ask(self.model(hard, wrong), account=account)

    def model(self, hard: NDArray[np.bool_], wrong: int) -> NDArray[np.uint64]:
        """Return the model, packed."""
        model = self._labels.copy()
        model[:wrong] ^= True
        model[self.size :] = hard
        return pack(model)
