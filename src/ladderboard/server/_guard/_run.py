"""Running a guard's server, and checking its private files and token."""

from __future__ import annotations

import logging
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from ladderboard._atomic_file import SQLITE_SUFFIXES
from ladderboard.errors import InvalidSetting, StorageFailed, storage_error
from ladderboard.holdout import Gate
from ladderboard.server._guard._app import MAX_BYTES, GateApp, GuardApp
from ladderboard.server._process import GracefulServer, GuardProtocol, stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.holdout import Holdout
    from ladderboard.server._process import Listener

_SUFFIXES = ("", *SQLITE_SUFFIXES, ".mark")
_MIN_LENGTH, _MAX_LENGTH = 16, 1000
_BACKLOG = 64  # connections that the kernel queues
_GRACE = 30  # seconds for questions in progress at shutdown


def check_private_files(
    file: Path | str, key_file: Path | str | None = None, token_file: Path | str | None = None
) -> None:
    """Refuse a guard's file, key or token that users other than its owner can read or replace.

    All must belong to the current user or to root. A folder where others can create files is
    refused, too: SQLite would read a log that they put beside the file. So is a parent folder where
    others can replace our folder; the sticky bit, as on /tmp, prevents that.
    """
    if os.name != "posix":
        return
    file = Path(file).absolute()
    paths = [file.with_name(file.name + suffix) for suffix in _SUFFIXES]
    paths += [Path(suffix).absolute() for suffix in (key_file, token_file) if suffix is not None]
    try:
        for path in paths:
            _check_file(path)
        for path in paths:
            # The given path and the real one: links in either could be replaced.
            for given_or_real in (path, Path(os.path.realpath(path))):
                for folder in given_or_real.parents:
                    _check_folder(folder, inmost=folder == given_or_real.parent)
    except OSError as error:
        raise StorageFailed(f"{error.filename} cannot be checked: {error.strerror}.") from None


def _check_file(path: Path) -> None:
    if not os.path.lexists(path):
        return
    _check_owner(path)
    if path.exists() and path.stat().st_mode & 0o077:
        raise InvalidSetting(
            f"Other users can read {path} and so bypass the guard. Run: chmod 600 {path}"
        )


def _check_folder(folder: Path, *, inmost: bool) -> None:
    if not folder.exists():
        return
    _check_owner(folder)
    mode = folder.stat().st_mode
    if not mode & 0o022:
        return
    if inmost:
        raise InvalidSetting(
            f"Other users can write to {folder}; keep a guard in a folder of its own, or run: "
            f"chmod go-w {folder}"
        )
    if not mode & stat.S_ISVTX:
        raise InvalidSetting(
            f"Other users can replace files in {folder}, and so the guard; keep it elsewhere, or "
            f"run: chmod go-w {folder}"
        )


def _check_owner(path: Path) -> None:
    """Refuse a path that belongs to another user, be it a link or its target."""
    for status in (path.lstat(), *([path.stat()] if path.exists() else [])):
        if status.st_uid not in {0, os.geteuid()}:
            raise InvalidSetting(
                f"{path} belongs to another user, number {status.st_uid}, who could read or "
                "replace it; it must belong to the user that serves the guard, or to root."
            )


def read_or_create_token(path: Path | str) -> str:
    """Return the token in a file, which is created if missing. It is never shown."""
    path = Path(path)
    token = secrets.token_urlsafe(32)
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _read_token(path)
    except OSError as error:
        raise storage_error(error, f"The token file {path} cannot be created") from None
    try:
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(token + "\n")
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # do not leave a partial token
        raise storage_error(error, f"The token file {path} cannot be created") from None
    return token


def _is_private(status: os.stat_result) -> bool:
    if os.name != "posix":
        return True
    return not status.st_mode & 0o077 and status.st_uid in {0, os.geteuid()}


def _read_token(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or not _is_private(status):
                raise InvalidSetting(
                    f"The token file {path} must be a file of yours that only you can read: "
                    f"chmod 600 {path}"
                )
            token = opened.read(_MAX_LENGTH + 1).decode("ascii", "replace").strip()
    except OSError as error:
        raise InvalidSetting(f"The token file {path} cannot be read: {error.strerror}.") from None
    is_word = token.isascii() and token.isprintable() and " " not in token
    if not is_word or not _MIN_LENGTH <= len(token) < _MAX_LENGTH:
        raise InvalidSetting(
            f"{path} is not a token file: it must hold one word of at least {_MIN_LENGTH} "
            "characters."
        )
    return token


def serve_guard(
    holdout: Holdout | Gate,
    listener: Listener,
    *,
    token: str | None = None,
    max_bytes: int = MAX_BYTES,
    ladder: str = "",
    promote: bool = False,
    grade: bool = False,
    before_run: Callable[[uvicorn.Server], None] | None = None,
) -> None:
    """Serve a guard or a gate until Ctrl-C, SIGTERM or SIGHUP; finish open requests and close.

    A second Ctrl-C or SIGTERM ends this process at once.

    With ``ladder``, questions on any other ladder are refused. With ``promote``, clients of a gate
    may promote an incumbent. With ``grade``, it is a grading server for agents, too.
    ``before_run`` is called with the server before it runs; ``server.should_exit = True`` stops it
    from another thread.
    """
    options: dict[str, Any] = {
        "hosts": listener.hosts,
        "token": token,
        "max_bytes": max_bytes,
        "grade": grade,
    }
    app = (
        GateApp(holdout, promote=promote, **options)
        if isinstance(holdout, Gate)
        else GuardApp(holdout, ladder=ladder, **options)
    )
    # No access log: it would hold query strings. No log of uvicorn's: clients could fill the disk.
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=GuardProtocol,
        ws="none",
        lifespan="off",
        workers=1,
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=int(2 * GuardProtocol.idle_seconds),  # GuardProtocol closes it earlier
        timeout_graceful_shutdown=_GRACE,
    )
    server = GracefulServer(config, grace=_GRACE, say=logging.getLogger("ladderboard.guard").info)
    try:
        with stop_on_signals(server):
            if before_run is not None:
                before_run(server)
            server.run(sockets=[listener.socket])
    finally:
        listener.close()
        app.close()
