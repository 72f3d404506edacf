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
from ladderboard.server._process._signals import (
    die_from_signal,
    handle_signals,
    has_terminal,
    is_terminal_closed,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from ladderboard.server._log import ServerLog

    Started = tuple[subprocess.Popen[bytes], socket.socket]

REPLACED_SIGNAL = "SIGUSR1"
"""Says to a worker that another one answers in its place."""

_START_SECONDS = 120.0  # seconds until a worker must answer
_STABLE_SECONDS = 10.0  # seconds; one that ends before was no good
_MIN_PAUSE, _MAX_PAUSE = 0.5, 15.0  # seconds before the next try, where several came to nothing
_STOP_SECONDS = GRACE + 15.0  # seconds to end
_TICK = 1.0


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    line: socket.socket
    since: float
    ready: bool = False
    draining: bool = False

    def send_signal(self, number: int) -> None:
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
    on_stop
        Is called when the end begins.
    log
        Where that is told which nobody asked for.
    on_restart
        Is called when one ended by itself and is replaced.
    on_tick
        Is called every second or so.
    """

    def __init__(
        self,
        count: int,
        start: Callable[[], Started],
        *,
        on_stop: Callable[[], None],
        log: ServerLog,
        on_restart: Callable[[], None] = lambda: None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._count, self._start, self._on_stop, self._log = count, start, on_stop, log
        self._on_restart, self._on_tick = on_restart, on_tick
        self._workers: list[_Worker] = []
        self._outdated: list[_Worker] = []  # those that are still to be replaced
        self._terminal = has_terminal()
        self._signals: list[int] = []  # signals
        self._restart_wanted = self._rolling = False
        self._ever_ready = self._broken = False
        self._deadline: float | None = None
        self._pause, self._not_before = 0.0, 0.0

    def run(self) -> None:
        """Keep them until SIGTERM or SIGINT; a second one ends everything at once."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGCHLD")
        with (
            closing(ours),
            closing(theirs),
            handle_signals(dict.fromkeys(names, self._signals.append)),
        ):
            previous_fd = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
            try:
                self._advance()
                while self._deadline is None or self._workers:
                    self._wait(ours)
                    self._handle_signals()
                    self._poll_workers()
                    self._on_tick()
                    self._advance()
            finally:
                signal.set_wakeup_fd(previous_fd)
                for worker in self._workers:
                    worker.send_signal(signal.SIGKILL)
                    worker.process.wait()
        if self._broken:
            raise LadderboardError("The server could not start; its log says why.")

    def _handle_signals(self) -> None:
        """Do what signals say."""
        while self._signals:
            number = self._signals.pop(0)
            if number == signal.SIGCHLD:
                continue
            if number == signal.SIGHUP and not is_terminal_closed(self._terminal):
                self._restart_wanted, self._not_before = True, 0.0
            elif self._deadline is None:
                self._begin_shutdown()
            else:
                for worker in self._workers:
                    worker.send_signal(signal.SIGKILL)
                die_from_signal(number)

    def _begin_shutdown(self) -> None:
        self._deadline = monotonic() + _STOP_SECONDS
        self._on_stop()
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)

    def _wait(self, wakeup: socket.socket) -> None:
        starting = [worker.line for worker in self._workers if not worker.ready]
        select.select([wakeup, *starting], [], [], _TICK)
        with suppress(BlockingIOError):
            wakeup.recv(4096)

    def _poll_workers(self) -> None:
        """See who answers now, and who is no more."""
        for worker in tuple(self._workers):
            if not worker.ready:
                with suppress(OSError):
                    worker.ready = bool(worker.line.recv(1))
                self._ever_ready |= worker.ready
            if worker.process.poll() is not None:
                self._workers.remove(worker)
                worker.line.close()
                if not worker.draining and self._deadline is None:
                    self._on_worker_exit(worker)
            elif not worker.ready and monotonic() > worker.since + _START_SECONDS:
                worker.send_signal(signal.SIGKILL)

    def _on_worker_exit(self, worker: _Worker) -> None:
        """One ended that nobody told to."""
        if worker in self._outdated:
            self._outdated.remove(worker)  # the next one is new anyway
        state = "ended" if worker.ready else "failed"
        stable = worker.ready and monotonic() > worker.since + _STABLE_SECONDS
        self._delay_restart(0.0 if stable else max(_MIN_PAUSE, 2 * self._pause))
        self._log_worker(state, pid=worker.process.pid, code=worker.process.returncode)
        self._on_restart()
        if not worker.ready:
            self._on_start_failure()

    def _on_start_failure(self) -> None:
        """One did not come to answer."""
        if not self._ever_ready:
            self._broken = True
            self._begin_shutdown()
        elif self._rolling:
            self._rolling, self._outdated = False, []
            self._log.write("restart", state="given up")

    def _delay_restart(self, pause: float) -> None:
        self._pause = min(_MAX_PAUSE, pause)
        self._not_before = monotonic() + self._pause

    def _log_worker(self, state: str, **fields: Any) -> None:
        self._log.write("worker", state=state, **fields, wait=self._pause)

    def _advance(self) -> None:
        """Do what is next."""
        if self._deadline is not None:
            if monotonic() > self._deadline:
                for worker in self._workers:
                    worker.send_signal(signal.SIGKILL)
            return
        staying = [worker for worker in self._workers if not worker.draining]
        while len(staying) < self._count and monotonic() >= self._not_before:
            if not self._start_worker():
                return
            staying = [worker for worker in self._workers if not worker.draining]
        if len(staying) >= self._count and all(worker.ready for worker in staying):
            self._roll_restart(len(staying))

    def _roll_restart(self, staying: int) -> None:
        """Replace one more of the old ones; all that stay answer."""
        if self._restart_wanted and not self._rolling:
            self._restart_wanted, self._rolling = False, True
            self._outdated = [worker for worker in self._workers if not worker.draining]
            self._log.write("restart", state="begun")
        if staying > self._count and self._outdated:
            leaving = self._outdated.pop(0)
            leaving.draining = True
            leaving.send_signal(getattr(signal, REPLACED_SIGNAL))
            staying -= 1
        if self._outdated and staying == self._count:
            self._start_worker()
        elif self._rolling and not self._outdated:
            self._rolling = False
            self._log.write("restart", state="done")

    def _start_worker(self) -> bool:
        try:
            self._workers.append(_Worker(*self._start(), since=monotonic()))
        except OSError as error:  # the program may be on its way to another version
            self._delay_restart(max(_MIN_PAUSE, 2 * self._pause))
            self._log_worker("failed", error=error.strerror)
            self._on_start_failure()
            return False
        return True
