"""Numbers as text, rounded so that what is printed is still true."""

from __future__ import annotations

import math

_RARE = 1e-4
_DUST = 1e-9  # of a last digit: what adding and multiplying leave behind


def round_up(value: float, digits: int = 4) -> str:
    """Write a number in so many digits, never below itself.

    >>> round_up(0.12301), round_up(0.1), round_up(-0.00251, 2)
    ('0.1231', '0.1', '-0.0025')
    """
    text = f"{value:.{digits}g}"
    if value == 0 or not math.isfinite(value) or float(text) >= value:
        return text
    place = digits - 1 - math.floor(math.log10(abs(value)))
    last = math.floor(value * 10.0**place) + 1
    return f"{last / 10.0**place:.{digits}g}"


def round_down(value: float, digits: int = 4) -> str:
    """Write a number in so many digits, never above itself.

    >>> round_down(0.12309), round_down(-0.12301)
    ('0.123', '-0.1231')
    """
    text = round_up(-value, digits)
    return text.removeprefix("-") if text.startswith("-") else f"-{text}" if value else "0"


def round_up_to(value: float, decimals: int) -> str:
    """Write a number with so many decimals, never below itself.

    >>> round_up_to(0.12301, 3), round_up_to(0.5, 4)
    ('0.124', '0.5000')
    """
    text = f"{value:.{decimals}f}"
    if float(text) >= value:
        return text
    return f"{(math.floor(value * 10**decimals) + 1) / 10**decimals:.{decimals}f}"


def round_outwards(low: float, high: float, decimals: int) -> tuple[str, str]:
    """Write an interval with so many decimals, never narrower than itself.

    >>> round_outwards(0.12309, 0.45001, 3), round_outwards(-math.inf, 0.1 + 0.2, 1)
    (('0.123', '0.451'), ('-inf', '0.3'))
    """
    scale = 10**decimals
    least = math.floor(low * scale + _DUST) if math.isfinite(low) else low * scale
    most = math.ceil(high * scale - _DUST) if math.isfinite(high) else high * scale
    return f"{least / scale:.{decimals}f}", f"{most / scale:.{decimals}f}"


def format_confidence(beta: float) -> str:
    """Write 1 - beta, never above itself; where that would print as 1, as the difference it is.

    >>> format_confidence(0.05), format_confidence(1e-7)
    ('0.95', '1 - 1e-07')
    """
    return f"1 - {round_up(beta, 3)}" if beta < _RARE else round_down(1 - beta, 6)
