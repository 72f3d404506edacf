"""Connections with limits on number, idle time and stalls."""

from __future__ import annotations

import struct
import sys
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if sys.platform == "linux":
    import fcntl
    import termios

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    # For type checking: any HTTP protocol of uvicorn.
    _Protocol = H11Protocol
else:
    _Protocol = object


_MIN_READ = 2**14  # bytes that a client must read between two stall checks
_SILENCE_GRACE = 1.0  # seconds before a client that reads nothing counts as silent


class LimitedConnection(_Protocol):
    """A mixin for uvicorn's protocols: limits the number of connections and their time.

    At the limit, the connection that has been silent longest is closed for the new one. A client
    that does not read its response counts as silent. If every connection has a request in
    progress, the new one is refused.
    """

    max_connections = 100
    """How many connections may be open."""
    header_seconds = 10.0
    """Seconds for a request's header."""
    idle_seconds = 30.0
    """Seconds between two requests on a connection."""
    request_seconds = 900.0
    """Seconds for a request and its response."""
    stall_seconds = 20.0
    """Seconds in which a client must read some of its response."""
    max_header_bytes = 2**16
    """The size limit of a request's header."""

    _timer: asyncio.TimerHandle | None = None
    _busy = False
    _begun = True  # a header is incomplete, as at the start
    _since = 0.0
    _header_bytes = 0  # bytes of an incomplete header
    _blocked: float | None = None  # since when the client has not read its response
    _unread = 0  # bytes that were unread then
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, if the limits allow it."""
        if not self._admit(transport):
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self._since = monotonic()
        self._set_timer(self.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._set_timer(None)
        self._unblock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive bytes; the first byte of a header starts its timeout."""
        if not self._busy and not self._begun:
            self._begun = True
            self._set_timer(self.header_seconds)
        super().data_received(data)
        self._update_busy()
        self._header_bytes = 0 if self._busy else self._header_bytes + len(data)
        if self._header_bytes > self.max_header_bytes:
            self.abort()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has arrived already."""
        self._busy = self._begun = False
        self._header_bytes = 0
        self._since = monotonic()
        self._set_timer(self.idle_seconds, self._close_if_idle)
        super().on_response_complete()
        self._update_busy()

    def pause_writing(self) -> None:
        """Start the stall timer; called when the write buffer is full."""
        super().pause_writing()
        self._watch_stall()

    def resume_writing(self) -> None:
        """Stop the stall timer."""
        super().resume_writing()
        self._unblock()

    def _watch_stall(self) -> None:
        self._blocked, self._unread = monotonic(), self._unread_bytes()
        self._stall = self.loop.call_later(self.stall_seconds, self._check_stall)

    def _check_stall(self) -> None:
        """Close a connection whose client has hardly read since the last check."""
        if self._unread_bytes() > self._unread - _MIN_READ:
            self.abort()
        else:
            self._watch_stall()

    def _unblock(self) -> None:
        self._blocked = None
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _unread_bytes(self) -> int:
        """Return how many bytes are unacknowledged; outside Linux, how many are unsent."""
        size = self.transport.get_write_buffer_size()
        if sys.platform == "linux":
            with suppress(OSError, ValueError):
                descriptor = self.transport.get_extra_info("socket").fileno()
                queued = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
                size += struct.unpack("i", queued)[0]
        return size

    def _close_if_idle(self) -> None:
        """Close an idle connection, unless its response is still being read."""
        if self._blocked is None:
            self.abort()
        else:
            self._set_timer(self.idle_seconds, self._close_if_idle)

    def _update_busy(self) -> None:
        """Start the request timer when a request has begun."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way and not self._busy:
            self._busy = True
            self._set_timer(self.request_seconds)

    def _set_timer(self, seconds: float | None, then: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._timer = self.loop.call_later(seconds, then or self.abort)

    def abort(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        self.connections.discard(self)
        self.transport.abort()

    def _admit(self, transport: asyncio.Transport) -> bool:
        return len(self.connections) < self.max_connections or self._close_longest_silent(
            self.connections
        )

    def silent_since(self) -> float | None:
        """Return since when the client has been silent; None while a request is handled."""
        if not self._busy:
            return self._since
        if self._blocked is not None and monotonic() > self._blocked + _SILENCE_GRACE:
            return self._blocked
        return None

    @staticmethod
    def _close_longest_silent(connections: Iterable[Any]) -> bool:
        """Close the connection that has been silent longest; return False if none is silent."""
        silent = [
            (since, id(connection), connection)
            for connection in connections
            if isinstance(connection, LimitedConnection)
            and (since := connection.silent_since()) is not None
        ]
        if not silent:
            return False
        min(silent)[-1].abort()
        return True


class GuardProtocol(LimitedConnection, H11Protocol):
    """The connections of a served guard."""
