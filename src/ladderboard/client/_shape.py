"""Shapes: what a server said, as the dataclass that describes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ladderboard.bounds import Certificate

__all__ = ["read_shape"]

T = TypeVar("T")
_KEPT = "said"  # where a shape keeps all of it, as it came
_OURS = "certify"  # what a guard's reply has, and no server says


def read_shape(shape: Callable[..., T], said: Any) -> T:
    """Return what was said in a shape; TypeError or ValueError where it is of another.

    Fields that the shape does not have are left out: a server may be newer than we are. Those with
    a default may be missing.
    """
    if not isinstance(said, dict):
        raise TypeError("an object was expected")
    found: dict[str, Any] = {}
    for name, kind, needed in _fields(shape):
        if name == _KEPT:
            found[name] = said
        elif name in said:
            found[name] = _read(kind, said[name])
        elif needed:
            raise ValueError(f"{name} is missing")
    return shape(**found)


@cache
def _fields(shape: Any) -> list[tuple[str, Any, bool]]:
    # A guard's reply names its types for checkers alone.
    hints = get_type_hints(shape, localns={"Callable": Callable, "Certificate": Certificate})
    return [
        (each.name, hints[each.name], each.default is MISSING and each.default_factory is MISSING)
        for each in fields(shape)
        if each.name != _OURS
    ]


def _read(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return None if value is None else _read(inner, value)
    if origin is tuple:
        return tuple(_read(get_args(kind)[0], each) for each in _exactly(list, value))
    if isinstance(kind, type) and is_dataclass(kind) and kind is not Certificate:
        return read_shape(kind, value)
    written, make = _PLAIN.get(kind, (origin or kind, None))
    value = _exactly(written, value)
    return value if make is None else make(value)


# How a value is written in JSON, and what makes it of that.
_PLAIN: dict[Any, tuple[Any, Callable[[Any], Any] | None]] = {
    datetime: (str, datetime.fromisoformat),
    Certificate: (dict, Certificate.read),
    float: ((int, float), float),
}


def _exactly(kind: Any, value: Any) -> Any:
    """Return a value of a type; a truth is no number here."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError("a value is of another type")
    return value
