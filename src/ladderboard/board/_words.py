"""How times and numbers are said."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.board._rules_parts import Display
    from ladderboard.bounds import Certificate

__all__ = ["displayed", "metric_of", "moment", "size_text", "tell_bound"]

_DIGITS = 12  # 1 - 0.1 is 0.9


@lru_cache(maxsize=4096)  # pages say the same ones over and over
def moment(time: int) -> str:
    """Return a time as the API and messages say it.

    >>> moment(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def size_text(size: int) -> str:
    """Return a number of bytes for people.

    >>> [size_text(each) for each in (900, 20_000, 10_000_000, 2**30)]
    ['900 bytes', '20 kB', '10 MB', '1.07 GB']
    """
    for name, unit in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def displayed(display: Display, loss: float | None) -> float | None:
    """Return a loss as the metric that people are shown, with as many digits."""
    return None if loss is None else round(display.shown(loss), display.digits)


def metric_of(display: Display, loss: float | None) -> float | None:
    """Return a loss in the board's metric, with all its digits.

    >>> from ladderboard.board import Display
    >>> metric_of(Display("accuracy", shown_as="complement"), 0.1)
    0.9
    """
    return None if loss is None else round(display.shown(loss), _DIGITS)


def tell_bound(display: Display, found: Certificate, released: float | None) -> dict[str, Any]:
    """Return a certificate in the board's metric: an interval for the best model's true value.

    ``released`` is the loss that the certificate is about. ``low`` and ``high`` are None where
    nothing was released; ``loss`` is the certificate as it was computed.
    """
    low, high = found.low, found.high
    ends: tuple[float | None, float | None] = (None, None)
    if not found.differences or released is not None:
        centre = released if found.differences and released is not None else 0.0
        least, most = found.span
        first, last = max(centre + low, least), min(centre + high, most)
        pair = display.shown(first), display.shown(last)
        ends = min(pair), max(pair)
    return {
        "low": ends[0],
        "high": ends[1],
        "beta": found.beta,
        "vacuous": found.vacuous,
        "theorem": found.theorem,
        "assumptions": list(found.assumptions),
        "loss": found.describe(),
    }
