"""Graceful shutdown: requests in progress are answered before connections close."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ladderboard.server._process._listener import GracefulServer, LimitedConnection

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    import uvicorn

    from ladderboard.server._rate_limits import AddressLimit


GRACE = 30.0
"""Seconds for requests in progress when a server is stopped."""
INHERITED_GRACE = 2.0
"""Seconds in which an idle connection may send one more request, if another server follows."""
_SHORT_GRACE = 0.2  # the same, if none follows
_TICK = 0.05
_CANCEL_GRACE = 2.0  # seconds for the responses of cancelled requests


class BoardProtocol(LimitedConnection, HttpToolsProtocol):  # type: ignore[misc]  # typed for H11Protocol
    """The connections of a board server.

    A client with a keep-alive connection may send its next request at any moment. If the server
    closes the connection just then, the client cannot know whether the request was handled. So a
    server that shuts down sends ``Connection: close`` with a response, and otherwise waits.
    """

    max_connections = 1000
    depth = 8
    """How many pipelined requests may wait behind the current one."""

    address: str | None = None
    """The key under which the connection is counted, if connections per address are limited."""
    _running: Any = None  # the current request; ``cycle`` is the last one received
    _draining = False
    _grace: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, maybe one from just before the shutdown."""
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
        """Drop pipelined requests."""
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to read a request, unless too many are pipelined."""
        if len(self.pipeline) >= self.depth:
            raise _TooManyPipelined
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP or too many pipelined requests, after answering earlier ones."""
        if self._running is None or self._running.response_complete or self._reads_body():
            super().send_400_response(msg)
        elif self.cycle.more_body:
            self.abort()
        else:
            self.cycle.keep_alive = False
            self.flow.pause_reading()

    def _reads_body(self) -> bool:
        """Return whether the body of the current request is incomplete."""
        return self.cycle is self._running and self.cycle.more_body

    def drain(self, grace: float | None) -> None:
        """Close after the next response, or after ``grace`` seconds of silence (None: as usual)."""
        self._draining, self._grace = True, grace
        if self._busy:
            if not self.cycle.response_started:
                self.cycle.keep_alive = False
        elif grace is not None and not self._header_bytes:
            self._begun = False
            # Two timers: data that arrived while the loop was busy is read between them.
            self._set_timer(grace, lambda: self._set_timer(_TICK))

    def on_headers_complete(self) -> None:
        """Begin to handle a request."""
        super().on_headers_complete()
        if self._draining:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """Drain after a response that had begun earlier, without ``Connection: close``."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        if self._draining and not self._busy and not self.transport.is_closing():
            self.drain(self._grace)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)


class _TooManyPipelined(Exception):
    """More requests were pipelined than a connection may have."""


class _BoardServerState(ServerState):
    """The server state that connections see."""

    addresses: AddressLimit | None = None
    draining = False
    grace: float | None = None


class BoardServer(GracefulServer):
    """A board server. Its caller handles signals.

    Parameters
    ----------
    config
        The configuration of uvicorn.
    socket_inherited
        Whether the socket outlives this server, so that another one follows.
    ready
        Called when the server accepts requests.
    addresses
        The limit of connections per address.
    say
        Called with sentences about the shutdown.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        socket_inherited: bool = False,
        ready: Callable[[], object] | None = None,
        addresses: AddressLimit | None = None,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(config, grace=GRACE, say=say)
        self.server_state = self._state = _BoardServerState()
        self._state.addresses = addresses
        self.socket_inherited = socket_inherited
        self.replaced = False
        """Another worker has taken over: drain without a deadline until ``should_exit``."""
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call ``ready``."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # what was loaded stays, so that no collection looks at it again
        if self._ready is not None:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Return whether to shut down."""
        return await super().on_tick(counter) or self.replaced

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish requests in progress and those about to arrive; then stop."""
        with self.announced_shutdown():
            await self._finish(sockets)

    async def _finish(self, sockets: list[socket.socket] | None) -> None:
        for resource in [*self.servers, *(sockets or ())]:
            resource.close()
        if self.replaced:
            self._begin_draining(None)
            await self._wait_for_requests(BoardProtocol.request_seconds)
        self.should_exit = True
        self._begin_draining(INHERITED_GRACE if self.socket_inherited else _SHORT_GRACE)
        await self._wait_for_requests(self.grace)
        for task in tuple(self.server_state.tasks):
            task.cancel()
        await self._wait_for_requests(_CANCEL_GRACE)
        for resource in self._connections():
            resource.transport.abort()
        await self.lifespan.shutdown()

    def _connections(self) -> list[Any]:
        return list(self.server_state.connections)

    def _begin_draining(self, grace: float | None) -> None:
        self._state.draining, self._state.grace = True, grace
        for connection in self._connections():
            connection.drain(grace)

    async def _wait_for_requests(self, seconds: float) -> None:
        """Wait until all connections are closed, the time is up, or the server is stopped."""
        loop = asyncio.get_running_loop()
        deadline, stopped = loop.time() + seconds, self.should_exit
        await asyncio.sleep(_TICK)  # lets accepted connections be set up
        while loop.time() < deadline and self.should_exit == stopped:
            if not self.server_state.connections and not self.server_state.tasks:
                return
            await asyncio.sleep(_TICK)


def is_terminal_closed(terminal: bool) -> bool:
    """Tell whether the terminal of the start has been closed."""
    return terminal and not has_terminal()


def has_terminal() -> bool:
    """Tell whether standard input is a terminal."""
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):  # closed, or never there
        return False
