"""The supervisor of worker processes that share one listening socket."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import InvalidSetting, LadderboardError
from ladderboard.server._process._listener import (
    HANGUP,
    MOMENT,
    describe_wait,
    die_from_signal,
    handle_signals,
)
from ladderboard.server._process._shutdown import GRACE, has_terminal, is_terminal_closed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from ladderboard.server._log import ServerLog

    Started = tuple[subprocess.Popen[bytes], socket.socket]

REPLACED_SIGNAL = "SIGUSR1"
"""Tells a worker that another one has taken over."""

_START_SECONDS = 120.0  # until a worker must be ready
_STABLE_SECONDS = 10.0  # a worker that ends earlier counts as failed
_MIN_PAUSE, _MAX_PAUSE = 0.5, 15.0  # seconds before the next start after failures
_STOP_SECONDS = GRACE + 15.0  # until workers are killed
_TICK = 1.0


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    ready_socket: socket.socket
    since: float
    ready: bool = False
    draining: bool = False

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)


class Workers:
    """Keeps a number of workers running until a signal stops them.

    SIGHUP replaces them one after another: a new one is ready before an old one drains its
    connections and exits. If a new one does not get ready, the old ones stay.

    Parameters
    ----------
    count
        How many workers.
    start
        Starts a worker; returns its process, and the socket on which it reports readiness.
    on_stop
        Called when the shutdown begins.
    log
        Gets unexpected exits and restarts.
    on_restart
        Called when a worker ended unexpectedly and is replaced.
    on_tick
        Called about once a second.
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
        self._outdated: list[_Worker] = []  # to be replaced
        self._terminal = has_terminal()
        self._signals: list[int] = []
        self._restart_wanted = self._rolling = False
        self._ever_ready = self._broken = False
        self._deadline: float | None = None
        self._announced = False  # what the shutdown waits for
        self._pause, self._not_before = 0.0, 0.0

    def run(self) -> None:
        """Run the workers until SIGTERM or SIGINT; a second one stops everything at once."""
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
                self._start_or_replace_workers()
                while self._deadline is None or self._workers:
                    self._wait(ours)
                    self._handle_signals()
                    self._poll_workers()
                    self._on_tick()
                    self._start_or_replace_workers()
            finally:
                signal.set_wakeup_fd(previous_fd)
                for worker in self._workers:
                    worker.send_signal(signal.SIGKILL)
                    worker.process.wait()
        if self._broken:
            raise LadderboardError("The server could not start; its log says why.")

    def _handle_signals(self) -> None:
        """Handle the signals received since the last call."""
        while self._signals:
            number = self._signals.pop(0)
            if number == signal.SIGCHLD:
                continue
            if number == signal.SIGHUP and not is_terminal_closed(self._terminal):
                self._restart_wanted, self._not_before = True, 0.0
            elif self._deadline is None:
                if number == signal.SIGHUP:
                    self._log.write("stopping", said=HANGUP)
                self._begin_shutdown()
            elif number != signal.SIGHUP:  # a shell and the kernel may both send it
                for worker in self._workers:
                    worker.send_signal(signal.SIGKILL)
                die_from_signal(number)

    def _begin_shutdown(self) -> None:
        self._deadline = monotonic() + _STOP_SECONDS
        self._on_stop()
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)

    def _wait(self, wakeup: socket.socket) -> None:
        starting = [worker.ready_socket for worker in self._workers if not worker.ready]
        select.select([wakeup, *starting], [], [], _TICK)
        with suppress(BlockingIOError):
            wakeup.recv(4096)

    def _poll_workers(self) -> None:
        """Note which workers have become ready and which have exited."""
        for worker in tuple(self._workers):
            if not worker.ready:
                with suppress(OSError):
                    worker.ready = bool(worker.ready_socket.recv(1))
                self._ever_ready |= worker.ready
            if worker.process.poll() is not None:
                self._workers.remove(worker)
                worker.ready_socket.close()
                if not worker.draining and self._deadline is None:
                    self._on_worker_exit(worker)
            elif not worker.ready and monotonic() > worker.since + _START_SECONDS:
                worker.send_signal(signal.SIGKILL)

    def _on_worker_exit(self, worker: _Worker) -> None:
        """Handle a worker that ended unexpectedly."""
        if worker in self._outdated:
            self._outdated.remove(worker)  # its replacement is new anyway
        state = "ended" if worker.ready else "failed"
        stable = worker.ready and monotonic() > worker.since + _STABLE_SECONDS
        self._delay_restart(0.0 if stable else max(_MIN_PAUSE, 2 * self._pause))
        self._log_worker(state, pid=worker.process.pid, code=worker.process.returncode)
        self._on_restart()
        if not worker.ready:
            self._on_start_failure()

    def _on_start_failure(self) -> None:
        """Handle a worker that did not get ready."""
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

    def _start_or_replace_workers(self) -> None:
        """Start missing workers, continue a rolling restart, or kill late workers at shutdown."""
        if self._deadline is not None:
            if (
                self._workers
                and not self._announced
                and monotonic() > self._deadline - _STOP_SECONDS + MOMENT
            ):
                self._announced = True
                message = describe_wait(_STOP_SECONDS, "open requests")
                self._log.write("stopping", said=message)
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
        """Replace one more outdated worker; all other workers are ready."""
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
        except OSError as error:  # the program may be being upgraded
            self._delay_restart(max(_MIN_PAUSE, 2 * self._pause))
            self._log_worker("failed", error=error.strerror)
            self._on_start_failure()
            return False
        return True


