"""Running a board server, in one process or with workers."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from ladderboard._version import __version__
from ladderboard.board import is_shared, open_boards
from ladderboard.errors import LadderboardError
from ladderboard.ledger import SqliteStorage
from ladderboard.server._app import make_app
from ladderboard.server._isolation import die_with_parent
from ladderboard.server._log import (
    CLOCK_JUMPS,
    WORKERS_RESTARTED,
    ClockWatch,
    Metrics,
    ServerLog,
    log_everything,
    machine_time,
    try_lock,
    worker_log,
)
from ladderboard.server._process._listener import (
    HANGUP,
    die_from_signal,
    handle_signals,
    listen_on_address,
    listen_on_inherited_socket,
)
from ladderboard.server._process._shutdown import (
    BoardProtocol,
    BoardServer,
    has_terminal,
    is_terminal_closed,
)
from ladderboard.server._process._workers import (
    REPLACED_SIGNAL,
    Workers,
    reexec,
    restart_command,
    start_worker,
    worker_spec_from_env,
)
from ladderboard.server._rate_limits import AddressLimit
from ladderboard.server._sandbox import ParserPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ladderboard.board import Boards
    from ladderboard.server._process._listener import Listener
    from ladderboard.server._process._workers import WorkerSpec
    from ladderboard.server._settings import Settings

_BACKLOG = 512
_METRICS = "metrics"  # inside the folder that all workers share


def serve(
    settings: Settings,
    *,
    boards: Boards | None = None,
    announce: Callable[[str, str | None], None] | None = None,
    before_run: Callable[[uvicorn.Server], None] | None = None,
    command: Sequence[str] | None = None,
) -> None:
    """Serve boards until Ctrl-C or SIGTERM; then finish open requests. A second one stops at once.

    ``announce`` is called with the URL and, on the first start of a database, the organiser's
    token; without it both are printed. ``boards`` may be open already; they are closed at the end.
    ``before_run`` is called with the server before it runs, if there is one process:
    ``server.should_exit = True`` stops it from another thread.

    ``command`` starts this program again so that it calls this function: once for every worker
    (default: the command line of this process), and after SIGHUP (default: SIGHUP stops a server
    that is one process).
    """
    if serve_as_worker(settings, boards):
        return
    settings.check_workers()
    settings = settings.with_metrics_token()
    if boards is None:
        boards = open_boards(settings.database, create=True, key_file=settings.key_file)
    try:
        inherited = listen_on_inherited_socket()
        listener = inherited or listen_on_address(settings.host, settings.port)
    except LadderboardError:
        boards.close()
        raise
    signals = _SignalState(listener, can_restart=command is not None)
    log = ServerLog(settings.log, machine_time)
    try:
        with _warn_if_served_twice(boards, log):
            boards.remove_orphaned_files()
            (announce or _print_address)(listener.url, boards.create_first_token())
            with log_everything(log):
                log.write("start", **_describe(settings, listener))
                if settings.workers > 1:
                    boards.close()
                    worker_command = command or restart_command()
                    _serve_with_workers(
                        settings,
                        listener,
                        worker_command,
                        log,
                        socket_inherited=inherited is not None,
                    )
                else:
                    _serve_in_process(
                        settings,
                        listener,
                        boards,
                        before_run,
                        signals,
                        log=log,
                        socket_inherited=inherited is not None,
                    )
                log.write("stop")
    finally:
        boards.close()
        listener.close()
    if command is not None and signals.kept_socket is not None:
        reexec(command, signals.kept_socket)


@contextmanager
def _warn_if_served_twice(boards: Boards, log: ServerLog) -> Iterator[None]:
    """Write a warning if another server has the same SQLite file open; lock it meanwhile.

    The lock is on a file of its own: closing the database a second time would drop SQLite's locks.
    It ends with this process, also when that is replaced by its successor.
    """
    if not isinstance(boards.storage, SqliteStorage) or os.name != "posix":
        yield
        return
    path = boards.storage.path
    lock = path.with_name(f"{path.name}.serving")
    try:
        file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:  # a full disk, which other checks report
        yield
        return
    locked = try_lock(file)
    if not locked:
        message = (
            f"Another server uses {path.name}. No data are at risk, but each counts rate limits by "
            "itself and waits while the other writes. Stop one."
        )
        log.write("warning", said=message)
    try:
        yield
    finally:
        if locked:
            lock.unlink(missing_ok=True)
        os.close(file)


def serve_as_worker(settings: Settings, boards: Boards | None = None) -> bool:
    """Serve as a worker if this process was started as one; return whether it was."""
    spec = worker_spec_from_env()
    if spec is None:
        return False
    if boards is not None:
        boards.close()
    settings = settings.with_metrics_token()
    with worker_log(settings.log):
        _serve_worker(spec, settings)
    return True


def _describe(settings: Settings, listener: Listener) -> dict[str, Any]:
    """Return the fields of the log's ``start`` event; of the database only its kind."""
    return {
        "version": __version__,
        "pid": os.getpid(),
        "database": "postgresql" if is_shared(settings.database) else "sqlite",
        "encrypted": settings.key_file is not None,
        "workers": settings.workers,
        "parsers": settings.parsers,
        "listening": listener.url,
        "url": settings.url,
    }


