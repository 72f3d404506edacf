"""Compiling functions with numba, where it is installed, with a cache where one can be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., Any]")

try:
    import numba
    from numba.extending import intrinsic
except ImportError as error:
    raise MissingDependency(
        "Simulated attacks are compiled with numba, which is not installed; "
        "type pip install 'ladderboard[arena]'."
    ) from error


def compiled(function: _Function) -> _Function:
    """Compile a function at its first call, free of the interpreter's lock."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba found no directory it may write its cache to
        return numba.njit(nogil=True)(function)


def inlined(function: _Function) -> _Function:
    """Compile a function that only compiled functions call; it needs no way in from Python."""
    return numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


@intrinsic  # type: ignore[untyped-decorator]
def popcount(_context: Any, word: Any) -> Any:
    """Return how many bits of a 64-bit word are set; one instruction where there is one."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), emit
