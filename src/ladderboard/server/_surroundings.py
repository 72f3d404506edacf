"""Surroundings: how processes that help the server are started, and what they find there."""

from __future__ import annotations

import os
import sys

__all__ = ["environment", "program"]

# Nothing of the server's surroundings but where programs and libraries are.
_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ")
_SINGLE = ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_BEGIN = "import runpy, sys; file = sys.argv.pop(1); sys.path[:] = sys.argv[2:]; "
_BEGIN += "runpy.run_path(file, run_name='__main__')"


def program(file: str, told: str) -> list[str]:
    """Return the command that runs a file of ours by its path; it finds what we find."""
    path = [os.path.abspath(each) for each in sys.path]  # noqa: PTH100 - "" is where we are
    return [sys.executable, "-I", "-B", "-c", _BEGIN, file, told, *path]


def environment() -> dict[str, str]:
    """Return the variables: no secret of the server's, and one thread for every library."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | dict.fromkeys(_SINGLE, "1")
