"""Tools people already use, each in a file or folder of its own, none importing another.

Import the one that is wanted, as in ``from ladderboard.adapters.sklearn import judge_search``. It
loads the library that it is for, and says what to install where that is missing. ``Stopping`` is
the base of the callbacks that stop a training early, for libraries that have no adapter here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from ladderboard.adapters._stopping import Stopping

__all__ = ["Stopping"]


def library(name: str, *, extra: str) -> Any:
    """Return a library's module; where it is not installed, say which command installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependency(
            f"This adapter needs {name.partition('.')[0]}: pip install 'ladderboard[{extra}]'."
        ) from error


def __getattr__(name: str) -> Any:
    if name != "Stopping":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ladderboard.adapters._stopping import Stopping  # noqa: PLC0415 - loads the guard

    return Stopping
