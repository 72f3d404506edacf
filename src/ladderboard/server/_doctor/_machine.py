"""Checks of the program and the machine: versions, extras, ports, disks, the clock."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import ipaddress
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ladderboard._version import __version__
from ladderboard.server._doctor._finding import Finding, note, ok, problem

_INTEGRATIONS = (
    "cluster",
    "mcp",
    "sklearn",
    "optuna",
    "lightning",
    "xgboost",
    "lightgbm",
    "inspect",
)
_MIN_PYTHON = (3, 11)
_MIN_DESCRIPTORS = 1200  # a thousand connections and other open files
_LISTENING = "0A"
_TIMEOUT_SECONDS = 2.0  # seconds
_LOW_SPACE, _NO_SPACE = 1 << 30, 100 << 20
_RELEASED = 1_767_225_600  # 2026-01-01: a right clock shows a later time
_CLOCK_TOLERANCE = 60  # seconds
_SYNCHRONISE = "Synchronise the clock: timedatectl set-ntp true, or chrony."


class Extra(NamedTuple):
    """An extra of the package: what it adds, and the modules that it installs."""

    adds: str
    modules: tuple[str, ...]


# A test compares them with pyproject.toml and docs/how-to/install.md.
EXTRAS: dict[str, Extra] = {
    "client": Extra(
        "taking part in boards from a shell or Python, and verifying them",
        ("httpx", "typer", "rich"),
    ),
    "files": Extra("predictions from CSV, Parquet, Arrow and JSON Lines", ("polars",)),
    "guard": Extra(
        "a holdout behind a budget from a shell or over HTTP, key files",
        ("polars", "cryptography", "typer", "rich", "starlette", "uvicorn"),
    ),
    "server": Extra(
        "boards on SQLite or PostgreSQL, and their server",
        (
            "polars",
            "cryptography",
            "typer",
            "rich",
            "starlette",
            "uvicorn",
            "httpx",
            "psycopg",
            "yaml",
            "fastapi",
            "pydantic",
            "jinja2",
            "python_multipart",
            "itsdangerous",
            "markdown_it",
            *(() if sys.platform == "win32" else ("uvloop",)),
            "httptools",
        ),
    ),
    "arena": Extra(
        "attacks, experiments, calibration, plans and figures",
        ("numba", "scipy", "matplotlib", "typer", "rich", "cloudpickle"),
    ),
    "cluster": Extra(
        "experiments on a Dask cluster",
        ("numba", "scipy", "matplotlib", "typer", "rich", "cloudpickle", "distributed"),
    ),
    "mcp": Extra("tools for research agents", ("httpx", "typer", "rich", "mcp")),
    "sklearn": Extra("searches of scikit-learn, checked by a guard", ("sklearn",)),
    "optuna": Extra("studies of Optuna, checked by a guard", ("optuna",)),
    "lightning": Extra("trainings of Lightning, stopped by a guard", ("lightning",)),
    "xgboost": Extra("trainings of XGBoost, stopped by a guard", ("xgboost",)),
    "lightgbm": Extra("trainings of LightGBM, stopped by a guard", ("lightgbm",)),
    "inspect": Extra("logs of Inspect AI", ("inspect_ai",)),
}


def missing_modules(extra: Extra) -> list[str]:
    """Return the modules of an extra that are not installed, without importing any."""
    return [name for name in extra.modules if not _is_importable(name)]


def _is_importable(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def check_extras() -> list[Finding]:
    """Check which extras are installed. A missing one is a note: it may not be needed.

    One finding names all missing integrations with other libraries.
    """
    findings, uninstalled = [], []
    for name, extra in EXTRAS.items():
        lacking = missing_modules(extra)
        subject = f"extra {name}"
        if not lacking:
            findings.append(ok(subject, f"Installed: {extra.adds}."))
        elif name in _INTEGRATIONS:
            uninstalled.append(name)
        else:
            findings.append(
                note(
                    subject,
                    f"Not installed: {extra.adds} ({', '.join(lacking)} missing).",
                    f"If you need it: pip install 'ladderboard[{name}]'",
                )
            )
    if uninstalled:
        remedy = f"Install those that you need: pip install 'ladderboard[{uninstalled[0]}]'"
        findings.append(note("other extras", f"Not installed: {', '.join(uninstalled)}.", remedy))
    return findings


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


def check_server() -> list[Finding]:
    """Import the server if its extra is installed: an installed module may be broken."""
    if missing_modules(EXTRAS["server"]):
        return []
    try:
        importlib.import_module("ladderboard.server._process._run")
    except Exception as error:  # noqa: BLE001 - any failure is a finding
        name = getattr(error, "name", None) or type(error).__name__
        return [
            problem(
                "server",
                f"It is installed, but cannot be imported: {name}.",
                "pip install --force-reinstall 'ladderboard[server]'",
            )
        ]
    return [ok("server", "It is installed and can be imported.")]


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def check_descriptors() -> list[Finding]:
    """Check how many files and connections a process may open."""
    if resource is None:
        return []
    allowed, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    subject, unlimited = "open files", resource.RLIM_INFINITY
    if allowed == unlimited or allowed >= _MIN_DESCRIPTORS:
        shown = "any number" if allowed == unlimited else f"{allowed:,}"
        return [ok(subject, f"A process may open {shown}.")]
    remedy = (
        "ulimit -n 4096"
        if hard_limit == unlimited or hard_limit >= 4096
        else "raise the hard limit"
    )
    return [
        note(
            subject,
            f"A process may open {allowed:,}; a server takes up to 1,000 connections.",
            f"{remedy} before serve, or LimitNOFILE=4096 in a systemd unit.",
        )
    ]


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
    process = _process_on_port(port)
    message = (
        f"Port {port} is taken{f' by {process}' if process else ''}, and not by a Ladderboard."
    )
    return problem(
        subject, message, "Stop that process, or choose another port: serve.port or --port."
    )


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


def _process_on_port(port: int) -> str | None:
    """Return the program that listens on a port, if Linux shows it."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]:
                parts = line.split()
                if parts[3] == _LISTENING and int(parts[1].rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{parts[9]}]")
    if not sockets:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(str(link.readlink()) in sockets for link in (process / "fd").iterdir()):
                name = (process / "comm").read_text("utf-8", errors="replace").strip()
                return f"{name} (process {process.name})"
    return None


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


