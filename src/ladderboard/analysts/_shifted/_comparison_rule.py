"""What an attacker knows in advance: how the mechanism compares, and some easy labels."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.analysts._worlds import pack_bits, unpack_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._worlds import PackedKnownLabels
    from ladderboard.mechanisms import Mechanism, Release

_MAX_READABLE_BLUR = 0.5  # examples, squared
_MIN_CHANCE = 1e-9
_TINY = 1e-300

_LENGTHS = ("step", "fresh", "standing", "release", "grid")
_ROOT_2PI = math.sqrt(2 * math.pi)
_STANDARD = NormalDist()
_LEAST = 1e-300


def normal_density(x: float) -> float:
    """Return the standard normal density."""
    return math.exp(-x * x / 2) / _ROOT_2PI


def normal_cdf(x: float) -> float:
    """Return P(Z < x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def upper_quantile(chance: float) -> float:
    """Return the z that Z exceeds with this chance."""
    return -_STANDARD.inv_cdf(chance)


def upper_tail_mean(z: float) -> float:
    """Return E[Z | Z > z]."""
    return normal_density(z) / max(normal_cdf(-z), _LEAST)


def truncated_mean(low: float, high: float) -> float:
    """Return E[Z | low < Z < high], or the nearer end if the interval has almost no probability."""
    chance = normal_cdf(high) - normal_cdf(low)
    if chance < 1e-12:
        return low if abs(low) < abs(high) else high
    return (normal_density(low) - normal_density(high)) / chance


def normal_cdf_array(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(Z < x) for an array."""
    chances: NDArray[np.float64] = 0.5 * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2))
    return chances


class ComparisonRule(NamedTuple):
    """The public settings of a mechanism, counted in examples: a risk of 1/n is 1.

    ``step`` is the margin that a model must win by, ``fresh`` the standard deviation of the noise
    drawn for one comparison, ``standing`` that of the noise kept until the ladder moves,
    ``release`` that of the noise on a released value, ``grid`` the distance between two values that
    can be released. ``by_difference``: the step is this many times the square root of the number of
    examples on which the model and the leader differ, as in the parameter-free Ladder, and the
    comparison is with the leader's true losses, not its released value.
    """

    step: float = 0.0
    fresh: float = 0.0
    standing: float = 0.0
    release: float = 0.0
    grid: float = 0.0
    by_difference: float = 0.0

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism, n: int) -> ComparisonRule:
        """Return the rule of a mechanism on n examples."""
        settings = mechanism.comparison(n)
        return cls(
            step=n * settings.step,
            fresh=n * settings.compare_noise,
            standing=n * settings.standing_noise,
            release=n * settings.release_noise,
            grid=n * settings.grid,
            by_difference=settings.standard_errors,
        )

    def scaled(self, factor: float) -> ComparisonRule:
        """Return the rule in other units."""
        lengths = {name: factor * getattr(self, name) for name in _LENGTHS}
        return self._replace(**lengths)

    def margin(self, difference: int) -> float:
        """Return the margin for a model that differs from the best on this many examples."""
        return self.by_difference * math.sqrt(difference) if self.by_difference else self.step

    @property
    def compare(self) -> float:
        """The standard deviation of all noise in one comparison."""
        return math.hypot(self.fresh, self.standing)

    @property
    def blur(self) -> float:
        """The variance of a released value around the risk; a grid of one example adds none."""
        return self.release**2 + (self.grid**2 / 12 if self.grid > 1.001 else 0.0)

    def crossing_odds(self, distance: float, deviation: float) -> tuple[float, float]:
        """Return the chance that a guess crosses, and its mean luck times that chance.

        It is expected ``distance`` examples above the ladder's value, and luck is how many standard
        deviations fewer examples are wrong.
        """
        total = math.hypot(deviation, self.compare) or _TINY
        z = -(distance + self.step) / total
        return normal_cdf(z), deviation / total * normal_density(z)

    def luck_if_silent(self, distance: float, deviation: float) -> float:
        """Return the mean luck of a guess that did not cross."""
        chance, luck = self.crossing_odds(distance, deviation)
        return -luck / max(1 - chance, _MIN_CHANCE)

    def luck_if_crossed(self, distance: float, deviation: float) -> float:
        """Return the mean luck of a guess that crossed, and whose value is not released."""
        chance, luck = self.crossing_odds(distance, deviation)
        return luck / chance if chance > _MIN_CHANCE else -(distance + self.step) / deviation

    def luck_if_released(self, distance: float, deviation: float, fallen: float) -> float:
        """Return the mean luck of a guess that lowered the ladder's value by ``fallen`` examples.

        Given the released value, luck is normal; that the guess crossed tilts it.
        """
        variance = deviation * deviation
        share = variance / (variance + self.blur)
        mean, left = (distance + fallen) * share / deviation, math.sqrt(1 - share)
        if not left:  # the release shows it
            return mean
        return mean + left * self.luck_if_crossed(distance - deviation * mean, deviation * left)

    @property
    def hides_few_examples(self) -> bool:
        """Whether releases are too blurred to show a change of a few examples."""
        return self.blur > _MAX_READABLE_BLUR


class RiskShifter:
    """Shifts a model's risk by being wrong on a chosen number of easy examples.

    The easy examples are the first ``size``, whose labels are known.
    """

    def __init__(self, known: PackedKnownLabels, n: int) -> None:
        self.size = known.size
        self._labels = unpack_bits(known.labels, n)

    def clip(self, wrong: float) -> int:
        """Return the nearest number of easy examples that a model can be wrong on."""
        return min(max(round(wrong), 0), self.size)

    def ask(self, game: Game, hard: NDArray[np.bool_], wrong: int, *, account: int = 0) -> Release:
        """Ask about a model: these predictions on hard examples, ``wrong`` easy mistakes."""
        return game.ask(self.model(hard, wrong), account=account)

    def model(self, hard: NDArray[np.bool_], wrong: int) -> NDArray[np.uint64]:
        """Return the packed model with these hard predictions and ``wrong`` easy mistakes."""
        model = self._labels.copy()
        model[:wrong] ^= True
        model[self.size :] = hard
        return pack_bits(model)
