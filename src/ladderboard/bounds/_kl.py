"""The binary relative entropy and its inverses: how far a mean may lie from its sample's."""

from __future__ import annotations

import math

__all__ = ["kl", "kl_lower", "kl_upper"]

_HALVINGS = 200  # more than a double has bits, between any two


def kl(q: float, p: float) -> float:
    """Return kl(q || p) of two coins, in nats.

    >>> round(kl(0.5, 0.25), 4)
    0.1438
    """
    total = 0.0
    for a, b in ((q, p), (1 - q, 1 - p)):
        if a > 0:
            if b <= 0:
                return math.inf
            total += a * math.log(a / b)
    return max(total, 0.0)


def kl_upper(q: float, nats: float) -> float:
    """Return the largest p with kl(q || p) <= nats, rounded up.

    >>> round(kl_upper(0.05, 0.005), 4)
    0.0748
    """
    inside, outside = q, 1.0
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if not inside < middle < outside:
            break
        if kl(q, middle) <= nats:
            inside = middle
        else:
            outside = middle
    return outside


def kl_lower(q: float, nats: float) -> float:
    """Return the least p with kl(q || p) <= nats, rounded down.

    >>> round(kl_lower(0.05, 0.005), 4)
    0.0311
    """
    outside, inside = 0.0, q
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if not outside < middle < inside:
            break
        if kl(q, middle) <= nats:
            inside = middle
        else:
            outside = middle
    return outside
