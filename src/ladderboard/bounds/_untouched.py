"""A sample that nobody has asked before: the interval of a final ranking.

Proof: docs/explanation/certificates.md, "A sample that nobody has asked".
"""

from __future__ import annotations

import math

from ladderboard import _settings
from ladderboard.bounds._kl import kl_lower, kl_upper

__all__ = ["untouched"]


def untouched(
    n: int, risk: float, *, among: int = 1, beta: float = 0.05, weighted: bool = False
) -> tuple[float, float]:
    """Return where the true risk of a model lies that was chosen without this sample.

    Parameters
    ----------
    n
        Examples in the sample, or groups, or what weighted ones are worth.
    risk
        The model's mean loss on it.
    among
        Of how many models the intervals shall hold, all at once.
    beta
        The probability with which any of them may be false.
    weighted
        Whether examples have weights; then there is Hoeffding's form only.

    Examples
    --------
    >>> low, high = untouched(10_000, 0.1, among=50)
    >>> print(f"[{low:.3f}, {high:.3f}]")
    [0.089, 0.112]
    """
    n = _settings.whole("n", n, at_least=1)
    among = _settings.whole("among", among, at_least=1)
    risk = _settings.number("risk", risk, at_least=0, at_most=1)
    beta = _settings.number("beta", beta, above=0, below=1)
    nats = math.log(2 * among / beta) * (1 + 1e-12)
    if weighted:
        half = math.sqrt(nats / (2 * n))
        return max(risk - half, 0.0), min(risk + half, 1.0)
    return kl_lower(risk, nats / n), kl_upper(risk, nats / n)
