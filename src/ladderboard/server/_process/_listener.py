"""Listening sockets, their connections, and the signals that stop a server."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import signal
import socket
import stat
import struct
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ladderboard import _settings
from ladderboard._atomic_file import absolute_path
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidSetting, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


try:
    import fcntl
except ImportError:  # Windows, which has no Unix sockets either
    fcntl = None  # type: ignore[assignment]


_MAX_PORT = 65535
_PORTS_TRIED = 50  # for one to suggest
_INHERITED_FD = 3  # the first socket that systemd passes
_MAX_SOCKET_PATH = 107  # bytes in the name of a Unix socket, on Linux


@dataclass
class Listener:
    """A listening socket, its URL, and the ``Host`` headers that belong to it."""

    socket: socket.socket
    url: str
    hosts: frozenset[str] | None = None
    path: Path | None = None
    inode: tuple[int, int] | None = None

    def close(self) -> None:
        """Close the socket; remove a Unix socket's file, unless it has been replaced."""
        self.socket.close()
        if self.path is not None:
            with suppress(OSError):
                if _inode(self.path) == self.inode:
                    self.path.unlink()


def listen_on_loopback(host: str = "127.0.0.1", port: int = 8765) -> Listener:
    """Return a listener on a loopback port, which other machines cannot reach.

    >>> listen_on_loopback("0.0.0.0")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: host must be a loopback address, such as 127.0.0.1 or ::1;
    got '0.0.0.0'. For other machines put a reverse proxy with TLS and authentication in front.
    """
    if not _settings.is_loopback(host):
        raise InvalidSetting(
            f"host must be a loopback address, such as 127.0.0.1 or ::1; got "
            f"{_settings.safe_repr(host)}. For other machines put a reverse proxy with "
            "TLS and authentication in front."
        )
    address, port = _parse_address(host, port)
    bound, port = _bind(address, port)
    name = f"[{address}]" if address.version == 6 else str(address)
    hosts = {f"{host_name}:{port}" for host_name in (name, "localhost")}
    if port == 80:  # the default port is omitted
        hosts |= {name, "localhost"}
    return Listener(bound, f"http://{name}:{port}", frozenset(hosts))


def listen_on_address(host: str = "127.0.0.1", port: int = 8000) -> Listener:
    """Return a listener on a port of any address of this machine.

    >>> listen_on_address("example.org")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: host must be an address of this machine, such as 127.0.0.1,
    or 0.0.0.0 for all of them; got 'example.org'.
    """
    address, port = _parse_address(host, port)
    bound, port = _bind(address, port)
    return Listener(bound, _local_url(address, port))


def check_port_free(host: str, port: int) -> None:
    """Raise if :func:`listen_on_address` would; does not listen.

    Does nothing if systemd passes a socket, which is used instead.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        bound, _ = _bind(*_parse_address(host, port), listen=False)
        bound.close()


def _parse_address(
    host: str, port: int
) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    port = _settings.integer("port", port, at_least=0, at_most=65535)
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host), port
    except ValueError:
        raise InvalidSetting(
            "host must be an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of "
            f"them; got {_settings.safe_repr(host)}."
        ) from None


def _local_url(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> str:
    """Return the URL of a listener for clients on this machine."""
    host = str(address)
    if address.is_unspecified:
        host = "::1" if address.version == 6 else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen_on_inherited_socket() -> Listener | None:
    """Return the listener that systemd, or our previous process, passed; None if it did not."""
    names = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")  # not for child processes
    count, pid, _ = (os.environ.pop(name, "") for name in names)
    if pid != str(os.getpid()):
        return None
    if count != "1":
        raise InvalidSetting(f"Pass one socket to a server, not {count!r:.20}.")
    bound = None
    with suppress(OSError):  # not a socket
        os.set_inheritable(_INHERITED_FD, False)
        bound = socket.socket(fileno=_INHERITED_FD)
    if bound is None or not _is_listening(bound):
        raise InvalidSetting(
            "The passed socket must listen on a port, as in ListenStream=127.0.0.1:8000."
        )
    host, port = bound.getsockname()[:2]
    return Listener(bound, _local_url(ipaddress.ip_address(host), port))


def _is_listening(bound: socket.socket) -> bool:
    inet = bound.family in {socket.AF_INET, socket.AF_INET6} and bound.type == socket.SOCK_STREAM
    return inet and bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0


def _bind(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int, *, listen: bool = True
) -> tuple[socket.socket, int]:
    """Return a socket bound to an address, listening unless ``listen`` is false, and its port."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    # With an explicit protocol: otherwise asyncio keeps Nagle's algorithm, which delays by 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # on Windows this would let others bind the same port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((str(address), port))
        if listen:
            bound.listen()
    except OSError as error:
        bound.close()
        raise StorageFailed(_describe_bind_error(error, address, port)) from None
    return bound, bound.getsockname()[1]


