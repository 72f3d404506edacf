"""Identity: what a mechanism or an analyst is, down to the code that is not ours."""

from __future__ import annotations

import hashlib
import inspect
import sys
import uuid
from functools import lru_cache, partial
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism

__all__ = ["content", "foreign_module", "identity"]


def foreign_module(thing: Any) -> str | None:
    """Return the module that holds the code of a thing, if it is not one of ours."""
    code = getattr(thing, "function", None) or type(thing)
    module: str = code.__module__
    return None if module.partition(".")[0] == "ladderboard" else module


def identity(thing: Mechanism | Analyst) -> dict[str, Any]:
    """Return class and settings; for code outside of this package also a hash of its source.

    Our own code is told by the build. A module's source is read whole, so that a change in a
    helper beside the class counts too; what it imports from elsewhere does not.
    """
    module = foreign_module(thing)
    found = {"class": f"{type(thing).__module__}:{type(thing).__qualname__}", **_settings(thing)}
    if hasattr(thing, "function"):
        found["function"] = thing.function  # written down to what it closes over
    return found if module is None else {**found, "source": _source(module)}


def content(value: Any) -> Any:  # noqa: PLR0911 - a line for each kind
    """Return what JSON cannot hold as something it can, down to the content.

    Whatever cannot be told apart for certain gets a name that never comes back: then work is done
    again, which costs time, and a result of something else is never taken.
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        found = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return {"array": [str(value.dtype), list(value.shape), found]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (set, frozenset)) and all(isinstance(x, (str, int, float)) for x in value):
        return {"set": sorted(map(repr, value))}
    if isinstance(value, (type, ModuleType)):
        return f"{getattr(value, '__module__', '')}:{value.__name__}"
    if isinstance(value, (FunctionType, MethodType, partial)):
        return _function(value)
    return uuid.uuid4().hex


def _function(value: Any) -> Any:
    """Return a function's name and all that it carries: what it is bound to, closes over, defaults.

    Its code is told by the source of its module.
    """
    if isinstance(value, partial):
        return {"partial": [value.func, list(value.args), value.keywords]}
    if isinstance(value, MethodType):
        return {"method": value.__qualname__, "of": _carried(value.__self__)}
    return {
        "function": f"{value.__module__}:{value.__qualname__}",
        "line": value.__code__.co_firstlineno,
        "closes over": [cell.cell_contents for cell in value.__closure__ or ()],
        "defaults": [value.__defaults__, value.__kwdefaults__],
    }


def _settings(thing: Any) -> dict[str, Any]:
    try:
        described: dict[str, Any] = thing.describe()
    except (AttributeError, TypeError):  # a class without a name, or no dataclass
        return {"settings": _carried(thing)}
    return described


def _carried(thing: Any) -> Any:
    """Return all attributes of an object, or what can be said of one that has none."""
    return dict(vars(thing)) if hasattr(thing, "__dict__") else content(thing)


@lru_cache
def _source(module: str) -> str:
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        # Typed into a prompt: nobody can say whether it is the same next time.
        return uuid.uuid4().hex
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