_VARIABLE = "_LADDERBOARD_WORKER"
_INHERITED_FD = 3  # the descriptor of the first socket that systemd passes
# Of the environment, helper processes get only these: it may hold secrets.
_PASSED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ")
_THREAD_LIMITS = (
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
_BOOTSTRAP = "import runpy, sys; file = sys.argv.pop(1); sys.path[:] = sys.argv[2:]; "
_BOOTSTRAP += "runpy.run_path(file, run_name='__main__')"


class WorkerSpec(NamedTuple):
    """What a worker needs: its parent, the listening socket, and a socket to report readiness."""

    parent: int
    socket: int
    ready_socket: int
    socket_inherited: bool
    shared_folder: str


def is_worker() -> bool:
    """Tell whether this process was started as a worker and is not serving yet."""
    return _VARIABLE in os.environ


def restart_command() -> list[str]:
    """Return the command that starts this program again, in the version installed then.

    A script is started as a script: if its path then leads to another environment, that
    environment's interpreter is used.
    """
    script = sys.argv[0]
    if sys.orig_argv[1:2] == [script] and os.access(script, os.X_OK):
        return [os.path.normpath(Path(script).absolute()), *sys.argv[1:]]  # a link stays one
    return [sys.executable, *sys.orig_argv[1:]]


def start_worker(
    command: Sequence[str], listening: socket.socket, *, socket_inherited: bool, shared_folder: Path
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a worker; return its process, and the socket on which it reports readiness.

    Nothing else is shared between parent and worker, so that they may be of different versions.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        fds = (listening.fileno(), theirs.fileno())
        spec = WorkerSpec(os.getpid(), *fds, socket_inherited, str(shared_folder))
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),  # the parent has printed the address
                env={**os.environ, _VARIABLE: json.dumps(spec._asdict())},
                pass_fds=fds,
                start_new_session=True,  # terminal signals are for the parent
            )
        except BaseException:
            ours.close()
            raise
    ours.setblocking(False)
    return process, ours


def worker_spec_from_env() -> WorkerSpec | None:
    """Return the worker specification of this process, once; None if it is not a worker."""
    text = os.environ.pop(_VARIABLE, None)
    if text is None:
        return None
    try:
        spec = WorkerSpec(**json.loads(text))
        for descriptor in (spec.socket, spec.ready_socket):
            os.set_inheritable(descriptor, False)
    except (OSError, TypeError, ValueError):
        raise InvalidSetting(
            f"{_VARIABLE} is set by a server for its worker processes only; run: unset {_VARIABLE}"
        ) from None
    return spec


def reexec(command: Sequence[str], listening: socket.socket) -> NoReturn:
    """Replace this process by the program as installed now; the socket queues new connections."""
    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGHUP}
    )  # a second SIGHUP would end the new program
    variables = {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    if listening.fileno() == _INHERITED_FD:
        os.set_inheritable(_INHERITED_FD, True)
    else:
        os.dup2(listening.fileno(), _INHERITED_FD)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], list(command), {**os.environ, **variables})  # noqa: S606 - our own program


def subprocess_command(file: str, argument: str) -> list[str]:
    """Return the command that runs one of our files by its path, with our ``sys.path``."""
    path = [os.path.normpath(Path(folder).absolute()) for folder in sys.path]  # "" is where we are
    return [sys.executable, "-I", "-B", "-c", _BOOTSTRAP, file, argument, *path]


def subprocess_env() -> dict[str, str]:
    """Return the environment of a helper process: no secrets, and one thread per library."""
    variables = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    return variables | dict.fromkeys(_THREAD_LIMITS, "1")
