"""Processes of a server: sockets, connections, signals, workers, and how they start and end."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.server._process._connections import GuardProtocol
    from ladderboard.server._process._listener import (
        Listener,
        listen_anywhere,
        listen_on_path,
        listen_on_port,
        try_port,
    )
    from ladderboard.server._process._run import serve, serve_as_worker
    from ladderboard.server._process._shutdown import BoardProtocol
    from ladderboard.server._process._signals import stopped_by_signals
    from ladderboard.server._process._spawn import environment, is_worker, own_command, program

__all__ = [
    "BoardProtocol",
    "GuardProtocol",
    "Listener",
    "environment",
    "is_worker",
    "listen_anywhere",
    "listen_on_path",
    "listen_on_port",
    "own_command",
    "program",
    "serve",
    "serve_as_worker",
    "stopped_by_signals",
    "try_port",
]

# A guard is served without what boards need, and a worker is known before anything is loaded.
_HOMES = {
    "BoardProtocol": "_shutdown",
    "GuardProtocol": "_connections",
    "Listener": "_listener",
    "environment": "_spawn",
    "is_worker": "_spawn",
    "listen_anywhere": "_listener",
    "listen_on_path": "_listener",
    "listen_on_port": "_listener",
    "own_command": "_spawn",
    "program": "_spawn",
    "serve": "_run",
    "serve_as_worker": "_run",
    "stopped_by_signals": "_signals",
    "try_port": "_listener",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
