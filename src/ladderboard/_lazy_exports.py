"""Names that a package imports from its modules when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def lazy_exports(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``, which imports each name from its module once.

    A module's name begins with the package's, unless it is that of another package.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def import_name(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = module_of[name]
        path = module if "." in module else f"{package}.{module}"
        value = getattr(import_module(path), name)
        setattr(import_module(package), name, value)
        return value

    return import_name
