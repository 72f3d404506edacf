"""The processes of a server: sockets, connections, signals, workers, start and shutdown."""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ladderboard.server._process._listener import (
        GracefulServer,
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
    "GracefulServer",
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
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "_shutdown": ("BoardProtocol",),
        "_listener": (
            "GracefulServer",
            "GuardProtocol",
            "Listener",
            "check_port_free",
            "listen_on_address",
            "listen_on_loopback",
            "listen_on_unix_socket",
            "stop_on_signals",
        ),
        "_workers": ("is_worker", "restart_command", "subprocess_command", "subprocess_env"),
        "_run": ("serve", "serve_as_worker"),
    },
)
