"""Values that came from somebody: of their own type, and nothing beside what is documented."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ladderboard.ledger import encode

if TYPE_CHECKING:
    from collections.abc import Collection


def same(one: Any, other: Any) -> bool:
    """Return whether two values have one canonical form: to Python 1, 1.0 and True are equal.

    >>> same({"a": 1}, {"a": 1}), same([1], [1.0]), same(0, False)
    (True, False, False)
    """
    return encode(one) == encode(other)


def is_whole(value: Any, *, at_least: int = 0) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return type(value) is int and value >= at_least


def tells_value(value: Any) -> bool:
    """Return whether a value may stand for a release or a score: a finite number, or none.

    >>> tells_value(None), tells_value(0.5), tells_value(1), tells_value(float("inf"))
    (True, True, False, False)
    """
    return value is None or (type(value) is float and math.isfinite(value))


def has(content: Any, names: Collection[str]) -> bool:
    """Return whether a value is a map of these names, and of no other."""
    return type(content) is dict and content.keys() == set(names)
