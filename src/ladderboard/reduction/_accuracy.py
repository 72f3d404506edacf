"""Alpha, and the numbers that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

__all__ = ["COARSEST", "Accuracy"]

COARSEST = Fraction(1, 3)
_DIGITS = 18


@dataclass(frozen=True)
class Accuracy:
    """How accurate answers shall be, as a fraction: comparisons with it must be exact."""

    alpha: Fraction

    @classmethod
    def read(cls, alpha: Any) -> Accuracy:
        """Read alpha, a float as the simplest fraction that it stands for.

        >>> Accuracy.read(1 / 21), Accuracy.read(0.05)
        (Accuracy(alpha=Fraction(1, 21)), Accuracy(alpha=Fraction(1, 20)))
        """
        read = _fraction(alpha)
        if read is None or not 0 < read <= COARSEST:
            raise InvalidSetting(
                "alpha must be a number above 0 and at most 1/3, where one query fits; "
                f"got {_settings.shown(alpha)}."
            )
        return cls(read)

    @property
    def queries(self) -> int:
        """How many queries fit: each may take 3 alpha/2 of a threshold that starts at 1/2."""
        return math.floor(1 / (3 * self.alpha))

    @property
    def rungs(self) -> int:
        """The last classifier's number: so many steps of alpha/2 lead below the threshold."""
        return math.ceil(1 / self.alpha)

    @property
    def classifiers(self) -> int:
        """How many classifiers all queries take at most, which is at most 1/alpha^2."""
        return self.queries * (self.rungs + 1)

    @property
    def most(self) -> Fraction:
        """What a query may take of the threshold."""
        return 3 * self.alpha / 2

    def __str__(self) -> str:
        short = f"{float(self.alpha):.6g}"
        return short if Fraction(short) == self.alpha else str(self.alpha)


def _fraction(alpha: Any) -> Fraction | None:
    """Return the simplest fraction that rounds to this number; None if it is none."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        return None
    if isinstance(alpha, Rational):
        return Fraction(alpha)
    if not math.isfinite(alpha):
        return None
    precise = Fraction(float(alpha))
    kind: Any = type(alpha)  # a float, or one of NumPy's: each rounds in its own way
    for digits in range(1, _DIGITS):
        simple = precise.limit_denominator(10**digits)
        if kind(float(simple)) == alpha:
            return simple
    return precise
