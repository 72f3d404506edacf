"""The prices of a gate's looks: weights over all looks and the verdicts seen before them.

Proof that the weights add up to at most 1: docs/explanation/gate.md, "The price of a look".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import log_binomial

if TYPE_CHECKING:
    from collections.abc import Sequence

# Shares of the weight: for the first looks and for all looks while nothing was proven; for looks
# after verdicts, half for the declared number of looks and half for any number.
_FIRST, _ALL, _AFTER = 0.35, 0.4, 0.25
_FIRST_LOOKS = 10
MOST_VERDICTS = 3  # better, not worse, worse


@dataclass(frozen=True)
class LookPrices:
    """The price of every look of a gate, in nats.

    A look is cheap if it is among the first, or if all looks before it said "cannot tell".

    Parameters
    ----------
    looks
        The declared number of looks.

    Examples
    --------
    >>> prices = LookPrices(200)
    >>> [round(prices.nats(look), 1) for look in (1, 10, 11, 200)]
    [3.3, 3.3, 6.2, 6.2]
    >>> round(prices.nats(5, [1]), 1), round(prices.nats(200, [1]), 1)
    (7.6, 12.7)
    """

    looks: int

    def nats(self, look: int, verdicts: Sequence[int] = (), *, lost: int = 0) -> float:
        """Return -ln of the weight of a look.

        Parameters
        ----------
        look
            Its number, from 1.
        verdicts
            For every earlier look that said more than "cannot tell", how many different verdicts
            it could have given: 1 for "better" alone, 2 with "not worse".
        lost
            How many earlier looks have an unknown outcome, because an old copy was restored.
        """
        if not len(verdicts) + lost < look <= self.looks:
            raise InvalidSetting(
                f"look must be from {len(verdicts) + lost + 1} to {self.looks}; got {look}."
            )
        return max(
            self._nats(look, [*verdicts, *[MOST_VERDICTS] * unknown]) for unknown in range(lost + 1)
        )

    def largest(self, looks: int, verdicts: Sequence[int], *, lost: int = 0) -> float:
        """Return a bound on the price of everything that was seen of the looks, at any time.

        ``looks`` is how many were taken, including those that were lost.
        """
        look = min(looks + 1, self.looks)
        seen = [*verdicts, *[MOST_VERDICTS] * lost]
        return max(self._nats(look, seen[:count]) for count in range(min(len(seen), look - 1) + 1))

    def _nats(self, look: int, verdicts: Sequence[int]) -> float:
        looks, count = self.looks, len(verdicts)
        if looks == 1:
            return 0.0
        if not count:
            first = min(_FIRST_LOOKS, looks)
            return -math.log(_ALL / looks + (_FIRST / first if look <= first else 0))
        declared = log_binomial(looks, count + 1)
        anytime = math.log(look * (look + 1)) + log_binomial(look - 1, count)
        return (
            math.log(2 * count * (count + 1) / _AFTER)
            + sum(math.log(options) for options in verdicts)
            + min(declared, anytime)
            - math.log1p(math.exp(-abs(declared - anytime)))
        )
