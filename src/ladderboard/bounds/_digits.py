"""Digits: numbers written so that what is printed is still true."""

from __future__ import annotations

import math

__all__ = ["confidence", "down", "up", "up_to"]

_RARE = 1e-4


def up(value: float, digits: int = 4) -> str:
    """Write a number in so many digits, never below itself.

    >>> up(0.12301), up(0.1), up(-0.00251, 2)
    ('0.1231', '0.1', '-0.0025')
    """
    text = f"{value:.{digits}g}"
    if value == 0 or not math.isfinite(value) or float(text) >= value:
        return text
    place = digits - 1 - math.floor(math.log10(abs(value)))
    last = math.floor(value * 10.0**place) + 1
    return f"{last / 10.0**place:.{digits}g}"


def down(value: float, digits: int = 4) -> str:
    """Write a number in so many digits, never above itself.

    >>> down(0.12309), down(-0.12301)
    ('0.123', '-0.1231')
    """
    text = up(-value, digits)
    return text.removeprefix("-") if text.startswith("-") else f"-{text}" if value else "0"


def up_to(value: float, decimals: int) -> str:
    """Write a number with so many decimals, never below itself.

    >>> up_to(0.12301, 3), up_to(0.5, 4)
    ('0.124', '0.5000')
    """
    text = f"{value:.{decimals}f}"
    if float(text) >= value:
        return text
    return f"{(math.floor(value * 10**decimals) + 1) / 10**decimals:.{decimals}f}"


def confidence(beta: float) -> str:
    """Write 1 - beta, never above itself; where that would print as 1, as the difference it is.

    >>> confidence(0.05), confidence(1e-7)
    ('0.95', '1 - 1e-07')
    """
    return f"1 - {up(beta, 3)}" if beta < _RARE else down(1 - beta, 6)
