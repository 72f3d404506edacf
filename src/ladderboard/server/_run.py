"""Running a server of boards until somebody stops it."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from ladderboard import _settings
from ladderboard.board import is_shared, open_boards
from ladderboard.errors import InvalidSetting, LadderboardError
from ladderboard.ledger import SqliteStorage
from ladderboard.server._app import make_app
from ladderboard.server._guard_listener import listen_anywhere
from ladderboard.server._guard_protocol import Limited
from ladderboard.server._options import Settings
from ladderboard.server._parse import Parsers
from ladderboard.server._proxies import check_proxies
from ladderboard.server._signals import stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from ladderboard.board import Boards
    from ladderboard.server._guard_listener import Listener

__all__ = ["BoardProtocol", "Serving", "serve"]

_BACKLOG = 512
_GRACE = 30  # seconds for what is being answered when it ends
_DEATH_SIGNAL = 1  # for prctl


class BoardProtocol(Limited, HttpToolsProtocol):  # type: ignore[misc]  # it is typed for the other
    """The connections of a server of boards."""

    most = 1000


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where and how boards are served.

    Parameters
    ----------
    database
        A path, ``sqlite:///path`` or ``postgresql+psycopg://...``.
    key_file
        Encrypts everything secret in it.
    host, port
        Where to listen.
    workers
        How many processes serve; above 1 on PostgreSQL only.
    parsers
        How many processes read submissions, for each of them.
    proxies
        Addresses or networks of reverse proxies whose ``X-Forwarded-For`` and ``-Proto`` are
        believed, with commas between them; none if None.
    settings
        Everything else.
    """

    database: str = field(repr=False)  # it may hold a password
    key_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    parsers: int = 2
    proxies: str | None = None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        workers = _settings.whole("workers", self.workers, at_least=1, at_most=256)
        if workers > 1 and not is_shared(self.database):
            raise InvalidSetting(
                "workers must be 1 on SQLite, which one process writes; for more, serve from "
                "PostgreSQL: --database postgresql+psycopg://..."
            )
        if self.proxies is not None:
            check_proxies(self.proxies)
        _settings.settle(
            self,
            workers=workers,
            parsers=_settings.whole("parsers", self.parsers, at_least=1, at_most=256),
        )


def serve(
    how: Serving,
    *,
    boards: Boards | None = None,
    told: Callable[[str, str | None], None] | None = None,
    started: Callable[[uvicorn.Server], None] | None = None,
) -> None:
    """Serve boards until Ctrl-C or SIGTERM; then end what was begun.

    ``told`` gets the URL and, once in a database's life, the organiser's token; they are printed
    if it is left out. ``boards`` may be open already; they are closed at the end. ``started`` gets
    the server before it runs, where there is one process: ``server.should_exit = True`` ends it
    from another thread.
    """
    if boards is None:
        boards = open_boards(how.database, create=True, key_file=how.key_file)
    try:
        listener = listen_anywhere(how.host, how.port)
    except LadderboardError:
        boards.close()
        raise
    try:
        boards.sweep()
        (told or _tell)(listener.url, boards.first_token())
        if how.workers > 1:
            boards.close()
            _serve_many(how, listener)
        else:
            _serve_one(how, listener, boards, started)
    finally:
        boards.close()
        listener.close()


def _tell(url: str, token: str | None) -> None:
    print(f"Ladderboard is at {url}", flush=True)  # noqa: T201 - the token is told nowhere else
    if token is not None:
        print(f"The organiser's token, told this once: {token}", flush=True)  # noqa: T201


def _config(how: Serving, app: Any, **more: Any) -> uvicorn.Config:
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
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=int(2 * BoardProtocol.idle),  # which ends it before
        timeout_graceful_shutdown=_GRACE,
        **more,
    )


def _serve_one(
    how: Serving,
    listener: Listener,
    boards: Boards,
    started: Callable[[uvicorn.Server], None] | None,
) -> None:
    settings = how.settings
    if settings.spool is None and isinstance(boards.storage, SqliteStorage):
        path = boards.storage.path  # on a disk that has room, where a crash's leftovers are swept
        settings = replace(settings, spool=path.with_name(f"{path.name}.spool"))
    app = make_app(boards, Parsers(how.parsers), settings=settings)
    server = uvicorn.Server(_config(how, app))
    with stopped_by_signals(server):
        if started is not None:
            started(server)
        server.run(sockets=[listener.socket])
    if not server.started:
        raise LadderboardError("The server could not start; its log says why.")


def _serve_many(how: Serving, listener: Listener) -> None:
    """Serve with several processes; this one only looks after them."""
    with tempfile.TemporaryDirectory(prefix="ladderboard-") as shared:
        trials = how.settings.trials or Path(shared)
        quiet = replace(how, settings=replace(how.settings, log=None, trials=trials))
        make = partial(_in_worker, quiet, os.getpid())
        config = _config(how, make, factory=True, workers=how.workers)
        listener.socket.set_inheritable(True)
        Multiprocess(config, sockets=[listener.socket]).run()


def _in_worker(how: Serving, parent: int) -> FastAPI:
    """Make the application in a process of its own."""
    _end_with(parent)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    boards = open_boards(how.database, key_file=how.key_file)
    return make_app(boards, Parsers(how.parsers), settings=how.settings, closing=boards.close)


def _end_with(parent: int) -> None:
    """End when the one that looks after us does, however it does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit
