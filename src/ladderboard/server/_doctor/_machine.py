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

_OTHERS = ("cluster", "mcp", "sklearn", "optuna", "lightning", "xgboost", "lightgbm", "inspect")
_OLDEST = (3, 11)
_NEED = 1200  # a thousand connections, and what else is open
_LISTENING = "0A"
_PATIENCE = 2.0  # seconds
_LITTLE, _NEXT_TO_NOTHING = 1 << 30, 100 << 20
_RELEASED = 1_767_225_600  # 2026-01-01: no clock that is right shows an earlier time
_SLACK = 60  # seconds
_SYNCHRONISE = "Let the machine set its clock by others': timedatectl set-ntp true, or chrony."


class Extra(NamedTuple):
    """An extra of the package: what it adds, and what is imported from what it installs."""

    adds: str
    modules: tuple[str, ...]


# Compared with pyproject.toml by a test, and told by docs/how-to/install.md.
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
        "boards on SQLite or PostgreSQL, and the server of them",
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
    "sklearn": Extra("searches of scikit-learn that a guard judges", ("sklearn",)),
    "optuna": Extra("studies of Optuna that a guard judges", ("optuna",)),
    "lightning": Extra("trainings of Lightning that a guard stops", ("lightning",)),
    "xgboost": Extra("trainings of XGBoost that a guard stops", ("xgboost",)),
    "lightgbm": Extra("trainings of LightGBM that a guard stops", ("lightgbm",)),
    "inspect": Extra("logs of Inspect AI", ("inspect_ai",)),
}


def missing_modules(extra: Extra) -> list[str]:
    """Return the modules of an extra that are not there; nothing is imported."""
    return [name for name in extra.modules if not _is_importable(name)]


