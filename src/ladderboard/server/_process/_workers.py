"""Workers: several processes that answer at one socket, and the one that looks after them."""

from __future__ import annotations

import select
import signal
import socket
from contextlib import closing, suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from ladderboard.errors import LadderboardError
from ladderboard.server._process._shutdown import GRACE
from ladderboard.server._process._signals import die_of, handled, has_terminal, hung_up

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from ladderboard.server._log import Log

    Started = tuple[subprocess.Popen[bytes], socket.socket]

LEAVE = "SIGUSR1"
"""Says to a worker that another one answers in its place."""

_STARTING = 120.0  # seconds until a worker must answer
_SOON = 10.0  # seconds; one that ends before was no good
_LEAST, _MOST = 0.5, 15.0  # seconds before the next try, where several came to nothing
_LATE = GRACE + 15.0  # seconds to end
_TICK = 1.0


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    line: socket.socket
    since: float
    ready: bool = False
    leaves: bool = False

    def say(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)


class Workers:
    """Keeps so many processes answering until a signal ends them.

    SIGHUP replaces them one after another: a new one answers before an old one leaves, which then
    has time for everybody whom it began to serve. If a new one does not come to answer, the old
    ones stay.

    Parameters
    ----------
    count
        How many.
    start
        Starts one; returns it, and the line on which it says that it answers.
    stopping
        Is called when the end begins.
    log
        Where that is told which nobody asked for.
    restarted
        Is called when one ended by itself and is replaced.
    look
        Is called every second or so.
    """

    def __init__(
        self,
        count: int,
        start: Callable[[], Started],
        *,
        stopping: Callable[[], None],
        log: Log,
        restarted: Callable[[], None] = lambda: None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._count, self._start, self._stopping, self._log = count, start, stopping, log
        self._restarted, self._look_around = restarted, look
        self._all: list[_Worker] = []
        self._old: list[_Worker] = []  # those that are still to be replaced
        self._terminal = has_terminal()
        self._came: list[int] = []  # signals
        self._again = self._rolling = False
        self._served = self._broken = False
        self._ends: float | None = None
        self._pause, self._not_before = 0.0, 0.0

    def run(self) -> None:
        """Keep them until SIGTERM or SIGINT; a second one ends everything at once."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGCHLD")
        with closing(ours), closing(theirs), handled(dict.fromkeys(names, self._came.append)):
            before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
            try:
                self._step()
                while self._ends is None or self._all:
                    self._wait(ours)
                    self._listen()
                    self._look()
                    self._look_around()
                    self._step()
            finally:
                signal.set_wakeup_fd(before)
                for each in self._all:
                    each.say(signal.SIGKILL)
                    each.process.wait()
        if self._broken:
            raise LadderboardError("The server could not start; its log says why.")

    def _listen(self) -> None:
        """Do what signals say."""
        while self._came:
            number = self._came.pop(0)
            if number == signal.SIGCHLD:
                continue
            if number == signal.SIGHUP and not hung_up(self._terminal):
                self._again, self._not_before = True, 0.0
            elif self._ends is None:
                self._end()
            else:
                for each in self._all:
                    each.say(signal.SIGKILL)
                die_of(number)

    def _end(self) -> None:
        self._ends = monotonic() + _LATE
        self._stopping()
        for each in self._all:
            each.say(signal.SIGTERM)

    def _wait(self, woken: socket.socket) -> None:
        starting = [each.line for each in self._all if not each.ready]
        select.select([woken, *starting], [], [], _TICK)
        with suppress(BlockingIOError):
            woken.recv(4096)

    def _look(self) -> None:
        """See who answers now, and who is no more."""
        for each in tuple(self._all):
            if not each.ready:
                with suppress(OSError):
                    each.ready = bool(each.line.recv(1))
                self._served |= each.ready
            if each.process.poll() is not None:
                self._all.remove(each)
                each.line.close()
                if not each.leaves and self._ends is None:
                    self._lost(each)
            elif not each.ready and monotonic() > each.since + _STARTING:
                each.say(signal.SIGKILL)

    def _lost(self, worker: _Worker) -> None:
        """One ended that nobody told to."""
        if worker in self._old:
            self._old.remove(worker)  # the next one is new anyway
        state = "ended" if worker.ready else "failed"
        good = worker.ready and monotonic() > worker.since + _SOON
        self._slow_down(0.0 if good else max(_LEAST, 2 * self._pause))
        self._tell(state, pid=worker.process.pid, code=worker.process.returncode)
        self._restarted()
        if not worker.ready:
            self._failed()

    def _failed(self) -> None:
        """One did not come to answer."""
        if not self._served:
            self._broken = True
            self._end()
        elif self._rolling:
            self._rolling, self._old = False, []
            self._log.write("restart", state="given up")

    def _slow_down(self, pause: float) -> None:
        self._pause = min(_MOST, pause)
        self._not_before = monotonic() + self._pause

    def _tell(self, state: str, **fields: Any) -> None:
        self._log.write("worker", state=state, **fields, wait=self._pause)

    def _step(self) -> None:
        """Do what is next."""
        if self._ends is not None:
            if monotonic() > self._ends:
                for each in self._all:
                    each.say(signal.SIGKILL)
            return
        staying = [each for each in self._all if not each.leaves]
        while len(staying) < self._count and monotonic() >= self._not_before:
            if not self._one_more():
                return
            staying = [each for each in self._all if not each.leaves]
        if len(staying) >= self._count and all(each.ready for each in staying):
            self._roll(len(staying))

    def _roll(self, staying: int) -> None:
        """Replace one more of the old ones; all that stay answer."""
        if self._again and not self._rolling:
            self._again, self._rolling = False, True
            self._old = [each for each in self._all if not each.leaves]
            self._log.write("restart", state="begun")
        if staying > self._count and self._old:
            leaving = self._old.pop(0)
            leaving.leaves = True
            leaving.say(getattr(signal, LEAVE))
            staying -= 1
        if self._old and staying == self._count:
            self._one_more()
        elif self._rolling and not self._old:
            self._rolling = False
            self._log.write("restart", state="done")

    def _one_more(self) -> bool:
        try:
            self._all.append(_Worker(*self._start(), since=monotonic()))
        except OSError as error:  # the program may be on its way to another version
            self._slow_down(max(_LEAST, 2 * self._pause))
            self._tell("failed", error=error.strerror)
            self._failed()
            return False
        return True
