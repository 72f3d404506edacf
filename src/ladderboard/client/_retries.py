"""Patience: how long to wait before something is sent again, and when to give up."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

__all__ = ["Patience", "is_passing", "wait_of"]

_LOG = logging.getLogger("ladderboard.client")
_FIRST, _MOST = 0.25, 8.0
_LONGEST = 30.0  # a server that wants more than this is answered with its refusal
_FOREVER = 1e9
_PASSING = {408, 502, 503, 504}
_PASSING_CODES = {(429, "rate"), (507, "disk_full")}


def is_passing(status: int, code: object) -> bool:
    """Tell whether the same request may succeed soon; limits of the rules do not pass by waiting.

    >>> is_passing(507, "disk_full"), is_passing(507, "no_room")
    (True, False)
    """
    return status in _PASSING or (isinstance(code, str) and (status, code) in _PASSING_CODES)


def wait_of(header: str | None) -> float | None:
    """Return for how many seconds a server wants to be left alone.

    >>> wait_of("5"), wait_of("soon"), wait_of(None)
    (5.0, None, None)
    """
    if header is None or not header.isdecimal():
        return None
    return min(float(header), _FOREVER)


@dataclass
class Patience:
    """Counts how often something was sent; ``retries`` says how often again at most."""

    retries: int
    tried: int = 0

    def wait(self, wanted: float | None = None) -> float | None:
        """Return how many seconds to wait before the next time; None to give up.

        The waits double, and differ from one client to the next, so that not all come back at once.
        """
        if self.tried >= self.retries or (wanted is not None and wanted > _LONGEST):
            return None
        pause = min(_FIRST * 2**self.tried, _MOST) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        self.tried += 1
        pause = pause if wanted is None else max(pause, wanted)
        _LOG.info("The server does not answer as it should; trying again in %.1f s.", pause)
        return pause
