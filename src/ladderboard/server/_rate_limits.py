"""Rate limits: failed tokens, registrations, invalid files, uploads and requests per address.

Each process keeps its own in memory. They protect the server from overload; no guarantee of a board
depends on them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import threading
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable

    from starlette.requests import Request

_MAX_KEYS = 10_000  # that are remembered
_CONCURRENT_PER_ADDRESS = 2  # requests
_CROWD = 8  # waiting requests: more than a browser sends at once
_PAUSE = 8.0  # times the duration of the request
_REFUSAL_SECONDS = 1.0
_TOO_MANY_REQUESTS = "Too many concurrent requests from your address."


class Rate(NamedTuple):
    """``burst`` events at once, and one more every ``seconds``."""

    burst: int
    seconds: float


class UploadQueue:
    """Lets one upload per team through at a time, from its first byte to its answer.

    So the spool, the parsers and the scoring threads hold at most one submission of a team, and
    their first-come-first-served queues are fair to all teams.

    Parameters
    ----------
    waiting
        How many uploads of a team may wait.
    seconds
        How long an upload may wait.
    """

    def __init__(self, waiting: int = 16, seconds: float = 30.0) -> None:
        self._waiting, self._seconds = waiting, seconds
        self._teams: dict[Hashable, _TeamQueue] = {}

    @asynccontextmanager
    async def slot(self, team: Hashable) -> AsyncIterator[bool]:
        """Wait for the team's turn; yield whether another upload came first."""
        queue = self._teams.setdefault(team, _TeamQueue())
        if queue.count > self._waiting:
            raise _too_many_uploads()
        queue.count += 1
        try:
            waited = queue.lock.locked()
            if waited:
                try:
                    async with asyncio.timeout(self._seconds):
                        await queue.lock.acquire()
                except TimeoutError:
                    raise _too_many_uploads() from None
            else:  # it need not wait, and a timer takes time
                await queue.lock.acquire()
            try:
                yield waited
            finally:
                queue.lock.release()
        finally:
            queue.count -= 1
            if not queue.count:
                del self._teams[team]


class _TeamQueue:
    """The uploads of one team: a lock, and how many hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0


def _too_many_uploads() -> RequestRefused:
    message = "Other submissions of this team are in progress; send one after another. No question "
    message += "was used."
    return RequestRefused(429, "rate", message, {"Retry-After": "2", "Connection": "close"})


class RateLimiter:
    """A rate limit per key (leaky bucket); the least recently used keys are forgotten. Thread-safe.

    >>> now = iter([0.0, 0.0, 0.0, 0.0, 1.0, 60.0]).__next__
    >>> bucket = RateLimiter(Rate(1, 60.0), "Wait.", now)
    >>> bucket.seconds_to_wait("a")
    0
    >>> bucket.record("a")
    >>> bucket.seconds_to_wait("a"), bucket.seconds_to_wait("a"), bucket.seconds_to_wait("a")
    (60, 59, 0)
    """

    def __init__(
        self, rate: Rate, message: str, timer: Callable[[], float], max_keys: int = _MAX_KEYS
    ) -> None:
        self._rate, self._message, self._timer, self._max_keys = rate, message, timer, max_keys
        self._used: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def _level(self, key: Hashable) -> float:
        """Return how full the key's bucket is now."""
        now = self._timer()
        used, since = self._used.get(key, (0.0, now))
        return max(used - (now - since) / self._rate.seconds, 0.0)

    def seconds_to_wait(self, key: Hashable) -> int:
        """Return for how many seconds the key must wait; 0 if it need not."""
        over = self._level(key) + 1 - self._rate.burst
        return max(math.ceil(over * self._rate.seconds), 0) if over > 0 else 0

    def check(self, key: Hashable) -> None:
        """Refuse a key that must wait."""
        wait = self.seconds_to_wait(key)
        if wait:
            raise RequestRefused(429, "rate", self._message, {"Retry-After": str(wait)})

    def record(self, key: Hashable) -> None:
        """Count an event."""
        with self._lock:
            level = self._level(key)
            self._used[key] = (level + 1, self._timer())
            self._used.move_to_end(key)
            while len(self._used) > self._max_keys:
                self._used.popitem(last=False)


