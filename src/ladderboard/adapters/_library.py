"""Loading the library that an adapter is for."""

from __future__ import annotations

import importlib
from typing import Any

from ladderboard.errors import MissingDependency

__all__ = ["library"]


def library(name: str, *, extra: str) -> Any:
    """Return a library's module; where it is not installed, say which command installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependency(
            f"This adapter needs {name.partition('.')[0]}: pip install 'ladderboard[{extra}]'."
        ) from error