def _describe_bind_error(
    error: OSError, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> str:
    if error.errno != errno.EADDRINUSE:
        return f"Cannot listen on port {port}: {error.strerror}."
    candidates = range(port + 1, min(port + _PORTS_TRIED, _MAX_PORT) + 1)
    free = next((other for other in candidates if _is_free(address, other)), None)
    suggestion = "" if free is None else f"--port {free}, or "
    return f"Port {port} is taken. Choose another: {suggestion}--port 0 for any free port."


def _is_free(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> bool:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe, suppress(OSError):
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((str(address), port))
        return True
    return False


def listen_on_unix_socket(path: Path | str, mode: int = 0o660) -> Listener:
    """Return a listener on a Unix socket, which is created with this mode.

    A stale socket of a guard is replaced; anything else at the path is refused.
    """
    path = absolute_path(path)
    if fcntl is None or not hasattr(socket, "AF_UNIX"):
        raise InvalidSetting("Unix sockets are not available on this system; serve on a port.")
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        raise InvalidSetting(
            f"The path of a Unix socket has at most {_MAX_SOCKET_PATH} bytes; {path} has more."
        )
    if not 0 <= mode <= 0o777 or mode & 0o600 != 0o600:
        raise InvalidSetting(
            f"socket-mode must be like 660, for its owner at least 6; got {mode:o}."
        )
    with _lock_folder(path.parent):
        _remove_stale_socket(path)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o777 & ~mode)
        try:
            bound.bind(os.fspath(path))
        except OSError as error:
            bound.close()
            raise StorageFailed(f"{path} cannot be created: {error.strerror}.") from None
        finally:
            os.umask(before)
        inode = _inode(path)
    bound.listen()
    return Listener(bound, f"unix:{path}", None, path, inode)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, so that two guards cannot replace a socket at once."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StorageFailed(f"{folder} cannot be opened: {error.strerror}.") from None
    try:
        status = os.fstat(descriptor)
        writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if status.st_uid not in {0, os.geteuid()} or (
            writable and not status.st_mode & stat.S_ISVTX
        ):
            raise InvalidSetting(
                f"Others can replace files in {folder}, and so impersonate the guard; put the "
                "socket into a folder that only its owner can write to."
            )
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # releases the lock


def _remove_stale_socket(path: Path) -> None:
    """Remove our own socket if no process listens on it; refuse anything else at the path."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        raise InvalidSetting(f"{path} exists already, and is not a stale socket of a guard.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            caller.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError:
            pass
    raise InvalidSetting(f"Another process listens on {path}.")


def _inode(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


if sys.platform == "linux":
    import fcntl
    import termios

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # For type checking: any HTTP protocol of uvicorn.
    _Protocol = H11Protocol
else:
    _Protocol = object


MOMENT = 0.5
"""Seconds after which a shutdown says what it waits for."""
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


HANGUP = (
    "Stopped by SIGHUP, which a closed terminal sends; start the server with nohup to keep it "
    "running."
)
"""Why a server stops after SIGHUP."""


def describe_wait(seconds: float, waiting_for: str) -> str:
    """Return the sentence about a shutdown that takes more than a moment."""
    return f"Waiting up to {seconds:.0f} s for {waiting_for}; Ctrl-C again stops at once."


class GracefulServer(uvicorn.Server):
    """A server that says what its shutdown waits for. Its caller handles signals.

    Parameters
    ----------
    config
        The configuration of uvicorn.
    grace
        Seconds for requests in progress when it is stopped.
    say
        Called with sentences about the shutdown; by default they are dropped.
    """

    stop_reason = ""
    """Why it is stopped, as a sentence; empty if the user knows."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        grace: float,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        super().__init__(config)
        self.grace, self._say = grace, say

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not handle signals."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish requests in progress; then stop."""
        with self.announced_shutdown():
            await super().shutdown(sockets)

    @contextmanager
    def announced_shutdown(self) -> Iterator[None]:
        """Say why the server stops and, after a moment, what it waits for."""
        if self.stop_reason:
            self._say(self.stop_reason)
        timer = asyncio.get_running_loop().call_later(MOMENT, self._say_wait)
        try:
            yield
        finally:
            timer.cancel()

    def _say_wait(self) -> None:
        requests, connections = len(self.server_state.tasks), len(self.server_state.connections)
        noun, number = ("request", requests) if requests else ("connection", connections)
        if number:
            self._say(describe_wait(self.grace, format_count(number, f"open {noun}")))


@contextmanager
def stop_on_signals(server: GracefulServer) -> Iterator[None]:
    """Let a signal stop only the server, so that the code after it still runs.

    A second SIGINT or SIGTERM ends this process.
    """

    def stop(number: int) -> None:
        if server.should_exit:
            die_from_signal(number)
        server.should_exit = True

    def hang_up(_: int) -> None:  # a shell and the kernel may both send it
        if not server.should_exit:
            server.stop_reason = HANGUP
            server.should_exit = True

    with handle_signals({"SIGINT": stop, "SIGTERM": stop, "SIGHUP": hang_up}):
        yield


def die_from_signal(number: int) -> None:
    """End this process at once, as the signal would without a handler."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    os._exit(128 + number)  # process 1 of a container survives its own signals


@contextmanager
def handle_signals(handlers: Mapping[str, Callable[[int], None]]) -> Iterator[None]:
    """Handle signals by name, where they exist; ignored signals stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers_by_signal = {
        getattr(signal, name): handler
        for name, handler in handlers.items()
        if hasattr(signal, name)
    }
    before = {number: signal.getsignal(number) for number in handlers_by_signal}
    for number, handler in handlers_by_signal.items():
        if before[number] != signal.SIG_IGN:  # as under nohup
            signal.signal(number, _make_handler(handler))
    if hasattr(signal, "pthread_sigmask"):  # signals that arrived during reexec are delivered now
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers_by_signal)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _make_handler(callback: Callable[[int], None]) -> Callable[[int, Any], None]:
    return lambda number, _: callback(number)
