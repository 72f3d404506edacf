"""Found objects: "module:name" as people type it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["find"]


def find(text: str, fits: Callable[[Any], bool]) -> Any:
    """Return the object that ``module:name`` names.

    The module is looked for where Python looks and in the current directory. ``fits`` tells
    which objects to list when there is none of that name.

    >>> find("math:pie", callable)
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: Module math has no 'pie'; there is acos, acosh, ...
    """
    module_name, _, name = text.partition(":")
    if not name or not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidSetting(
            "Code of your own is named module:name, as in 'my_module:MyMechanism'; "
            f"got {_settings.shown(text)}."
        )
    found: Any = _module(module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            names = [
                each
                for each, thing in vars(found).items()
                if each[0] != "_"
                and fits(thing)
                # Not what the module itself has imported.
                and (
                    not hasattr(thing, "__qualname__")
                    or getattr(thing, "__module__", module_name) == module_name
                )
            ]
            there_is = f"there is {', '.join(names)}" if names else "nothing in it would do"
            raise InvalidSetting(f"Module {module_name} has no {name!r}; {there_is}.")
        found = getattr(found, part)
    return found


def _module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as python -m does; worker processes are given our path
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise InvalidSetting(
                f"There is no module named {name!r}, neither installed nor in the current "
                "directory."
            ) from None
        raise InvalidSetting(f"Module {name} cannot be imported: {error}.") from error
    except Exception as error:
        raise InvalidSetting(
            f"Module {name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
