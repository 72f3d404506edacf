"""Running a server of boards until somebody stops it."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
import tempfile
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from ladderboard._version import __version__
from ladderboard.board import is_shared, open_boards
from ladderboard.errors import LadderboardError
from ladderboard.ledger import SqliteStorage
from ladderboard.server._app import make_app
from ladderboard.server._log import ClockWatch, Log, log_everything, machine_time, worker_log
from ladderboard.server._metrics import CLOCK_JUMPS, WORKERS_RESTARTED, Metrics
from ladderboard.server._process._listener import listen_anywhere, listen_given
from ladderboard.server._process._shutdown import BoardProtocol, BoardServer
from ladderboard.server._process._signals import die_of, handled, has_terminal, hung_up
from ladderboard.server._process._spawn import appointed, own_command, start_again, start_worker
from ladderboard.server._process._workers import LEAVE, Workers
from ladderboard.server._rate_limits import AddressLimit
from ladderboard.server._sandbox import Parsers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ladderboard.board import Boards
    from ladderboard.server._process._listener import Listener
    from ladderboard.server._process._spawn import Post
    from ladderboard.server._serving import Serving

_BACKLOG = 512
_METRICS = "metrics"  # a folder in the one that all workers share
_DEATH_SIGNAL = 1  # for prctl


def serve(
    how: Serving,
    *,
    boards: Boards | None = None,
    told: Callable[[str, str | None], None] | None = None,
    started: Callable[[uvicorn.Server], None] | None = None,
    command: Sequence[str] | None = None,
) -> None:
    """Serve boards until Ctrl-C or SIGTERM; then end what was begun. A second one ends it at once.

    ``told`` gets the URL and, once in a database's life, the organiser's token; they are printed
    if it is left out. ``boards`` may be open already; they are closed at the end. ``started`` gets
    the server before it runs, where there is one process: ``server.should_exit = True`` ends it
    from another thread.

    ``command`` starts this program anew, and leads here again: for each of several processes (then
    it is the own command line if left out), and after SIGHUP (where there is one process and no
    command, that ends it, too).
    """
    if serve_as_worker(how, boards):
        return
    if boards is None:
        boards = open_boards(how.database, create=True, key_file=how.key_file)
    try:
        given = listen_given()
        listener = given or listen_anywhere(how.host, how.port)
    except LadderboardError:
        boards.close()
        raise
    wishes = _Wishes(listener, may_follow=command is not None)
    log = Log(how.settings.log, machine_time)
    try:
        boards.remove_orphaned_files()
        (told or _tell)(listener.url, boards.create_first_token())
        with log_everything(log):
            log.write("start", **_describe(how, listener))
            if how.workers > 1:
                boards.close()
                again = command or own_command()
                _serve_many(how, listener, again, log, handed=given is not None)
            else:
                _serve_one(how, listener, boards, started, wishes, handed=given is not None)
            log.write("stop")
    finally:
        boards.close()
        listener.close()
    if command is not None and wishes.kept is not None:
        start_again(command, wishes.kept)


def serve_as_worker(how: Serving, boards: Boards | None = None) -> bool:
    """Serve as one of several processes if this one was started to; tell whether."""
    post = appointed()
    if post is None:
        return False
    if boards is not None:
        boards.close()
    with worker_log(how.settings.log):
        _serve_as(post, how)
    return True


def _describe(how: Serving, listener: Listener) -> dict[str, Any]:
    """Return what the log says of a server that starts; of the database only its kind."""
    return {
        "version": __version__,
        "pid": os.getpid(),
        "database": "postgresql" if is_shared(how.database) else "sqlite",
        "encrypted": how.key_file is not None,
        "workers": how.workers,
        "parsers": how.parsers,
        "listening": listener.url,
        "url": how.settings.url,
    }


def _tell(url: str, token: str | None) -> None:
    print(f"Ladderboard is at {url}", flush=True)  # noqa: T201 - the token is told nowhere else
    if token is not None:
        print(f"The organiser's token, told this once: {token}", flush=True)  # noqa: T201


def _config(how: Serving, app: Any) -> uvicorn.Config:
    # The access log would hold query strings; ours is written by the application.
    return uvicorn.Config(
        app,
        loop="auto",
        http=BoardProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=how.proxies is not None,
        forwarded_allow_ips=how.proxies,
        server_header=False,
        date_header=True,
        backlog=_BACKLOG,
        timeout_keep_alive=int(2 * BoardProtocol.idle),  # which ends it before
    )


def _address_limit(how: Serving) -> AddressLimit:
    return AddressLimit(how.settings.address_connections, how.proxies)


class _Wishes:
    """What signals ask of a server that is one process."""

    server: BoardServer

    kept: socket.socket | None = None
    """The socket, where another one shall take its place: this one closes its own."""

    def __init__(self, listener: Listener, *, may_follow: bool) -> None:
        self._listener, self._may_follow = listener, may_follow
        self._stopped, self._terminal = False, has_terminal()

    def stop(self, number: int) -> None:
        """End it; the second time at once."""
        if self._stopped:
            die_of(number)
        self._stopped = self.server.should_exit = True
        if self.kept is not None:
            self.kept.close()
            self.kept = None

    def hang_up(self, number: int) -> None:
        """Let another one follow, unless it was a terminal that went."""
        if not self._may_follow or hung_up(self._terminal):
            self.stop(number)
        elif not self.server.should_exit:
            self.kept = self._listener.socket.dup()
            self.server.handed = self.server.should_exit = True


def _serve_one(
    how: Serving,
    listener: Listener,
    boards: Boards,
    started: Callable[[uvicorn.Server], None] | None,
    wishes: _Wishes,
    *,
    handed: bool,
) -> None:
    settings = how.settings
    if settings.spool is None and isinstance(boards.storage, SqliteStorage):
        path = boards.storage.path  # on a disk that has room, where a crash's leftovers are swept
        settings = replace(settings, spool=path.with_name(f"{path.name}.spool"))
    app = make_app(boards, Parsers(how.parsers), settings=settings)
    wishes.server = server = BoardServer(
        _config(how, app), handed=handed, addresses=_address_limit(how)
    )
    with handled({"SIGINT": wishes.stop, "SIGTERM": wishes.stop, "SIGHUP": wishes.hang_up}):
        if started is not None:
            started(server)
        with suppress(SystemExit):  # uvicorn's, where it could not start
            server.run(sockets=[listener.socket])
    if not server.started:
        raise LadderboardError("The server could not start; its log says why.")


def _serve_many(
    how: Serving, listener: Listener, command: Sequence[str], log: Log, *, handed: bool
) -> None:
    """Serve with several processes; this one only looks after them."""
    with tempfile.TemporaryDirectory(prefix="ladderboard-") as shared:
        start = partial(start_worker, command, listener.socket, handed=handed, trials=Path(shared))
        with closing(Metrics(Path(shared, _METRICS))) as metrics:
            Workers(
                how.workers,
                start,
                stopping=listener.close,
                log=log,
                restarted=partial(metrics.add, WORKERS_RESTARTED),
                look=ClockWatch(log, partial(metrics.add, CLOCK_JUMPS)).look,
            ).run()


def _serve_as(post: Post, how: Serving) -> None:
    """Serve as one of several processes."""
    _end_with(post.parent)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    boards = open_boards(how.database, key_file=how.key_file)
    trials = how.settings.trials or Path(post.trials)
    settings = replace(how.settings, trials=trials)
    metrics = Metrics(Path(post.trials, _METRICS))
    app = make_app(
        boards, Parsers(how.parsers), settings=settings, closing=boards.close, metrics=metrics
    )
    with socket.socket(fileno=post.line) as line, socket.socket(fileno=post.socket) as listening:
        server = BoardServer(
            _config(how, app),
            handed=post.handed,
            ready=lambda: line.sendall(b"1"),
            addresses=_address_limit(how),
        )

        def stop(_: int) -> None:
            server.should_exit = True

        def leave(_: int) -> None:
            server.replaced = True

        # The parent hears the others.
        quiet = dict.fromkeys(("SIGINT", "SIGHUP"), lambda _: None)
        with handled({"SIGTERM": stop, LEAVE: leave, **quiet}):
            server.run(sockets=[listening])


def _end_with(parent: int) -> None:
    """End when the one that looks after us does, however it does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit
