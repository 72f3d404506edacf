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
from ladderboard.server._process import environment, program
from ladderboard.server._sandbox import _worker as wire
from ladderboard.server._sandbox._reply import MOST_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    Answered = Callable[[bytes, bytes], None]


NOTHING = b""
"""What a parser says that is dead, late or out of its mind."""

_STARTING = 60.0  # seconds
_SETTLING = 30.0  # seconds more for a new specification
_DYING = 5.0  # seconds from the end of the line to the end of the process
# What a body can bring on a parser: a crash, its limit on processor time. Other signals come from
# outside; the kernel sends SIGKILL when memory is short.
_CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP", "SIGXCPU"}
_HELD = 2**16


class Patience(NamedTuple):
    """What one body may take: seconds, and bytes of memory above what a parser needs anyway."""

    seconds: float
    memory: int


class Parser:
    """A process, and the line to it. One body at a time.

    ``ended`` is called when the process says something unasked, or dies while it has nothing to do.
    """

    def __init__(self, patience: Patience, ended: Callable[[Parser], None]) -> None:
        self.used = 0
        self.leaving = False
        """Another one will take its place."""
        self.left = False
        """Another one has."""
        self._vanished = False  # the line ended, and not because we hung up
        self._patience = patience
        self._ended = ended
        self._slots: OrderedDict[Hashable, int] = OrderedDict()
        self._loop = asyncio.get_running_loop()
        self._answered: Answered | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._most = 0
        self._unsent = memoryview(b"")
        self._buffer = bytearray(_HELD)
        self._into = memoryview(self._buffer)
        self._at = 0
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    program(wire.__file__, _told(patience)),
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=environment(),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise WorkerError(f"No parser could be started: {error.strerror}.") from None
        ours.setblocking(False)
        self._line = ours
        self._loop.add_reader(ours, self._readable)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def knows(self, key: Hashable) -> bool:
        """Return whether a specification was sent already."""
        return key in self._slots

    def get_ready(self, answered: Answered) -> None:
        """Wait until it has loaded all it needs; it answers as if it had been asked."""
        self._await(_STARTING, 0, answered)

    def ask(
        self,
        key: Hashable,
        packed: bytes,
        content: bytes | Path,
        told: str | None,
        *,
        most: int,
        answered: Answered,
        seconds: float | None = None,
    ) -> None:
        """Have a body read. ``packed`` is the specification of a key that is not known yet."""
        formed = wire.FORMATS.index(told)
        file = None if isinstance(content, bytes) else os.open(content, os.O_RDONLY)
        self.used += 1
        body = content if isinstance(content, bytes) else b""
        slot = self._slot(key)
        head = wire.ASKED.pack(slot, formed, file is not None, len(packed), len(body))
        patience = self._patience.seconds
        patience = patience if seconds is None else min(patience, seconds)
        self._await(patience + _SETTLING * bool(packed), most, answered)
        self._unsent = memoryview(b"".join((head, packed, body)))
        self._send() if file is None else self._pass(file)

    def kill(self) -> None:
        """End it now, and whatever it may have started."""
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    async def end(self) -> None:
        """End it, and wait until nothing is left of it."""
        self.kill()
        self._hang_up()
        await asyncio.shield(self._loop.run_in_executor(None, self._process.wait))

    async def killed_by(self) -> str | None:
        """Return the signal from outside that ended it; None if a body did, or we."""
        if not self._vanished:
            return None
        try:
            code = await self._loop.run_in_executor(None, self._process.wait, _DYING)
        except subprocess.TimeoutExpired:  # it hung up and lives on
            return None
        name = signal.Signals(-code).name if code < 0 else None
        return None if name in _CRASHES else name

    def _vanish(self) -> None:
        self._vanished = True
        self._hang_up()

    def _hang_up(self) -> None:
        if self._line.fileno() >= 0:
            self._loop.remove_reader(self._line)
            self._loop.remove_writer(self._line)
            self._line.close()
        self._say(NOTHING, b"")

    def _slot(self, key: Hashable) -> int:
        """Return where a specification is kept, in place of the one that rested longest."""
        if key in self._slots:
            self._slots.move_to_end(key)
        elif len(self._slots) < wire.SLOTS:
            self._slots[key] = len(self._slots)
        else:
            self._slots[key] = self._slots.popitem(last=False)[1]
        return self._slots[key]

    def _await(self, seconds: float, most: int, answered: Answered) -> None:
        self._answered = answered
        self._most = most
        self._timer = self._loop.call_later(seconds, self._hang_up)

    def _say(self, kind: bytes, said: bytes) -> None:
        """Pass an answer on to who waits for it."""
        if self._timer is not None:
            self._timer.cancel()
        self._unsent = memoryview(b"")
        self._into, self._at = memoryview(self._buffer), 0
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(kind, said)
        elif not kind:
            self._ended(self)

    def _pass(self, file: int) -> None:
        """Hand over an open file: the parser needs no way to it. The line is empty."""
        try:
            self._sent(socket.send_fds(self._line, [self._unsent], [file]))
        except OSError:
            self._vanish()
        finally:
            os.close(file)

    def _send(self) -> None:
        """Send as much as the line takes."""
        try:
            self._sent(self._line.send(self._unsent))
        except (BlockingIOError, InterruptedError):
            self._sent(0)
        except OSError:
            self._vanish()

    def _sent(self, count: int) -> None:
        """Let the loop call again for the rest, if there is any."""
        self._unsent = self._unsent[count:]
        if self._unsent:
            self._loop.add_writer(self._line, self._send)
        else:
            self._loop.remove_writer(self._line)

    def _readable(self) -> None:
        try:
            got = self._line.recv_into(self._into[self._at :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            got = 0
        self._at += got
        if not got:
            self._vanish()
        elif self._answered is None or not self._whole():
            self._hang_up()

    def _whole(self) -> bool:
        """Pass on an answer that is whole; False if there will be none."""
        head = wire.SAID.size
        if self._at < head:
            return True
        kind, size = wire.SAID.unpack_from(self._into)
        end = head + size
        if self._at > end or size > (self._most if kind == wire.ARRAY else MOST_WORDS):
            return False
        if self._at == end:
            self._say(kind, bytes(self._into[head:end]))
        elif end > len(self._into):
            larger = memoryview(bytearray(end))
            larger[: self._at] = self._into[: self._at]
            self._into = larger
        return True


def _told(patience: Patience) -> str:
    return json.dumps({**patience._asdict(), "parent": os.getpid()})
