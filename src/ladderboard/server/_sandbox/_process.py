"""A parser process as the server sees it; it may be killed at any moment."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from ladderboard.errors import WorkerError
from ladderboard.server._process import subprocess_command, subprocess_env
from ladderboard.server._sandbox import _worker as wire
from ladderboard.server._sandbox._reply import MAX_REFUSAL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.server._sandbox._reply import Spec


NO_REPLY = b""
"""The kind of reply of a parser that is dead, late or sends garbage."""

_START_SECONDS = 60.0
_SPEC_SECONDS = 30.0  # extra time for a new specification
_EXIT_SECONDS = 5.0  # from the end of the socket to the exit of the process
# Signals that a body can cause: a crash, the limit on processor time. Other signals come from
# outside; the kernel sends SIGKILL when memory is short.
_CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP", "SIGXCPU"}


class ParserLimits(NamedTuple):
    """The limits of one body: seconds, and bytes of memory above what an idle parser uses."""

    seconds: float
    memory: int


class ParserReply(NamedTuple):
    """A reply: its kind, and content that is not to be trusted."""

    kind: bytes
    content: bytes


class ParserProcess(asyncio.Protocol):
    """A parser process and the connection to it; parses one body at a time.

    ``on_exit`` is called when an idle process dies or sends something unexpected.
    """

    def __init__(self, limits: ParserLimits, on_exit: Callable[[ParserProcess], None]) -> None:
        self.used = 0
        self.being_replaced = False
        """A replacement is being started."""
        self.replaced = False
        """A replacement is ready."""
        self.spec: Spec | None = None
        """The specification that it got last."""
        self._hung_up = False  # the connection was closed by the process, not by us
        self._limits = limits
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._closed = False
        self._reply: asyncio.Future[ParserReply] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._max_bytes = 0
        self._received = bytearray()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
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
                self._socket.close()
                raise WorkerError(f"No parser could be started: {error.strerror}.") from None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def connect(self) -> ParserReply:
        """Wait until the process has loaded its modules; it then sends a reply."""
        reply = self._expect_reply(_START_SECONDS, 0)
        self._transport, _ = await self._loop.create_connection(lambda: self, sock=self._socket)
        return await reply

    def send_body(
        self, spec: Spec, packed_spec: bytes, content: bytes | BinaryIO, file_format: str | None
    ) -> asyncio.Future[ParserReply]:
        """Send a body and return its future reply; ``packed_spec`` is empty if it was sent before.

        A large body comes as an open file, since the parser cannot open files.
        """
        timeout = self._limits.seconds
        timeout = timeout if spec.seconds is None else min(timeout, spec.seconds)
        timeout += _SPEC_SECONDS * bool(packed_spec)
        file, body = (None, content) if isinstance(content, bytes) else (content.fileno(), b"")
        head = wire.REQUEST_HEADER.pack(
            wire.FORMATS.index(file_format), file is not None, len(packed_spec), len(body)
        )
        reply = self._expect_reply(timeout, spec.max_reply_bytes)
        self.used += 1
        self.spec = spec
        if file is not None:
            # The transport's buffer is empty: the parser has answered everything before.
            with suppress(OSError):  # it has died, which the transport reports
                socket.send_fds(self._socket, [head], [file])
            head = b""
        self._transport.write(b"".join((head, packed_spec, body)))
        return reply

    def kill(self) -> None:
        """Kill the process and its children now."""
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    async def end(self) -> None:
        """Kill the process, and wait for it to exit."""
        self.kill()
        self._close()
        await asyncio.shield(self._loop.run_in_executor(None, self._process.wait))

    async def killing_signal(self) -> str | None:
        """Return the outside signal that killed it; None if its body, or we, ended it."""
        if not self._hung_up:
            return None
        try:
            code = await self._loop.run_in_executor(None, self._process.wait, _EXIT_SECONDS)
        except subprocess.TimeoutExpired:  # it closed the connection but still runs
            return None
        name = signal.Signals(-code).name if code < 0 else None
        return None if name in _CRASHES else name

    def data_received(self, data: bytes) -> None:
        """Deliver a complete reply; end the connection if it is invalid."""
        self._received += data
        size_so_far = len(self._received) - wire.REPLY_HEADER.size
        if size_so_far < 0:
            return
        kind, size = wire.REPLY_HEADER.unpack_from(self._received)
        limit = self._max_bytes if kind == wire.ARRAY else MAX_REFUSAL_BYTES
        if self._reply is None or size_so_far > size or size > limit:
            self._close()
        elif size_so_far == size:
            content = bytes(memoryview(self._received)[wire.REPLY_HEADER.size :])
            self._deliver(ParserReply(kind, content))

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the process has gone, unless we closed the connection."""
        if not self._closed:
            self._hung_up = True
            self._close()

    def _close(self) -> None:
        """Close the connection; there will be no reply."""
        self._closed = True
        if hasattr(self, "_transport"):
            self._transport.abort()
        self._deliver(ParserReply(NO_REPLY, b""))

    def _expect_reply(self, seconds: float, max_bytes: int) -> asyncio.Future[ParserReply]:
        self._max_bytes = max_bytes
        self._timer = self._loop.call_later(seconds, self._close)
        self._reply = self._loop.create_future()
        return self._reply

    def _deliver(self, reply: ParserReply) -> None:
        """Pass a reply to the body that waits for it."""
        if self._timer is not None:
            self._timer.cancel()
        self._received = bytearray()
        waiting, self._reply = self._reply, None
        if waiting is None:
            self._on_exit(self)
        elif not waiting.done():
            waiting.set_result(reply)


def _worker_arguments(limits: ParserLimits) -> str:
    return json.dumps({**limits._asdict(), "parent": os.getpid()})
