"""Identity: what a mechanism or an analyst is, down to the code that is not ours."""

from __future__ import annotations

import hashlib
import inspect
import sys
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism

__all__ = ["foreign_module", "identity"]


def foreign_module(thing: Any) -> str | None:
    """Return the module that holds the code of a thing, if it is not one of ours."""
    code = getattr(thing, "function", None) or type(thing)
    module: str = code.__module__
    return None if module.partition(".")[0] == "ladderboard" else module


def identity(thing: Mechanism | Analyst) -> dict[str, Any]:
    """Return class and settings; for code outside of this package also a hash of its source.

    Our own code is told by the version. A module's source is read whole, so that a change in a
    helper beside the class counts too; what it imports from elsewhere does not.
    """
    module = foreign_module(thing)
    found = {"class": f"{type(thing).__module__}:{type(thing).__qualname__}", **_settings(thing)}
    return found if module is None else {**found, "source": _source(module)}


def _settings(thing: Any) -> dict[str, Any]:
    try:
        described: dict[str, Any] = thing.describe()
    except (AttributeError, TypeError):  # a class without a name, or no dataclass
        return {"settings": repr(thing)}
    return described


@lru_cache
def _source(module: str) -> str:
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        # Typed into a prompt: nobody can say whether it is the same next time.
        return uuid.uuid4().hex
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
