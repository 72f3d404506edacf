"""A parser process as the server sees it; it may be killed at any moment.

Tasks, timeouts and streams of asyncio would take longer than parsing most bodies. So the event loop
calls back when the socket is readable, and each body awaits one future.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import WorkerError
from ladderboard.server._process import subprocess_command, subprocess_env
from ladderboard.server._sandbox import _worker as wire
from ladderboard.server._sandbox._reply import MAX_REFUSAL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    OnReply = Callable[[bytes, bytes], None]


NO_REPLY = b""
"""The kind of reply of a parser that is dead, late or sends garbage."""

_START_SECONDS = 60.0
_SPEC_SECONDS = 30.0  # extra time for a new specification
_EXIT_SECONDS = 5.0  # from the end of the socket to the exit of the process
# Signals that a body can cause: a crash, the limit on processor time. Other signals come from
# outside; the kernel sends SIGKILL when memory is short.
_CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP", "SIGXCPU"}
_BUFFER_BYTES = 2**16


class ParserLimits(NamedTuple):
    """The limits of one body: seconds, and bytes of memory above what an idle parser uses."""

    seconds: float
    memory: int


class ParserProcess:
    """A parser process and the socket to it; parses one body at a time.

    ``on_exit`` is called when an idle process dies or sends something unexpected.
    """

    def __init__(self, limits: ParserLimits, on_exit: Callable[[ParserProcess], None]) -> None:
        self.used = 0
        self.being_replaced = False
        """A replacement is being started."""
        self.replaced = False
        """A replacement is ready."""
        self._hung_up = False  # the socket was closed by the process, not by us
        self._limits = limits
        self._on_exit = on_exit
        self._slots: OrderedDict[Hashable, int] = OrderedDict()
        self._loop = asyncio.get_running_loop()
        self._on_reply: OnReply | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._max_bytes = 0
        self._unsent = memoryview(b"")
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._received = 0
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    subprocess_command(wire.__file__, _worker_arguments(limits)),
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=subprocess_env(),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise WorkerError(f"No parser could be started: {error.strerror}.") from None
        ours.setblocking(False)
        self._socket = ours
        self._loop.add_reader(ours, self._on_readable)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def has_spec(self, key: Hashable) -> bool:
        """Return whether a specification has been sent already."""
        return key in self._slots

    def prepare(self, on_reply: OnReply) -> None:
        """Wait until the process has loaded its modules; it then sends a reply."""
        self._expect_reply(_START_SECONDS, 0, on_reply)

    def send_body(
        self,
        key: Hashable,
        packed: bytes,
        content: bytes | Path,
        file_format: str | None,
        *,
        max_bytes: int,
        on_reply: OnReply,
        seconds: float | None = None,
    ) -> None:
        """Send a body. ``packed`` is the specification, if its key has not been sent yet."""
        format_code = wire.FORMATS.index(file_format)
        file = None if isinstance(content, bytes) else os.open(content, os.O_RDONLY)
        self.used += 1
        body = content if isinstance(content, bytes) else b""
        slot = self._slot(key)
        head = wire.REQUEST_HEADER.pack(slot, format_code, file is not None, len(packed), len(body))
        timeout = self._limits.seconds
        timeout = timeout if seconds is None else min(timeout, seconds)
        self._expect_reply(timeout + _SPEC_SECONDS * bool(packed), max_bytes, on_reply)
        self._unsent = memoryview(b"".join((head, packed, body)))
        self._send() if file is None else self._send_with_file(file)

    def kill(self) -> None:
        """Kill the process and its children now."""
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    async def end(self) -> None:
        """Kill the process, and wait for it to exit."""
        self.kill()
        self._close_socket()
        await asyncio.shield(self._loop.run_in_executor(None, self._process.wait))

    async def killing_signal(self) -> str | None:
        """Return the outside signal that killed it; None if its body, or we, ended it."""
        if not self._hung_up:
            return None
        try:
            code = await self._loop.run_in_executor(None, self._process.wait, _EXIT_SECONDS)
        except subprocess.TimeoutExpired:  # it closed the socket but still runs
            return None
        name = signal.Signals(-code).name if code < 0 else None
        return None if name in _CRASHES else name

    def _on_connection_lost(self) -> None:
        self._hung_up = True
        self._close_socket()

    def _close_socket(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
        self._deliver_reply(NO_REPLY, b"")

    def _slot(self, key: Hashable) -> int:
        """Return the slot of a specification, replacing the least recently used one."""
        if key in self._slots:
            self._slots.move_to_end(key)
        elif len(self._slots) < wire.SLOTS:
            self._slots[key] = len(self._slots)
        else:
            self._slots[key] = self._slots.popitem(last=False)[1]
        return self._slots[key]

    def _expect_reply(self, seconds: float, max_bytes: int, on_reply: OnReply) -> None:
        self._on_reply = on_reply
        self._max_bytes = max_bytes
        self._timer = self._loop.call_later(seconds, self._close_socket)

    def _deliver_reply(self, kind: bytes, content: bytes) -> None:
        """Pass a reply to the waiting job."""
        if self._timer is not None:
            self._timer.cancel()
        self._unsent = memoryview(b"")
        self._view, self._received = memoryview(self._buffer), 0
        on_reply, self._on_reply = self._on_reply, None
        if on_reply is not None:
            on_reply(kind, content)
        elif not kind:
            self._on_exit(self)

    def _send_with_file(self, file: int) -> None:
        """Send an open file: the parser cannot open paths. The socket's buffer is empty."""
        try:
            self._advance_sent(socket.send_fds(self._socket, [self._unsent], [file]))
        except OSError:
            self._on_connection_lost()
        finally:
            os.close(file)

    def _send(self) -> None:
        """Send as much as the socket accepts."""
        try:
            self._advance_sent(self._socket.send(self._unsent))
        except (BlockingIOError, InterruptedError):
            self._advance_sent(0)
        except OSError:
            self._on_connection_lost()

    def _advance_sent(self, count: int) -> None:
        """Have the loop call again if bytes are left."""
        self._unsent = self._unsent[count:]
        if self._unsent:
            self._loop.add_writer(self._socket, self._send)
        else:
            self._loop.remove_writer(self._socket)

    def _on_readable(self) -> None:
        try:
            count = self._socket.recv_into(self._view[self._received :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        self._received += count
        if not count:
            self._on_connection_lost()
        elif self._on_reply is None or not self._parse_reply():
            self._close_socket()

    def _parse_reply(self) -> bool:
        """Deliver a complete reply; return False if it is invalid."""
        head = wire.REPLY_HEADER.size
        if self._received < head:
            return True
        kind, size = wire.REPLY_HEADER.unpack_from(self._view)
        end = head + size
        if self._received > end or size > (
            self._max_bytes if kind == wire.ARRAY else MAX_REFUSAL_BYTES
        ):
            return False
        if self._received == end:
            self._deliver_reply(kind, bytes(self._view[head:end]))
        elif end > len(self._view):
            larger = memoryview(bytearray(end))
            larger[: self._received] = self._view[: self._received]
            self._view = larger
        return True


def _worker_arguments(limits: ParserLimits) -> str:
    return json.dumps({**limits._asdict(), "parent": os.getpid()})
