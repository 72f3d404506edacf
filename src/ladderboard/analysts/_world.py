"""Worlds: a distribution and a holdout drawn from it, the score-keeper's side of a game."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["World"]


class World(ABC):
    """A distribution of examples and a holdout of ``n`` drawn from it.

    It says what a model is (a vector of predictions, a number, whatever the analyst and it agree
    on), what it costs on the holdout and what it costs in truth. Only the score-keeper asks it;
    the analyst is given ``known`` and nothing else.
    """

    n: int

    @property
    def known(self) -> Any:
        """What the analyst may know of the holdout from the start."""
        return None

    def read(self, model: Any) -> Any:
        """Return the model as this world looks at it; done once a question, then kept."""
        return model

    @abstractmethod
    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return the model's loss on every example of the holdout."""

    @abstractmethod
    def true_risk(self, model: Any) -> float:
        """Return the model's risk on the distribution, R_D."""

    def risk(self, model: Any) -> float:
        """Return the model's mean loss on the holdout, R_S."""
        return float(self.losses(model).mean())