def check_clock(newest: int | None, ahead: float | None) -> list[Finding]:
    """Check this machine's clock.

    ``newest`` is the time of the newest entry, ``ahead`` by how much the database server's clock
    is ahead of ours.
    """
    subject, now = "clock", time.time()
    if now < _RELEASED:
        return [problem(subject, f"The clock is wrong: it shows {_format_utc(now)}.", _SYNCHRONISE)]
    database_now = now + (ahead or 0.0)
    if newest is not None and newest > database_now + _CLOCK_TOLERANCE:
        message = (
            f"The newest ledger entry is from {_format_utc(newest)}, but the clock shows "
            f"{_format_utc(database_now)}: the clock is wrong, or was."
        )
        return [problem(subject, message, _SYNCHRONISE)]
    if ahead is not None and abs(ahead) > _CLOCK_TOLERANCE:
        direction = "ahead of" if ahead > 0 else "behind"
        message = (
            f"The database server's clock, which is the one used, is {abs(ahead):.0f} s "
            f"{direction} this machine's."
        )
        return [note(subject, message, _SYNCHRONISE)]
    if _is_synchronised() is False:
        return [
            note(subject, f"It shows {_format_utc(now)}, but is not synchronised.", _SYNCHRONISE)
        ]
    return [ok(subject, f"It shows {_format_utc(now)}.")]


def _is_synchronised() -> bool | None:
    """Return whether the clock is synchronised; None if that is unknown."""
    program = shutil.which("timedatectl")
    if program is None or not Path("/run/systemd/system").is_dir():
        return None
    command = [program, "show", "--property=NTPSynchronized", "--value"]
    try:
        result = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(result.stdout.strip())


def _format_utc(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
