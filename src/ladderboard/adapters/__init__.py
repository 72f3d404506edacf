"""Integrations with other tools, one module or package each; none imports another.

Import the one you need: ``from ladderboard.adapters.sklearn import judge_search``. It imports its
library, and raises ``MissingDependency`` with the command that installs it. ``Stopping`` is the
base class of the callbacks that stop a training early; subclass it for a library without an
adapter. ``Scores`` holds the scores that the evaluation logs' adapters read.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard._lazy_exports import lazy_exports
from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from ladderboard.adapters._scores import Scores
    from ladderboard.adapters._stopping import Stopping

__all__ = ["Scores", "Stopping"]


def import_library(name: str, *, extra: str) -> Any:
    """Return a library's module; raise ``MissingDependency`` with the command to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependency(
            f"This adapter needs {name.partition('.')[0]}: pip install 'ladderboard[{extra}]'."
        ) from error


__getattr__, __dir__ = lazy_exports(__name__, {"_scores": ("Scores",), "_stopping": ("Stopping",)})
