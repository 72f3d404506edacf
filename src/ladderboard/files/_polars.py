"""Polars, loaded where a file is read, and kept on a short lead.

It is given bytes or values, never a path or an address, so it cannot look for patterns or go to a
network. Whatever it raises, a panic included, becomes a refusal.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ladderboard.errors import MissingDependency
from ladderboard.files._problems import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.files._problems import Refusal

__all__ = ["guarded", "load_polars"]


def load_polars() -> Any:
    """Return the module, or say what to install."""
    try:
        import polars  # noqa: ICN001, PLC0415 - optional, and slow to load
    except ImportError:
        raise MissingDependency(
            "Reading files needs polars: pip install 'ladderboard[files]'. "
            "Arrays, lists and .npy files are read without it."
        ) from None
    return polars


@contextmanager
def guarded(refusal: Refusal, what: str) -> Iterator[None]:
    """Turn whatever polars raises into a refusal; its own words may hold a file's contents."""
    polars = load_polars()
    try:
        yield
    except refusal:
        raise
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        name = type(error).__name__
    except (OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        name = type(error).__name__
    else:
        return
    refuse(refusal, "damaged", f"The file could not be read as {what} ({name}).")
