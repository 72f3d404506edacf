"""Connections: not too many, and none on which nothing happens for long."""

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

    # What every protocol of uvicorn's has that parses HTTP.
    _Protocol = H11Protocol
else:
    _Protocol = object


_MIN_READ = 2**14  # bytes that a client must take, each time that a stall is looked at
_SILENCE_GRACE = 1.0  # seconds for which a client that reads nothing does not count as silent yet


class LimitedConnection(_Protocol):
    """A limit on connections and on how long each may take, before a protocol of uvicorn's.

    When all places are taken, the connection that has been silent longest is closed for the new
    one. A client that does not read its answer counts as silent. Where every connection has a
    request under way, the new one is turned away.
    """

    max_connections = 100
    """How many connections may be open."""
    header_seconds = 10.0
    """Seconds until a request's header must be there."""
    idle_seconds = 30.0
    """Seconds between two requests on a connection."""
    request_seconds = 900.0
    """Seconds for a request and its answer."""
    stall_seconds = 20.0
    """Seconds in which a client must read some of what was sent to it."""
    max_header_bytes = 2**16
    """How large a request's header may be."""

    _timer: asyncio.TimerHandle | None = None
    _busy = False
    _begun = True  # a header that is not whole yet, as from the start on
    _since = 0.0
    _header_bytes = 0  # bytes of a header that is not whole yet
    _blocked: float | None = None  # since when the client has read nothing of what is to be sent
    _unread = 0  # bytes that it had not read then
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there is a place or one can be made."""
        if not self._admit(transport):
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self._since = monotonic()
        self._set_timer(self.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        self._set_timer(None)
        self._unblock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the first ones of a header say when its last must be there."""
        if not self._busy and not self._begun:
            self._begun = True
            self._set_timer(self.header_seconds)
        super().data_received(data)
        self._update_busy()
        self._header_bytes = 0 if self._busy else self._header_bytes + len(data)
        if self._header_bytes > self.max_header_bytes:
            self.abort()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, unless it is there already."""
        self._busy = self._begun = False
        self._header_bytes = 0
        self._since = monotonic()
        self._set_timer(self.idle_seconds, self._close_if_idle)
        super().on_response_complete()
        self._update_busy()

    def pause_writing(self) -> None:
        """Give a client that does not read some time; called when much is waiting to be sent."""
        super().pause_writing()
        self._watch_stall()

    def resume_writing(self) -> None:
        """Go on sending."""
        super().resume_writing()
        self._unblock()

    def _watch_stall(self) -> None:
        self._blocked, self._unread = monotonic(), self._outstanding()
        self._stall = self.loop.call_later(self.stall_seconds, self._check_stall)

    def _check_stall(self) -> None:
        """End a connection whose client read next to nothing since the last time."""
        if self._outstanding() > self._unread - _MIN_READ:
            self.abort()
        else:
            self._watch_stall()

    def _unblock(self) -> None:
        self._blocked = None
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _outstanding(self) -> int:
        """Return how many bytes the client has not acknowledged yet; elsewhere, not been sent."""
        size = self.transport.get_write_buffer_size()
        if sys.platform == "linux":
            with suppress(OSError, ValueError):
                descriptor = self.transport.get_extra_info("socket").fileno()
                queued = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
                size += struct.unpack("i", queued)[0]
        return size

    def _close_if_idle(self) -> None:
        """End a connection that waited for the next request, unless an answer is still read."""
        if self._blocked is None:
            self.abort()
        else:
            self._set_timer(self.idle_seconds, self._close_if_idle)

    def _update_busy(self) -> None:
        """See whether a request is under way now."""
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
        """Return since when nothing has happened; None while a request is being answered."""
        if not self._busy:
            return self._since
        if self._blocked is not None and monotonic() > self._blocked + _SILENCE_GRACE:
            return self._blocked
        return None

    @staticmethod
    def _close_longest_silent(connections: Iterable[Any]) -> bool:
        """End the connection that has been silent longest; tell whether there was one."""
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
