"""The program itself: versions, and whether what it needs can be loaded."""

from __future__ import annotations

import importlib
import platform
import sys
from pathlib import Path

from ladderboard._version import __version__
from ladderboard.server._doctor._extras import EXTRAS, missing
from ladderboard.server._doctor._finding import Finding, ok, problem

__all__ = ["check_program", "check_server"]

_OLDEST = (3, 11)


def check_program() -> list[Finding]:
    """Tell which Python and which Ladderboard this is."""
    python = f"Python {platform.python_version()} in {sys.prefix}"
    if sys.version_info < _OLDEST:
        said = problem("Python", f"{python} is too old.", "Use Python 3.11 or newer.")
    else:
        said = ok("Python", f"{python}.")
    where = Path(__file__).parents[2]
    return [said, ok("Ladderboard", f"Version {__version__} in {where}."), _numpy()]


def _numpy() -> Finding:
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return problem("NumPy", "It cannot be loaded.", "pip install --force-reinstall ladderboard")
    return ok("NumPy", f"Version {numpy.__version__}.")


def check_server() -> list[Finding]:
    """Load the server, where all that it needs is there: a module may be there and be broken."""
    if missing(EXTRAS["server"]):
        return []
    try:
        importlib.import_module("ladderboard.server._process._run")
    except Exception as error:  # noqa: BLE001 - whatever it is, somebody wants to know
        name = getattr(error, "name", None) or type(error).__name__
        return [
            problem(
                "server",
                f"It is installed, but cannot be loaded: {name}.",
                "pip install --force-reinstall 'ladderboard[server]'",
            )
        ]
    return [ok("server", "It is installed, and can be loaded.")]
