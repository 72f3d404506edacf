"""Names that a package imports from its modules when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def lazy_exports(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__``, which imports each name once, and its ``__dir__``.

    ``modules`` has the names of each module, which is one of the package's own unless its name
    has a dot. ``dir`` of the package lists what is in ``__all__``.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def import_name(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = module_of[name]
        value = getattr(import_module(module if "." in module else f"{package}.{module}"), name)
        setattr(import_module(package), name, value)
        return value

    def list_names() -> list[str]:
        return sorted(getattr(import_module(package), "__all__", module_of))

    return import_name, list_names
