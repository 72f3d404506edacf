"""Checks of the program and the machine: versions, port and disks."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import ipaddress
import os
import platform
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path

from ladderboard._version import __version__
from ladderboard.server._doctor._finding import Finding, note, ok, problem

_MIN_PYTHON = (3, 11)
_TIMEOUT_SECONDS = 2.0  # seconds
_LOW_SPACE, _NO_SPACE = 1 << 30, 100 << 20


def check_program() -> list[Finding]:
    """Check the versions of Python, Ladderboard and NumPy."""
    python = f"Python {platform.python_version()} in {sys.prefix}"
    if sys.version_info < _MIN_PYTHON:
        finding = problem("Python", f"{python} is too old.", "Use Python 3.11 or newer.")
    else:
        finding = ok("Python", f"{python}.")
    folder = Path(__file__).parents[2]
    return [finding, ok("Ladderboard", f"Version {__version__} in {folder}."), _check_numpy()]


def _check_numpy() -> Finding:
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return problem(
            "NumPy", "It cannot be imported.", "pip install --force-reinstall ladderboard"
        )
    return ok("NumPy", f"Version {numpy.__version__}.")


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


def check_disk(subject: str, folder: Path, need: int = 0) -> Finding:
    """Check the free space of a folder's disk; ``need`` is the size of a copy of the content."""
    while not folder.exists():  # it is created when it is needed
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
        free_files = _free_files(folder)
    except OSError as error:
        message = f"{folder} cannot be checked: {error.strerror}."
        return problem(subject, message, "Check that the disk is mounted.")
    message = f"{_format_size(free)} are free where {folder} is"
    remedy = "Free some space, or move it to a larger disk."
    if free_files == 0:
        return problem(subject, f"No more files can be created where {folder} is.", remedy)
    if free < _NO_SPACE:
        need_now = (
            "the write-ahead log of an SQLite file takes up to 64 MB, a submission up to 100 MB"
        )
        return problem(subject, f"{message}; {need_now}.", remedy)
    if free < need:
        return note(
            subject,
            f"{message}, and {_format_size(need)} are in use: there is no space for a copy.",
            remedy,
        )
    if free < _LOW_SPACE:
        return note(subject, f"{message}; below 512 MiB large submissions are refused.", remedy)
    return ok(subject, f"{message}.")


def database_size(database: Path) -> int:
    """Return the size of a database and the submissions beside it, in bytes."""
    sizes = [database.stat().st_size] if database.is_file() else []
    submissions = database.with_name(f"{database.name}.submissions")
    for folder, _, names in os.walk(submissions):
        for name in names:
            try:
                sizes.append(Path(folder, name).lstat().st_size)
            except OSError:  # deleted meanwhile
                continue
    return sum(sizes)


def _free_files(folder: Path) -> int:
    """Return how many files can still be created; -1 if the filesystem has no limit."""
    if not hasattr(os, "statvfs"):
        return -1
    filesystem = os.statvfs(folder)
    return filesystem.f_favail if filesystem.f_files else -1


def _format_size(size: float) -> str:
    """Return a size with a unit.

    >>> _format_size(5 * 2**30), _format_size(12345678)
    ('5.0 GiB', '11.8 MiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "bytes" else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