class AddressLimit:
    """How many connections, or concurrent requests, a client address may have.

    Trusted proxies, this machine and Unix sockets are not counted: many clients share them.

    >>> key = AddressLimit(100, "10.0.0.0/24").key_for_peer
    >>> key(("203.0.113.5", 40000)), key(("2001:db8:1:2:3:4:5:6", 40000, 0, 0))
    ('203.0.113.5', '2001:db8:1:2::/64')
    >>> key(("10.0.0.7", 40000)), key(("127.0.0.1", 40000)), key("")
    (None, None, None)
    """

    def __init__(self, limit: int, proxies: str | None = None, *, local: bool = False) -> None:
        self.limit = limit
        self._local = local  # whether loopback is counted, too: for tests
        networks = [] if proxies is None else proxies.split(",")
        self._proxies = [ipaddress.ip_network(network.strip()) for network in networks]
        self._keys: dict[str, str | None] = {}  # by host: reading an address takes time

    def key_for_peer(self, peer: object) -> str | None:
        """Return the key that a peer address is counted under; None if it is not counted."""
        host = peer[0] if isinstance(peer, tuple) and peer else ""
        if host not in self._keys:
            if len(self._keys) >= _MAX_KEYS:
                self._keys.clear()
            self._keys[host] = self._find_key(host)
        return self._keys[host]

    def _find_key(self, host: str) -> str | None:
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
    """Shares the server fairly between client addresses, however many requests each sends.

    A few requests of an address are handled at once; the others wait. If many wait, a slot also
    pauses after each request for a multiple of its duration, which leaves most of the server's time
    to other addresses. Waiting for a client to send or read does not hold a slot.
    """

    def __init__(self, limit: AddressLimit) -> None:
        self._limit = limit
        self._queues: dict[str, _AddressQueue] = {}

    @asynccontextmanager
    async def admit(self, client: object) -> AsyncIterator[RequestSlot | None]:
        """Hold a slot for a request; yield None if its address is not counted."""
        key = self._limit.key_for_peer(client)
        if key is None:
            yield None
            return
        queue = self._queues.setdefault(key, _AddressQueue())
        if queue.under_way >= self._limit.limit:
            await asyncio.sleep(_REFUSAL_SECONDS)  # otherwise refusals would keep the server busy
            raise RequestRefused(429, "rate", _TOO_MANY_REQUESTS, {"Retry-After": "1"})
        queue.under_way += 1
        slot = RequestSlot(queue)
        try:
            await slot.acquire()
            yield slot
        finally:
            slot.release()
            queue.under_way -= 1
            if not queue.under_way:
                del self._queues[key]


@dataclass
class _AddressQueue:
    """The requests of one address."""

    places: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(_CONCURRENT_PER_ADDRESS)
    )
    under_way: int = 0
    waiting: int = 0


class RequestSlot:
    """The slot of one request."""

    def __init__(self, queue: _AddressQueue) -> None:
        self._queue, self._since = queue, -1.0

    async def acquire(self) -> None:
        """Wait for a free slot."""
        if self._since < 0:
            self._queue.waiting += 1
            try:
                await self._queue.places.acquire()
            finally:
                self._queue.waiting -= 1
            self._since = monotonic()

    def release(self) -> None:
        """Give the slot to another request of the address."""
        if self._since < 0:
            return
        took, self._since = monotonic() - self._since, -1.0
        release = self._queue.places.release
        if self._queue.waiting > _CROWD:
            asyncio.get_running_loop().call_later(_PAUSE * took, release)
        else:
            release()


def client_address(request: Request) -> str:
    """Return the client address of a request; of IPv6 the /64 network."""
    return group_address("" if request.client is None else request.client.host)


def group_address(host: str) -> str:
    """Return an address; of IPv6 the /64 network, which one customer has.

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
