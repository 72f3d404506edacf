"""Connections: not too many, and none that says nothing for long."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    # What every protocol of uvicorn's has that parses HTTP.
    _Protocol = H11Protocol
else:
    _Protocol = object

__all__ = ["GuardProtocol", "Limited"]


class Limited(_Protocol):
    """A limit on connections and on how long each may take, before a protocol of uvicorn's.

    When all places are taken, whoever has been silent longest makes way for who comes; where every
    connection has a request under way, who comes is turned away. So nobody keeps others out with
    connections on which nothing is said.
    """

    most = 100
    """How many connections may be open."""
    header = 10.0
    """Seconds until a request's header must be there."""
    idle = 30.0
    """Seconds between two requests on a connection."""
    whole = 900.0
    """Seconds for a request and its answer."""
    head_bytes = 2**16
    """How large a request's header may be."""

    _timer: asyncio.TimerHandle | None = None
    _busy = False
    _begun = True  # a header that is not whole yet, as from the start on
    _since = 0.0
    _headed = 0  # bytes of a header that is not whole yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there is a place or one can be made."""
        if len(self.connections) >= self.most and not self._make_way():
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self._since = monotonic()
        self._wait(self.header)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the first ones of a header say when its last must be there."""
        if not self._busy and not self._begun:
            self._begun = True
            self._wait(self.header)
        super().data_received(data)
        self._look()
        self._headed = 0 if self._busy else self._headed + len(data)
        if self._headed > self.head_bytes:
            self._end()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, unless it is there already."""
        self._busy = self._begun = False
        self._headed = 0
        self._since = monotonic()
        self._wait(self.idle)
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """See whether a request is under way now."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way and not self._busy:
            self._busy = True
            self._wait(self.whole)

    def _wait(self, seconds: float | None, then: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._timer = self.loop.call_later(seconds, then or self._end)

    def _end(self) -> None:
        self.connections.discard(self)
        self.transport.abort()

    def _make_way(self) -> bool:
        """End the connection that has been silent longest; tell whether there was one."""
        silent: list[Any] = [
            each
            for each in self.connections
            if isinstance(each, Limited) and not each._busy  # noqa: SLF001 - our own kind
        ]
        if not silent:
            return False
        min(silent, key=lambda each: each._since)._end()  # noqa: SLF001 - same
        return True


class GuardProtocol(Limited, H11Protocol):
    """The connections of a served guard."""
