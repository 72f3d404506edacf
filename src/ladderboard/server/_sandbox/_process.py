"""One parser as the server sees it: a process that may be ended at any moment.

Tasks, timeouts and streams of asyncio would take longer than most bodies do. So the event loop
calls when the line can be read, and one future is awaited for each body.
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
"""What a parser says that is dead, late or out of its mind."""

_START_SECONDS = 60.0  # seconds
_SPEC_SECONDS = 30.0  # seconds more for a new specification
_EXIT_SECONDS = 5.0  # seconds from the end of the line to the end of the process
# What a body can bring on a parser: a crash, its limit on processor time. Other signals come from
# outside; the kernel sends SIGKILL when memory is short.
_CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP", "SIGXCPU"}
_BUFFER_BYTES = 2**16


class ParserLimits(NamedTuple):
    """What one body may take: seconds, and bytes of memory above what a parser needs anyway."""

    seconds: float
    memory: int


class ParserProcess:
    """A process, and the line to it. One body at a time.

    ``ended`` is called when the process says something unasked, or dies while it has nothing to do.
    """

    def __init__(self, limits: ParserLimits, on_exit: Callable[[ParserProcess], None]) -> None:
        self.used = 0
        self.being_replaced = False
        """Another one will take its place."""
        self.replaced = False
        """Another one has."""
        self._hung_up = False  # the line ended, and not because we hung up
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
        """The process."""
        return self._process.pid

    def has_spec(self, key: Hashable) -> bool:
        """Return whether a specification was sent already."""
        return key in self._slots

    def prepare(self, on_reply: OnReply) -> None:
        """Wait until it has loaded all it needs; it answers as if it had been asked."""
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
        """Have a body read. ``packed`` is the specification of a key that is not known yet."""
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
        """End it now, and whatever it may have started."""
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    async def end(self) -> None:
        """End it, and wait until nothing is left of it."""
        self.kill()
        self._close_socket()
        await asyncio.shield(self._loop.run_in_executor(None, self._process.wait))

    async def killing_signal(self) -> str | None:
        """Return the signal from outside that ended it; None if a body did, or we."""
        if not self._hung_up:
            return None
        try:
            code = await self._loop.run_in_executor(None, self._process.wait, _EXIT_SECONDS)
        except subprocess.TimeoutExpired:  # it hung up and lives on
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
        """Return where a specification is kept, in place of the one that rested longest."""
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
        """Pass an answer on to who waits for it."""
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
        """Hand over an open file: the parser needs no way to it. The line is empty."""
        try:
            self._advance_sent(socket.send_fds(self._socket, [self._unsent], [file]))
        except OSError:
            self._on_connection_lost()
        finally:
            os.close(file)

    def _send(self) -> None:
        """Send as much as the line takes."""
        try:
            self._advance_sent(self._socket.send(self._unsent))
        except (BlockingIOError, InterruptedError):
            self._advance_sent(0)
        except OSError:
            self._on_connection_lost()

    def _advance_sent(self, count: int) -> None:
        """Let the loop call again for the rest, if there is any."""
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
        """Pass on an answer that is whole; False if there will be none."""
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
