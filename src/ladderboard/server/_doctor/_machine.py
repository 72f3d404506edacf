"""The machine: how many connections it lets a process have, and who has the port."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from contextlib import suppress
from pathlib import Path

from ladderboard.server._doctor._finding import Finding, note, ok, problem

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["check_descriptors", "check_port"]

_NEED = 1200  # a thousand connections, and what else is open
_LISTENING = "0A"
_PATIENCE = 2.0  # seconds


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
        return [_taken(error, address, port)]
    return [ok(about, f"{host} port {port} is free.")]


def _taken(
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
    if _is_ours(near, port):
        return ok(about, f"A Ladderboard answers on port {port}.")
    who = _holder(port)
    said = f"Port {port} is taken{f' by {who}' if who else ''}, which is no Ladderboard."
    return problem(about, said, "Stop that, or choose another: serve.port or --port.")


def _is_ours(host: str, port: int) -> bool:
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


def _holder(port: int) -> str | None:
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
