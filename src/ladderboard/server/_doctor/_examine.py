"""All checks in order: versions, settings, database, key file, disks and port."""

from __future__ import annotations

import errno
import ipaddress
import os
import platform
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_size
from ladderboard._version import __version__
from ladderboard.errors import InvalidSetting
from ladderboard.server._doctor._database import (
    Finding,
    check_key,
    check_postgres,
    check_sqlite,
    note,
    ok,
    problem,
)
from ladderboard.server._settings import find_settings, sqlite_path, unknown_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ladderboard.server._doctor._database import DatabaseState
    from ladderboard.server._settings import ResolvedSettings


_MIN_PYTHON = (3, 11)
_TIMEOUT_SECONDS = 2.0  # seconds
_LOW_SPACE, _NO_SPACE = 1 << 30, 100 << 20


def check_program() -> list[Finding]:
    """Check the versions of Python and Ladderboard."""
    python = f"Python {platform.python_version()} in {sys.prefix}"
    if sys.version_info < _MIN_PYTHON:
        finding = problem("Python", f"{python} is too old.", "Use Python 3.11 or newer.")
    else:
        finding = ok("Python", f"{python}.")
    folder = Path(__file__).parents[2]
    return [finding, ok("Ladderboard", f"Version {__version__} in {folder}.")]


def check_port(host: str, port: int) -> list[Finding]:
    """Check that the port is free or used by a Ladderboard."""
    subject = "port"
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        message = f"host is {host!r:.80}, which is not an IP address."
        return [problem(subject, message, "Use an address of this machine, or 0.0.0.0 for all.")]
    if port == 0:
        return [ok(subject, "Any free port.")]
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((str(address), port))
    except OSError as error:
        return [_check_taken_port(error, address, port)]
    return [ok(subject, f"{host} port {port} is free.")]


def _check_taken_port(
    error: OSError, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> Finding:
    subject = "port"
    if error.errno != errno.EADDRINUSE:
        message = f"Cannot listen on {address} port {port}: {error.strerror}."
        remedy = "Use a port above 1023, behind a reverse proxy."
        return problem(
            subject, message, remedy if error.errno == errno.EACCES else "Use another host."
        )
    if address.is_unspecified:
        local_address = "::1" if address.version == 6 else "127.0.0.1"
    else:
        local_address = str(address)
    if _is_ladderboard(local_address, port):
        return ok(subject, f"A Ladderboard answers on port {port}.")
    message = f"Port {port} is taken, and not by a Ladderboard."
    remedy = f"Stop the program that has it (ss -ltnp 'sport = {port}'), or choose another: --port."
    return problem(subject, message, remedy)


def _is_ladderboard(host: str, port: int) -> bool:
    """Tell whether a Ladderboard answers on a port."""
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    response = b""
    with (
        suppress(OSError),
        socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS) as connection,
    ):
        connection.sendall(request)
        while len(response) < 65536 and (piece := connection.recv(65536)):
            response += piece
    head, _, body = response.partition(b"\r\n\r\n")
    return b"x-request-id" in head.lower() and (
        b'"status":"ok"' in body or b"application/problem+json" in head.lower()
    )


def check_disk(subject: str, folder: Path) -> Finding:
    """Check the free space of a folder's disk."""
    while not folder.exists():  # it is created when it is needed
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        message = f"{folder} cannot be checked: {error.strerror}."
        return problem(subject, message, "Check that the disk is mounted.")
    message = f"{format_size(free)} are free where {folder} is"
    remedy = "Free some space, or move it to a larger disk."
    if free < _NO_SPACE:
        need_now = (
            "the write-ahead log of an SQLite file takes up to 64 MB, a submission up to 100 MB"
        )
        return problem(subject, f"{message}; {need_now}.", remedy)
    if free < _LOW_SPACE:
        return note(subject, f"{message}; below 512 MiB large submissions are refused.", remedy)
    return ok(subject, f"{message}.")


_SUBJECT = "settings"


def check_installation(
    config: Path | None = None, *, database: str | None = None, key_file: Path | None = None
) -> Iterator[Finding]:
    """Check everything that a server needs; yield one finding after another.

    Creates and migrates no database. Not for a process that serves: it opens the database's file
    a second time.
    """
    yield from check_program()
    findings, settings = check_settings(config, {"database": database, "key_file": key_file})
    yield from findings
    if settings is not None:
        yield from _check_storage(settings)
        yield from check_port(settings["serve.host"], settings["serve.port"])


def _check_storage(settings: ResolvedSettings) -> Iterator[Finding]:
    """Check the database, key file and disks."""
    address: str = settings["database"]
    file = sqlite_path(address)
    path = None if file is None else Path(file).absolute()
    try:
        findings, state = _check_database(address, path)
    except OSError as error:
        findings, state = [_cannot_inspect("database", error)], None
    yield from findings
    try:
        yield from check_key(
            settings["key_file"], None if state is None else state.encrypted_value, path
        )
    except OSError as error:
        yield _cannot_inspect("key file", error)
    try:
        yield from _check_disks(settings, path)
    except OSError as error:
        yield _cannot_inspect("disk", error)


def _cannot_inspect(subject: str, error: OSError) -> Finding:
    message = f"{error.filename or 'It'} cannot be checked: {error.strerror}."
    return problem(subject, message, "Run this as the server's user.")


def _check_database(address: str, path: Path | None) -> tuple[list[Finding], DatabaseState | None]:
    if path is not None:
        return check_sqlite(path)
    if address.startswith("postgres"):
        return check_postgres(address)
    message = f"Unsupported database URL: {address.partition('://')[0]}://..."
    remedy = "Give a file, or postgresql+psycopg://user@host/name"
    return [problem("database", message, remedy)], None


def _check_disks(settings: ResolvedSettings, path: Path | None) -> Iterator[Finding]:
    if path is not None:
        yield check_disk("disk of the database", path.parent)
    if settings["serve.spool"] is not None:
        yield check_disk("disk of the spool", settings["serve.spool"].absolute())
    try:
        folder = Path(tempfile.gettempdir())
    except OSError:
        message = "No folder for them can be written."
        yield problem(
            "temporary files", message, "Free space in /tmp, or set TMPDIR to another folder."
        )
        return
    yield check_disk("temporary files", folder)


def check_settings(
    config: Path | None, overrides: Mapping[str, Any]
) -> tuple[list[Finding], ResolvedSettings | None]:
    """Check the settings and return them; None if they are invalid."""
    findings = [note(_SUBJECT, message) for message in unknown_variables(os.environ)]
    try:
        settings = find_settings(config, overrides)
        settings.settings.with_metrics_token()
    except InvalidSetting as error:
        remedy = "Correct it; ladderboard settings lists all settings."
        # A database named on the command line is checked all the same.
        partial = (
            find_settings(None, overrides, environment={}) if overrides.get("database") else None
        )
        return [problem(_SUBJECT, str(error), remedy), *findings], partial
    message = "No settings file: the environment and the defaults apply."
    if settings.file is not None:
        message = f"{settings.file} can be read."
    return [ok(_SUBJECT, message), *_check_workers(settings), *findings], settings


def _check_workers(settings: ResolvedSettings) -> list[Finding]:
    """Check that several workers do not share an SQLite file."""
    if settings["serve.workers"] == 1 or sqlite_path(settings["database"]) is None:
        return []
    message = f"serve.workers is {settings['serve.workers']}, but SQLite allows one process."
    return [problem(_SUBJECT, message, "Set it to 1, or serve from PostgreSQL.")]
