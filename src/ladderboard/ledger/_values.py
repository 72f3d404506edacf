"""What both databases can keep alike; anything else is refused before they see it."""

from __future__ import annotations

from ladderboard.errors import InvalidSetting

__all__ = ["blob", "text", "whole", "wholes"]

_WHOLE = 2**63


def text(value: str) -> str:
    """Return text that UTF-8 can write and that has no NUL, which PostgreSQL cannot keep."""
    try:
        plain = "\0" not in value and (value.isascii() or bool(value.encode()))
    except (UnicodeEncodeError, TypeError, AttributeError):
        plain = False
    if not plain:
        raise InvalidSetting("Text to be kept must be Unicode without NUL and lone surrogates.")
    return value


def whole(value: int) -> int:
    """Return a number of at most 64 bits."""
    if type(value) is not int or not -_WHOLE <= value < _WHOLE:
        raise InvalidSetting("A number to be kept must be whole and of at most 64 bits.")
    return value


def wholes(values: tuple[int, ...]) -> None:
    """Refuse numbers as ``whole`` does, all at once, which is quicker."""
    if set(map(type, values)) != {int} or min(values) < -_WHOLE or max(values) >= _WHOLE:
        raise InvalidSetting("A number to be kept must be whole and of at most 64 bits.")


def blob(value: bytes) -> bytes:
    """Return bytes, and nothing that only looks like them."""
    if type(value) is not bytes:
        raise InvalidSetting(f"What is kept must be bytes, not {type(value).__name__}.")
    return value
