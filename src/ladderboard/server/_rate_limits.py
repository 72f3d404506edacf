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
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable

    from starlette.requests import Request

_MOST = 10_000  # of which something is remembered
_AT_ONCE = 2  # requests of one address that are worked on
_MANY = 8  # that wait: more than a browser sends at once
_PAUSE = 8.0  # times the time that a request took
_REFUSAL = 1.0  # seconds
_CROWDED = "Too many requests from your address are under way; wait for their answers."


class Rate(NamedTuple):
    """So many at once, and one more after so many seconds."""

    burst: int
    seconds: float


class UploadQueue:
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
        self._teams: dict[Hashable, _TeamQueue] = {}

    @asynccontextmanager
    async def slot(self, team: Hashable) -> AsyncIterator[bool]:
        """Wait for the team's turn; give whether there was anything to wait for."""
        turns = self._teams.setdefault(team, _TeamQueue())
        if turns.count > self._waiting:
            raise _too_many_uploads()
        turns.count += 1
        try:
            waited = turns.lock.locked()
            try:
                async with asyncio.timeout(self._seconds):
                    await turns.lock.acquire()
            except TimeoutError:
                raise _too_many_uploads() from None
            try:
                yield waited
            finally:
                turns.lock.release()
        finally:
            turns.count -= 1
            if not turns.count:
                del self._teams[team]


class _TeamQueue:
    """The uploads of one team: the one whose turn it is, and how many there are with it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0


def _too_many_uploads() -> RequestRefused:
    rule = "Other submissions of this team are being read; send one after another. No question "
    rule += "was used."
    return RequestRefused(429, "rate", rule, {"Retry-After": "2", "Connection": "close"})


class RateLimiter:
    """A rate for each of many; who was not seen for longest is forgotten first.

    >>> now = iter([0.0, 0.0, 0.0, 0.0, 1.0, 60.0]).__next__
    >>> bucket = RateLimiter(Rate(1, 60.0), "Wait.", now)
    >>> bucket.seconds_to_wait("a")
    0
    >>> bucket.record("a")
    >>> bucket.seconds_to_wait("a"), bucket.seconds_to_wait("a"), bucket.seconds_to_wait("a")
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

    def seconds_to_wait(self, key: Hashable) -> int:
        """Return for how many seconds one must wait; 0 if not at all."""
        over = self._level(key) + 1 - self._rate.burst
        return max(math.ceil(over * self._rate.seconds), 0) if over > 0 else 0

    def check(self, key: Hashable) -> None:
        """Refuse whoever must wait."""
        wait = self.seconds_to_wait(key)
        if wait:
            raise RequestRefused(429, "rate", self._sentence, {"Retry-After": str(wait)})

    def record(self, key: Hashable) -> None:
        """Count one."""
        level = self._level(key)
        self._used[key] = (level + 1, self._timer())
        self._used.move_to_end(key)
        while len(self._used) > self._most:
            self._used.popitem(last=False)


class AddressLimit:
    """How many connections, or requests under way, a client address may have.

    Trusted proxies, this machine and Unix sockets are not counted: behind them may be anybody.

    >>> key = AddressLimit(100, "10.0.0.0/24").key_for_peer
    >>> key(("203.0.113.5", 40000)), key(("2001:db8:1:2:3:4:5:6", 40000, 0, 0))
    ('203.0.113.5', '2001:db8:1:2::/64')
    >>> key(("10.0.0.7", 40000)), key(("127.0.0.1", 40000)), key("")
    (None, None, None)
    """

    def __init__(self, limit: int, proxies: str | None = None, *, local: bool = False) -> None:
        self.limit = limit
        self._local = local  # whether this machine's addresses are counted, too: for tests
        listed = [] if proxies is None else proxies.split(",")
        self._proxies = [ipaddress.ip_network(each.strip()) for each in listed]

    def key_for_peer(self, peer: object) -> str | None:
        """Return what a peer, as sockets name it, is counted under; None if it is not counted."""
        host = peer[0] if isinstance(peer, tuple) and peer else ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return None
        address = getattr(address, "ipv4_mapped", None) or address
        if (not self._local and address.is_loopback) or any(
            address in net for net in self._proxies
        ):
            return None
        return group_address(host)


class RequestScheduler:
    """Shares the server between client addresses, whatever number of requests each sends.

    A few requests of an address are worked on at once, and its others wait. Where many wait, the
    address also pauses after each for a multiple of the time that it took: most of the server's
    time is left for others. Waiting for a client to send or to read is not work.
    """

    def __init__(self, limit: AddressLimit) -> None:
        self._limit = limit
        self._queues: dict[str, _AddressQueue] = {}

    @asynccontextmanager
    async def admit(self, client: object) -> AsyncIterator[RequestSlot | None]:
        """Count a request while it is under way; None where its address is not counted."""
        key = self._limit.key_for_peer(client)
        if key is None:
            yield None
            return
        queue = self._queues.setdefault(key, _AddressQueue())
        if queue.under_way >= self._limit.limit:
            await asyncio.sleep(_REFUSAL)  # or the refusals would keep the server busy
            raise RequestRefused(429, "rate", _CROWDED, {"Retry-After": "1"})
        queue.under_way += 1
        turn = RequestSlot(queue)
        try:
            await turn.acquire()
            yield turn
        finally:
            turn.release()
            queue.under_way -= 1
            if not queue.under_way:
                del self._queues[key]


@dataclass
class _AddressQueue:
    """The requests of one address."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    under_way: int = 0
    waiting: int = 0


class RequestSlot:
    """One request's turn to be worked on."""

    def __init__(self, queue: _AddressQueue) -> None:
        self._queue, self._since = queue, -1.0

    async def acquire(self) -> None:
        """Wait for a place."""
        if self._since < 0:
            self._queue.waiting += 1
            try:
                await self._queue.places.acquire()
            finally:
                self._queue.waiting -= 1
            self._since = monotonic()

    def release(self) -> None:
        """Let another request of the address have the place."""
        if self._since < 0:
            return
        took, self._since = monotonic() - self._since, -1.0
        release = self._queue.places.release
        if self._queue.waiting > _MANY:
            asyncio.get_running_loop().call_later(_PAUSE * took, release)
        else:
            release()


def client_address(request: Request) -> str:
    """Return where a request comes from; of IPv6 the part that one customer has."""
    return group_address("" if request.client is None else request.client.host)


def group_address(host: str) -> str:
    """Return an address, of IPv6 the part that one customer has.

    >>> group_address("::ffff:203.0.113.5")
    '203.0.113.5'
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:100]
    if address.version == 4:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
