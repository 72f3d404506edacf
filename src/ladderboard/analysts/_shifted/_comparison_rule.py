"""What an attacker knows before it asks: how the mechanism compares, and some easy labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.analysts._shifted._normal import upper_quantile
from ladderboard.analysts._worlds import pack_bits, unpack_bits
from ladderboard.mechanisms import (
    BootstrapLadder,
    Ladder,
    Noisy,
    OneBit,
    ParameterFreeLadder,
    Rounded,
    ShakyLadder,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._worlds import PackedKnownLabels
    from ladderboard.mechanisms import Mechanism, Release

_MAX_READABLE_BLUR = 0.5  # examples, squared


class ComparisonRule(NamedTuple):
    """The public settings of a mechanism, counted in examples: a risk of 1/n is 1.

    ``step`` is what a model must win by, ``fresh`` the standard deviation of the noise drawn for
    one comparison, ``standing`` that of the noise which stays until the next crossing, ``release``
    that of what is told, ``grid`` the distance between two things that can be told.
    ``by_difference``: the step is so many times the root of the number of examples on which the
    model and the leader differ, as the parameter-free Ladder has it, and the leader is compared
    with as it is, whatever was told of it.
    """

    step: float = 0.0
    fresh: float = 0.0
    standing: float = 0.0
    release: float = 0.0
    grid: float = 0.0
    by_difference: float = 0.0

    @classmethod
    def of(cls, mechanism: Mechanism, n: int) -> ComparisonRule:  # noqa: PLR0911 - a line for each
        """Read the rule off a mechanism; one that nobody knows is taken for exact."""
        if isinstance(mechanism, ShakyLadder):
            # A Laplace scale is 1/sqrt(2) of its standard deviation.
            sd = n * (1 if mechanism.law == "gaussian" else math.sqrt(2))
            return cls(
                step=n * mechanism.step,
                fresh=sd * mechanism.compare_noise,
                standing=sd * mechanism.threshold_noise,
                release=sd * mechanism.release_noise,
                grid=n * (mechanism.grid or 0),
            )
        if isinstance(mechanism, Ladder | OneBit):
            grid = getattr(mechanism, "grid", None) or mechanism.step
            return cls(step=n * mechanism.step, grid=n * grid)
        if isinstance(mechanism, ParameterFreeLadder):
            return cls(by_difference=1.0)
        if isinstance(mechanism, BootstrapLadder):
            sure = 1.0 if mechanism.test == "paired" else upper_quantile(mechanism.alpha)
            # A resample of the losses has the standard error of the risk: at most half a root of n.
            return cls(release=math.sqrt(n) / 2 * mechanism.resample, by_difference=sure)
        if isinstance(mechanism, Rounded):
            return cls(grid=n * 10.0**-mechanism.digits)
        if isinstance(mechanism, Noisy):
            return cls(release=n * mechanism.sd)
        return cls(step=n * float(getattr(mechanism, "step", 0.0)))

    def margin(self, difference: int) -> float:
        """Return what a model must win by that differs from the best on so many examples."""
        return self.by_difference * math.sqrt(difference) if self.by_difference else self.step

    @property
    def compare(self) -> float:
        """The standard deviation of all noise in one comparison."""
        return math.hypot(self.fresh, self.standing)

    @property
    def blur(self) -> float:
        """The variance of what is told about the risk; a grid of one example hides nothing."""
        return self.release**2 + (self.grid**2 / 12 if self.grid > 1.001 else 0.0)

    @property
    def drowns(self) -> bool:
        """Whether what is told is so blurred that a few examples drown in it."""
        return self.blur > _MAX_READABLE_BLUR


class RiskShifter:
    """The first ``size`` examples, whose labels are known.

    A model that is wrong on a chosen number of them has its risk shifted by as much.
    """

    def __init__(self, known: PackedKnownLabels, n: int) -> None:
        self.size = known.size
        self._labels = unpack_bits(known.labels, n)

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
        return pack_bits(model)
