"""The build: which code is at work, down to the byte."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from ladderboard._version import __version__

__all__ = ["build"]

# The rooms whose code decides what a game or a simulated attack comes to.
_ROOMS = ("analysts", "arena", "bounds", "losses", "mechanisms", "reduction", "tape")


@lru_cache(maxsize=1)
def build() -> str:
    """Return the version and a hash of the code behind results.

    A version stays the same while it is worked on; results kept from before a change, or made by a
    worker with other code, must not pass for those of this code.

    >>> build().startswith(__version__)
    True
    """
    house = Path(__file__).parents[1]
    found = hashlib.blake2b(digest_size=8)
    paths = [path for room in _ROOMS for path in sorted((house / room).rglob("*.py"))]
    for path in [house / "_settings.py", *paths]:
        found.update(f"{path.relative_to(house).as_posix()}\n".encode())
        found.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return f"{__version__}+{found.hexdigest()}"
