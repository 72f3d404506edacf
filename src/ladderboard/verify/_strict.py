"""Strict checks of untrusted values: exact types and exact keys."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ladderboard.ledger import encode

if TYPE_CHECKING:
    from collections.abc import Collection


def same_encoding(first: Any, second: Any) -> bool:
    """Return whether two values have the same encoding: in Python 1, 1.0 and True are equal.

    >>> same_encoding({"a": 1}, {"a": 1}), same_encoding([1], [1.0]), same_encoding(0, False)
    (True, False, False)
    """
    return encode(first) == encode(second)


def is_int(value: Any, *, at_least: int = 0) -> bool:
    """Return whether a value is an integer (and not a bool) of at least ``at_least``."""
    return type(value) is int and value >= at_least


def is_release_value(value: Any) -> bool:
    """Return whether a value can be a release or a score: None or a finite float.

    >>> is_release_value(None), is_release_value(0.5), is_release_value(1)
    (True, True, False)
    """
    return value is None or (type(value) is float and math.isfinite(value))


def has_exact_keys(content: Any, names: Collection[str]) -> bool:
    """Return whether a value is a dict with exactly these keys."""
    return type(content) is dict and content.keys() == set(names)