def _print_address(url: str, token: str | None) -> None:
    lines = [f"Ladderboard is at {url}"]
    if token is not None:
        lines.append(f"The organiser's token, shown only once: {token}")  # and nowhere else
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _uvicorn_config(settings: Settings, app: Any) -> uvicorn.Config:
    # No access log: it would hold query strings. The application writes its own.
    return uvicorn.Config(
        app,
        loop="auto",
        http=BoardProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=bool(settings.proxy),
        forwarded_allow_ips=list(settings.proxy),
        server_header=False,
        date_header=True,
        backlog=_BACKLOG,
        timeout_keep_alive=int(2 * BoardProtocol.idle_seconds),  # BoardProtocol closes it earlier
    )


def _address_limit(settings: Settings) -> AddressLimit:
    return AddressLimit(settings.address_connections, ",".join(settings.proxy) or None)


class _SignalState:
    """Handles the signals of a server that is one process."""

    server: BoardServer

    kept_socket: socket.socket | None = None
    """A duplicate of the socket for the next process after a restart."""

    def __init__(self, listener: Listener, *, can_restart: bool) -> None:
        self._listener, self._can_restart = listener, can_restart
        self._stopped, self._terminal = False, has_terminal()

    def stop(self, number: int) -> None:
        """Stop the server; the second time at once."""
        if self._stopped:
            die_from_signal(number)
        self._stopped = self.server.should_exit = True
        if self.kept_socket is not None:
            self.kept_socket.close()
            self.kept_socket = None

    def restart(self, number: int) -> None:
        """Restart the server; stop it if its terminal was closed."""
        if not self._can_restart or is_terminal_closed(self._terminal):
            if not self._stopped:  # a shell and the kernel may both send it
                self.server.stop_reason = HANGUP
                self.stop(number)
        elif not self.server.should_exit:
            self.kept_socket = self._listener.socket.dup()
            self.server.socket_inherited = self.server.should_exit = True


def _serve_in_process(
    settings: Settings,
    listener: Listener,
    boards: Boards,
    before_run: Callable[[uvicorn.Server], None] | None,
    signals: _SignalState,
    *,
    log: ServerLog,
    socket_inherited: bool,
) -> None:
    if settings.spool is None and isinstance(boards.storage, SqliteStorage):
        path = boards.storage.path  # on a large disk, and found again after a crash
        spool = path.with_name(f"{path.name}.spool")
        settings = settings.model_copy(update={"spool": spool})
    app = make_app(boards, ParserPool(settings.parsers), settings=settings)
    signals.server = server = BoardServer(
        _uvicorn_config(settings, app),
        socket_inherited=socket_inherited,
        addresses=_address_limit(settings),
        say=lambda message: log.write("stopping", said=message),
    )
    with handle_signals(
        {"SIGINT": signals.stop, "SIGTERM": signals.stop, "SIGHUP": signals.restart}
    ):
        if before_run is not None:
            before_run(server)
        with suppress(SystemExit):  # from uvicorn, if it could not start
            server.run(sockets=[listener.socket])
    if not server.started:
        raise LadderboardError("The server could not start; its log says why.")


def _serve_with_workers(
    settings: Settings,
    listener: Listener,
    command: Sequence[str],
    log: ServerLog,
    *,
    socket_inherited: bool,
) -> None:
    """Serve with several workers; this process only supervises them."""
    with tempfile.TemporaryDirectory(prefix="ladderboard-") as shared_folder:
        start = partial(
            start_worker,
            command,
            listener.socket,
            socket_inherited=socket_inherited,
            shared_folder=Path(shared_folder),
        )
        with closing(Metrics(Path(shared_folder, _METRICS))) as metrics:
            Workers(
                settings.workers,
                start,
                on_stop=listener.close,
                log=log,
                on_restart=partial(metrics.add, WORKERS_RESTARTED),
                on_tick=ClockWatch(log, partial(metrics.add, CLOCK_JUMPS)).check,
            ).run()


def _serve_worker(spec: WorkerSpec, settings: Settings) -> None:
    """Serve as a worker."""
    die_with_parent(spec.parent, signal.SIGTERM)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    boards = open_boards(settings.database, key_file=settings.key_file)
    metrics = Metrics(Path(spec.shared_folder, _METRICS))
    app = make_app(
        boards,
        ParserPool(settings.parsers),
        settings=settings,
        on_close=boards.close,
        metrics=metrics,
    )
    with (
        socket.socket(fileno=spec.ready_socket) as ready_socket,
        socket.socket(fileno=spec.socket) as listening,
    ):
        server = BoardServer(
            _uvicorn_config(settings, app),
            socket_inherited=spec.socket_inherited,
            ready=lambda: ready_socket.sendall(b"1"),
            addresses=_address_limit(settings),
        )

        def stop(_: int) -> None:
            server.should_exit = True

        def drain(_: int) -> None:
            server.replaced = True

        # The parent handles these.
        ignored = dict.fromkeys(("SIGINT", "SIGHUP"), lambda _: None)
        with handle_signals({"SIGTERM": stop, REPLACED_SIGNAL: drain, **ignored}):
            server.run(sockets=[listening])
