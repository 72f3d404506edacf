"""Limits over time on what is free of charge: failed tokens, registrations, files that are wrong.

They are kept in memory, by each process for itself: they spare the server, and nothing that is
promised depends on them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.server._problems import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable

    from starlette.requests import Request

__all__ = ["Bucket", "Rate", "Uploads", "address_of"]

_MOST = 10_000  # of which something is remembered


class Rate(NamedTuple):
    """So many at once, and one more after so many seconds."""

    burst: int
    seconds: float


class Uploads:
    """One upload of each team at a time, from its first byte to its answer; others wait their turn.

    So the spool, the parsers and the threads that score hold one submission of a team at most, and
    a queue in the order of arrival is fair to all teams.

    Parameters
    ----------
    waiting
        How many uploads of one team may wait.
    seconds
        How long one may wait.
    """

    def __init__(self, waiting: int = 16, seconds: float = 30.0) -> None:
        self._waiting, self._seconds = waiting, seconds
        self._teams: dict[Hashable, _Turns] = {}

    @asynccontextmanager
    async def turn(self, team: Hashable) -> AsyncIterator[bool]:
        """Wait for the team's turn; give whether there was anything to wait for."""
        turns = self._teams.setdefault(team, _Turns())
        if turns.count > self._waiting:
            raise _one_at_a_time()
        turns.count += 1
        try:
            waited = turns.lock.locked()
            try:
                async with asyncio.timeout(self._seconds):
                    await turns.lock.acquire()
            except TimeoutError:
                raise _one_at_a_time() from None
            try:
                yield waited
            finally:
                turns.lock.release()
        finally:
            turns.count -= 1
            if not turns.count:
                del self._teams[team]


class _Turns:
    """The uploads of one team: the one whose turn it is, and how many there are with it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0


def _one_at_a_time() -> Refused:
    rule = "Other submissions of this team are being read; send one after another. No question "
    rule += "was used."
    return Refused(429, "rate", rule, {"Retry-After": "2", "Connection": "close"})


class Bucket:
    """A rate for each of many; who was not seen for longest is forgotten first.

    >>> now = iter([0.0, 0.0, 0.0, 0.0, 1.0, 60.0]).__next__
    >>> bucket = Bucket(Rate(1, 60.0), "Wait.", now)
    >>> bucket.wait("a")
    0
    >>> bucket.spend("a")
    >>> bucket.wait("a"), bucket.wait("a"), bucket.wait("a")
    (60, 59, 0)
    """

    def __init__(
        self, rate: Rate, sentence: str, timer: Callable[[], float], most: int = _MOST
    ) -> None:
        self._rate, self._sentence, self._timer, self._most = rate, sentence, timer, most
        self._used: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def _level(self, key: Hashable) -> float:
        """Return how much is used up now."""
        now = self._timer()
        used, at = self._used.get(key, (0.0, now))
        return max(used - (now - at) / self._rate.seconds, 0.0)

    def wait(self, key: Hashable) -> int:
        """Return for how many seconds one must wait; 0 if not at all."""
        over = self._level(key) + 1 - self._rate.burst
        return max(math.ceil(over * self._rate.seconds), 0) if over > 0 else 0

    def check(self, key: Hashable) -> None:
        """Refuse whoever must wait."""
        wait = self.wait(key)
        if wait:
            raise Refused(429, "rate", self._sentence, {"Retry-After": str(wait)})

    def spend(self, key: Hashable) -> None:
        """Count one."""
        level = self._level(key)
        self._used[key] = (level + 1, self._timer())
        self._used.move_to_end(key)
        while len(self._used) > self._most:
            self._used.popitem(last=False)


def address_of(request: Request) -> str:
    """Return where a request comes from; of IPv6 the part that one customer has."""
    host = "" if request.client is None else request.client.host
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:100]
    if address.version == 4:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