def _is_importable(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def check_extras() -> list[Finding]:
    """Look which optional parts are installed. What is not is no problem: it may not be wanted.

    Of those for other libraries, which few want all of, one finding names what is not there.
    """
    found, uninstalled = [], []
    for name, extra in EXTRAS.items():
        lacking = missing_modules(extra)
        about = f"extra {name}"
        if not lacking:
            found.append(ok(about, f"Installed: {extra.adds}."))
        elif name in _OTHERS:
            uninstalled.append(name)
        else:
            found.append(
                note(
                    about,
                    f"Not installed: {extra.adds} ({', '.join(lacking)} missing).",
                    f"If it is wanted: pip install 'ladderboard[{name}]'",
                )
            )
    if uninstalled:
        way = f"Those that are wanted, as in: pip install 'ladderboard[{uninstalled[0]}]'"
        found.append(note("other extras", f"Not installed: {', '.join(uninstalled)}.", way))
    return found


def check_program() -> list[Finding]:
    """Tell which Python and which Ladderboard this is."""
    python = f"Python {platform.python_version()} in {sys.prefix}"
    if sys.version_info < _OLDEST:
        said = problem("Python", f"{python} is too old.", "Use Python 3.11 or newer.")
    else:
        said = ok("Python", f"{python}.")
    where = Path(__file__).parents[2]
    return [said, ok("Ladderboard", f"Version {__version__} in {where}."), _check_numpy()]


def _check_numpy() -> Finding:
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return problem("NumPy", "It cannot be loaded.", "pip install --force-reinstall ladderboard")
    return ok("NumPy", f"Version {numpy.__version__}.")


def check_server() -> list[Finding]:
    """Load the server, where all that it needs is there: a module may be there and be broken."""
    if missing_modules(EXTRAS["server"]):
        return []
    try:
        importlib.import_module("ladderboard.server._process._run")
    except Exception as error:  # noqa: BLE001 - whatever it is, somebody wants to know
        name = getattr(error, "name", None) or type(error).__name__
        return [
            problem(
                "server",
                f"It is installed, but cannot be loaded: {name}.",
                "pip install --force-reinstall 'ladderboard[server]'",
            )
        ]
    return [ok("server", "It is installed, and can be loaded.")]


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def check_descriptors() -> list[Finding]:
    """Look how many files and connections a process may have open."""
    if resource is None:
        return []
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    about, unlimited = "open files", resource.RLIM_INFINITY
    if allowed == unlimited or allowed >= _NEED:
        shown = "any number" if allowed == unlimited else f"{allowed:,}"
        return [ok(about, f"A process may have {shown}.")]
    way = "ulimit -n 4096" if most == unlimited or most >= 4096 else "raise the hard limit"
    return [
        note(
            about,
            f"A process may have {allowed:,}, and a server takes up to 1,000 connections.",
            f"{way} before serve, or LimitNOFILE=4096 in a systemd unit.",
        )
    ]


def check_port(host: str, port: int) -> list[Finding]:
    """Look whether the port is free, or who has it."""
    about = "port"
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        said = f"host is {host!r:.80}, which is no address."
        return [problem(about, said, "Give one of this machine's, or 0.0.0.0 for all.")]
    if port == 0:
        return [ok(about, "Any that is free.")]
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((str(address), port))
    except OSError as error:
        return [_check_taken_port(error, address, port)]
    return [ok(about, f"{host} port {port} is free.")]


def _check_taken_port(
    error: OSError, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> Finding:
    about = "port"
    if error.errno != errno.EADDRINUSE:
        said = f"Nobody can listen at {address} port {port}: {error.strerror}."
        do = "Take a port above 1023, and a reverse proxy in front of it."
        return problem(about, said, do if error.errno == errno.EACCES else "Give another host.")
    if address.is_unspecified:
        near = "::1" if address.version == 6 else "127.0.0.1"
    else:
        near = str(address)
    if _is_ladderboard(near, port):
        return ok(about, f"A Ladderboard answers on port {port}.")
    who = _process_on_port(port)
    said = f"Port {port} is taken{f' by {who}' if who else ''}, which is no Ladderboard."
    return problem(about, said, "Stop that, or choose another: serve.port or --port.")


def _is_ladderboard(host: str, port: int) -> bool:
    """Ask whoever listens whether they are well, as one of ours answers."""
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    said = b""
    with suppress(OSError), socket.create_connection((host, port), timeout=_PATIENCE) as line:
        line.sendall(asked)
        while len(said) < 65536 and (piece := line.recv(65536)):
            said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    return b"x-request-id" in head.lower() and (
        b'"status":"ok"' in body or b"application/problem+json" in head.lower()
    )


def _process_on_port(port: int) -> str | None:
    """Return the program that listens on a port, where Linux tells."""
    wanted = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]:
                parts = line.split()
                if parts[3] == _LISTENING and int(parts[1].rpartition(":")[2], 16) == port:
                    wanted.add(f"socket:[{parts[9]}]")
    if not wanted:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(str(each.readlink()) in wanted for each in (process / "fd").iterdir()):
                name = (process / "comm").read_text("utf-8", errors="replace").strip()
                return f"{name} (process {process.name})"
    return None


def check_disk(about: str, folder: Path, need: int = 0) -> Finding:
    """Look at the disk that a folder is on; ``need`` is what a copy of all that is there takes."""
    while not folder.exists():  # it is made when it is wanted
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
        files = _files(folder)
    except OSError as error:
        said = f"{folder} cannot be looked at: {error.strerror}."
        return problem(about, said, "See that the disk is mounted.")
    said = f"{_format_size(free)} are free where {folder} is"
    do = "Make room, or move it to a larger disk."
    if files == 0:
        return problem(about, f"No more files can be made where {folder} is.", do)
    if free < _NEXT_TO_NOTHING:
        need_now = (
            "the write-ahead log of an SQLite file takes up to 64 MB, a submission up to 100 MB"
        )
        return problem(about, f"{said}; {need_now}.", do)
    if free < need:
        return note(about, f"{said}, and {_format_size(need)} are in use: a copy has no room.", do)
    if free < _LITTLE:
        return note(about, f"{said}; below 512 MiB large submissions are refused.", do)
    return ok(about, f"{said}.")


def database_size(database: Path) -> int:
    """Return how much a database takes, with the larger submissions beside it."""
    sizes = [database.stat().st_size] if database.is_file() else []
    kept = database.with_name(f"{database.name}.submissions")
    for folder, _, names in os.walk(kept):
        for name in names:
            try:
                sizes.append(Path(folder, name).lstat().st_size)
            except OSError:  # it went while we looked
                continue
    return sum(sizes)


def _files(folder: Path) -> int:
    """Return how many files can still be made; -1 where the disk does not count them."""
    if not hasattr(os, "statvfs"):
        return -1
    found = os.statvfs(folder)
    return found.f_favail if found.f_files else -1


def _format_size(size: float) -> str:
    """Return a size for people.

    >>> _format_size(5 * 2**30), _format_size(12345678)
    ('5.0 GiB', '11.8 MiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "bytes" else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def check_clock(newest: int | None, ahead: float | None) -> list[Finding]:
    """Look at this machine's clock.

    ``newest`` is the time of the newest entry, and ``ahead`` by how much the database's own clock
    is ahead of ours.
    """
    about, now = "clock", time.time()
    if now < _RELEASED:
        return [problem(about, f"It shows {_format_utc(now)}, which is long past.", _SYNCHRONISE)]
    theirs = now + (ahead or 0.0)
    if newest is not None and newest > theirs + _SLACK:
        message = (
            f"The newest ledger entry is from {_format_utc(newest)}, but the clock shows "
            f"{_format_utc(theirs)}: the clock is wrong, or was."
        )
        return [problem(about, message, _SYNCHRONISE)]
    if ahead is not None and abs(ahead) > _SLACK:
        way = "ahead of" if ahead > 0 else "behind"
        said = f"The database's clock, which counts, is {abs(ahead):.0f} s {way} this machine's."
        return [note(about, said, _SYNCHRONISE)]
    if _is_synchronised() is False:
        return [
            note(about, f"It shows {_format_utc(now)}, and nobody sets it right.", _SYNCHRONISE)
        ]
    return [ok(about, f"It shows {_format_utc(now)}.")]


def _is_synchronised() -> bool | None:
    """Return whether the clock is set by others'; None where that is not known."""
    program = shutil.which("timedatectl")
    if program is None or not Path("/run/systemd/system").is_dir():
        return None
    command = [program, "show", "--property=NTPSynchronized", "--value"]
    try:
        done = subprocess.run(  # noqa: S603 - nothing of it comes from elsewhere
            command, capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(done.stdout.strip())


def _format_utc(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
