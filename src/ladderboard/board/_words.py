"""How times and numbers are said."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ladderboard.board._rules_parts import Display

__all__ = ["displayed", "moment", "size_text"]


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
