"""Laws: the distributions of draws. A law can draw exactly, or fast for simulation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.tape import _samplers

if TYPE_CHECKING:
    from ladderboard.tape._samplers import Stream

# A continuous draw is an integer number of steps of 2^-53, the precision of a double.
_STEPS_PER_UNIT = 1 << 53
# From this sd on, a rounded normal has the variance of the discrete Gaussian to seven digits.
_ROUNDING_IS_EXACT_FROM = 1000


class Law(ABC):
    """The distribution of the number drawn at a slot."""

    dtype: ClassVar[type] = np.int64

    @abstractmethod
    def sample(self, stream: Stream) -> Any:
        """Draw exactly, from a keyed stream."""

    @abstractmethod
    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw ``count`` times from a NumPy generator, with floating-point precision."""


def _check_rational(name: str, value: int | Fraction) -> Fraction:
    # No floats: the law must be the same on every machine, so its scale is exact.
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or value < 0:
        raise InvalidSetting(
            f"{name} must be a whole number or a Fraction, at least 0; "
            f"got {_settings.safe_repr(value)}."
        )
    return Fraction(value)


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """Integers with probability proportional to exp(-|x| / scale); scale 0 is always 0."""

    scale: int | Fraction

    def __post_init__(self) -> None:
        _check_rational("scale", self.scale)

    def sample(self, stream: Stream) -> int:
        """Draw exactly."""
        if self.scale == 0:
            return 0
        return _samplers.discrete_laplace(stream, *self.scale.as_integer_ratio())

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw as the difference of two geometric numbers, floor(scale x exponential)."""
        halves = np.floor(rng.standard_exponential((2, count)) * float(self.scale))
        return (halves[0] - halves[1]).astype(np.int64)


@dataclass(frozen=True)
class DiscreteGaussian(Law):
    """Integers with probability proportional to exp(-x² / (2 sd²)); sd 0 is always 0."""

    sd: int | Fraction

    def __post_init__(self) -> None:
        _check_rational("sd", self.sd)

    def sample(self, stream: Stream) -> int:
        """Draw exactly."""
        if self.sd == 0:
            return 0
        return _samplers.discrete_gaussian(stream, *self.sd.as_integer_ratio())

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Round a normal number; a narrow law, where rounding would show, inverts its CDF."""
        if self.sd == 0:
            return np.zeros(count, dtype=np.int64)
        if self.sd >= _ROUNDING_IS_EXACT_FROM:
            return np.rint(rng.standard_normal(count) * float(self.sd)).astype(np.int64)
        cumulative = _cumulative_probabilities(self.sd)
        return np.searchsorted(cumulative, rng.random(count), side="right") - len(cumulative) // 2


@dataclass(frozen=True)
class CutGaussian(Law):
    """A discrete Gaussian given that it is at most ``limit`` in size, drawn by rejection.

    >>> import numpy as np
    >>> drawn = CutGaussian(1_000, 2_500).simulate(np.random.default_rng(0), 10_000)
    >>> int(abs(drawn).max()) <= 2_500
    True
    """

    sd: int | Fraction
    limit: int

    def __post_init__(self) -> None:
        _check_rational("sd", self.sd)
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < self.sd:
            raise InvalidSetting(
                "limit must be a whole number of at least the standard deviation; "
                f"got {_settings.safe_repr(self.limit)}."
            )

    def sample(self, stream: Stream) -> int:
        """Draw exactly: again and again, until a draw is within the limit."""
        law = DiscreteGaussian(self.sd)
        while abs(drawn := law.sample(stream)) > self.limit:
            pass
        return drawn

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw as ``DiscreteGaussian`` does, and those beyond the limit again."""
        law = DiscreteGaussian(self.sd)
        drawn = law.simulate(rng, count)
        while len(beyond := np.flatnonzero(np.abs(drawn) > self.limit)):
            drawn[beyond] = law.simulate(rng, len(beyond))
        return drawn


@lru_cache(maxsize=64)
def _cumulative_probabilities(sd: int | Fraction) -> np.ndarray[Any, Any]:
    reach = math.ceil(9 * sd) + 1
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (x / float(sd)) ** 2)
    cumulative: np.ndarray[Any, Any] = np.cumsum(mass / mass.sum())
    cumulative[-1] = 1.0
    return cumulative


@dataclass(frozen=True)
class Laplace(Law):
    """The continuous Laplace law with this scale (its standard deviation is sqrt(2) scale)."""

    dtype: ClassVar[type] = np.float64
    scale: float

    def __post_init__(self) -> None:
        _settings.number("scale", self.scale, at_least=0)

    def sample(self, stream: Stream) -> float:
        """Draw a discrete Laplace number of scale 2^53 and scale it down, without logarithms."""
        if self.scale == 0:
            return 0.0
        return _samplers.discrete_laplace(stream, _STEPS_PER_UNIT) / _STEPS_PER_UNIT * self.scale

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw as the difference of two exponential numbers."""
        halves = rng.standard_exponential((2, count))
        return (halves[0] - halves[1]) * self.scale


@dataclass(frozen=True)
class Seed(Law):
    """Thirty-two uniform bytes, for mechanisms that shuffle or resample."""

    dtype: ClassVar[type] = object

    def sample(self, stream: Stream) -> bytes:
        """Take 32 bytes."""
        return stream.take(32)

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Take 32 bytes, ``count`` times."""
        raw = rng.bytes(32 * count)
        drawn = np.empty(count, dtype=object)
        drawn[:] = [raw[32 * i : 32 * i + 32] for i in range(count)]
        return drawn
