"""The processes of a server: sockets, connections, signals, workers, start and shutdown."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.server._process._listener import (
        GuardProtocol,
        Listener,
        check_port_free,
        listen_on_address,
        listen_on_loopback,
        listen_on_unix_socket,
        stop_on_signals,
    )
    from ladderboard.server._process._run import serve, serve_as_worker
    from ladderboard.server._process._shutdown import BoardProtocol
    from ladderboard.server._process._workers import (
        is_worker,
        restart_command,
        subprocess_command,
        subprocess_env,
    )

__all__ = [
    "BoardProtocol",
    "GuardProtocol",
    "Listener",
    "check_port_free",
    "is_worker",
    "listen_on_address",
    "listen_on_loopback",
    "listen_on_unix_socket",
    "restart_command",
    "serve",
    "serve_as_worker",
    "stop_on_signals",
    "subprocess_command",
    "subprocess_env",
]

# Lazy: a guard needs no packages of boards, and is_worker is called before anything is loaded.
_MODULES = {
    "BoardProtocol": "_shutdown",
    "GuardProtocol": "_listener",
    "Listener": "_listener",
    "subprocess_env": "_workers",
    "is_worker": "_workers",
    "listen_on_address": "_listener",
    "listen_on_unix_socket": "_listener",
    "listen_on_loopback": "_listener",
    "restart_command": "_workers",
    "subprocess_command": "_workers",
    "serve": "_run",
    "serve_as_worker": "_run",
    "stop_on_signals": "_listener",
    "check_port_free": "_listener",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
