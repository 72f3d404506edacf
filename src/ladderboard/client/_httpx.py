"""The library that speaks HTTP, or the sentence that says how to get it."""

from __future__ import annotations

from ladderboard.errors import MissingDependency

try:
    import httpx
except ImportError as error:
    raise MissingDependency("The client needs httpx: pip install 'ladderboard[client]'.") from error

__all__ = ["httpx"]
