"""Leaving: connections and a server that end without cutting anybody off."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ladderboard.server._process._connections import LimitedConnection

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from ladderboard.server._rate_limits import AddressLimit

GRACE = 30.0
"""Seconds for what is being answered when a server is stopped."""
INHERITED_GRACE = 2.0
"""Seconds in which a kept connection may say one thing more, where another server comes next."""
_SHORT_GRACE = 0.2  # the same, where none does
_TICK = 0.05
_CANCEL_GRACE = 2.0  # seconds to say that it took too long


class BoardProtocol(LimitedConnection, HttpToolsProtocol):  # type: ignore[misc]  # it is typed for the other
    """The connections of a server of boards.

    Who keeps a connection open sends the next request without asking whether it may. A connection
    that is closed just then loses a request that nobody knows the fate of. So a server that leaves
    says "this was the last" with an answer, and otherwise waits.
    """

    max_connections = 1000
    depth = 8
    """How many requests may wait behind the one that is answered."""

    address: str | None = None
    """What the connection is counted under, where connections from one address are limited."""
    _running: Any = None  # the request that is answered; ``cycle`` is the last that came
    _draining = False
    _grace: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, maybe one that was accepted just before nobody did any more."""
        super().connection_made(transport)
        if isinstance(self.server_state, _BoardServerState) and self.server_state.draining:
            self.drain(self.server_state.grace)

    def _admit(self, transport: asyncio.Transport) -> bool:
        limit = (
            self.server_state.addresses
            if isinstance(self.server_state, _BoardServerState)
            else None
        )
        self.address = (
            None if limit is None else limit.key_for_peer(transport.get_extra_info("peername"))
        )
        if limit is not None and self.address is not None:
            connections: set[Any] = self.connections
            same = [connection for connection in connections if connection.address == self.address]
            if len(same) >= limit.limit and not self._close_longest_silent(same):
                return False
        return super()._admit(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it; what waits behind the request that is answered will not be."""
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to read a request, unless too many wait already."""
        if len(self.pipeline) >= self.depth:
            raise _TooDeep
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or more at once than is answered, after what came before it."""
        if self._running is None or self._running.response_complete or self._reads_body():
            super().send_400_response(msg)
        elif self.cycle.more_body:
            self.abort()
        else:
            self.cycle.keep_alive = False
            self.flow.pause_reading()

    def _reads_body(self) -> bool:
        """Return whether the request that is answered has not come in whole."""
        return self.cycle is self._running and self.cycle.more_body

    def drain(self, grace: float | None) -> None:
        """Let the next answer be the last; silence ends it after so long, or when it always did."""
        self._draining, self._grace = True, grace
        if self._busy:
            if not self.cycle.response_started:
                self.cycle.keep_alive = False
        elif grace is not None and not self._header_bytes:
            self._begun = False
            # What came while the loop was busy elsewhere is looked at before the second time.
            self._set_timer(grace, lambda: self._set_timer(_TICK))

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        super().on_headers_complete()
        if self._draining:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """Leave after an answer that had begun before, and did not say that it was the last."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        if self._draining and not self._busy and not self.transport.is_closing():
            self.drain(self._grace)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)


class _TooDeep(Exception):
    """More requests were sent at once than a connection may have."""


class _BoardServerState(ServerState):
    """What the connections of a server know of it."""

    addresses: AddressLimit | None = None
    draining = False
    grace: float | None = None


class BoardServer(uvicorn.Server):
    """A server of boards. Signals are handled by whoever runs it.

    Parameters
    ----------
    config
        As uvicorn wants it.
    handed
        Whether the socket outlives the server, so that others answer there next.
    ready
        Is called when it answers.
    addresses
        A limit on the connections from one address.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        socket_inherited: bool = False,
        ready: Callable[[], object] | None = None,
        addresses: AddressLimit | None = None,
    ) -> None:
        super().__init__(config)
        self.server_state = self._state = _BoardServerState()
        self._state.addresses = addresses
        self.socket_inherited = socket_inherited
        self.replaced = False
        """Others answer already: all the time in the world, until ``should_exit``, too."""
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self._ready is not None:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Tell whether it is time to go."""
        return await super().on_tick(counter) or self.replaced

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, and who is about to ask; then end."""
        for resource in [*self.servers, *(sockets or ())]:
            resource.close()
        if self.replaced:
            self._drain_connections(None)
            await self._wait_until_empty(BoardProtocol.request_seconds)
        self.should_exit = True
        self._drain_connections(INHERITED_GRACE if self.socket_inherited else _SHORT_GRACE)
        await self._wait_until_empty(GRACE)
        for task in tuple(self.server_state.tasks):
            task.cancel()
        await self._wait_until_empty(_CANCEL_GRACE)
        for resource in self._connections():
            resource.transport.abort()
        await self.lifespan.shutdown()

    def _connections(self) -> list[Any]:
        return list(self.server_state.connections)

    def _drain_connections(self, grace: float | None) -> None:
        self._state.draining, self._state.grace = True, grace
        for connection in self._connections():
            connection.drain(grace)

    async def _wait_until_empty(self, seconds: float) -> None:
        """Wait until nobody is left, for so long at most; less if it is stopped meanwhile."""
        loop = asyncio.get_running_loop()
        deadline, stopped = loop.time() + seconds, self.should_exit
        await asyncio.sleep(_TICK)  # connections that were accepted are made meanwhile
        while loop.time() < deadline and self.should_exit == stopped:
            if not self.server_state.connections and not self.server_state.tasks:
                return
            await asyncio.sleep(_TICK)
