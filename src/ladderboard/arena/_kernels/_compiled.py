"""Compiles functions with numba, with an on-disk cache if possible."""

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
        "Simulated attacks need numba, which is not installed: pip install 'ladderboard[arena]'."
    ) from error


def compiled(function: _Function) -> _Function:
    """Compile a function at its first call, to run without the GIL."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba has no writable cache directory
        return numba.njit(nogil=True)(function)


def inlined(function: _Function) -> _Function:
    """Compile a function that only compiled functions call, without a Python wrapper."""
    return numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


@intrinsic  # type: ignore[untyped-decorator]
def popcount(_context: Any, word: Any) -> Any:
    """Return how many bits of a 64-bit word are set, with the CPU's instruction if any."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), emit
