"""The leaderboard over HTTP: the API and its pages, and a guard's door.

:func:`serve` runs a server of boards as a :class:`Serving` says; :func:`make_app` is what answers
there, with its :class:`Settings`. What they are set to is found by :func:`find_settings`, in the
environment and a file; :func:`check_installation` checks what a server needs. :func:`write_site`
writes a closed board as a folder of files that any web server can host.

A guard behind HTTP on loopback or a Unix socket keeps its file and key under another user than
whoever asks: :class:`GuardApp` answers, a :class:`Listener` is where, and :func:`serve_guard` runs
the one at the other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.server._app import make_app
    from ladderboard.server._config import CONFIG as CONFIG
    from ladderboard.server._config import VARIABLES as VARIABLES
    from ladderboard.server._config import ResolvedSettings as ResolvedSettings
    from ladderboard.server._config import Value as Value
    from ladderboard.server._config import Variable as Variable
    from ladderboard.server._config import find_settings
    from ladderboard.server._config import has_password as has_password
    from ladderboard.server._config import unknown_variables as unknown_variables
    from ladderboard.server._config import without_password as without_password
    from ladderboard.server._doctor import check_installation
    from ladderboard.server._guard import (
        GuardApp,
        check_private_files,
        read_or_create_token,
        serve_guard,
    )
    from ladderboard.server._log import ServerLog as ServerLog
    from ladderboard.server._log import machine_time as machine_time
    from ladderboard.server._log import worker_log as worker_log
    from ladderboard.server._pages import Site, check_site, write_site
    from ladderboard.server._process import (
        BoardProtocol,
        Listener,
        listen_on_address,
        listen_on_loopback,
        listen_on_unix_socket,
        own_command,
        serve,
        serve_as_worker,
    )
    from ladderboard.server._process import check_port_free as check_port_free
    from ladderboard.server._process import is_worker as is_worker
    from ladderboard.server._rate_limits import Rate
    from ladderboard.server._sandbox import ParserPool, sandbox
    from ladderboard.server._serving import Serving, Settings
    from ladderboard.server._serving import make_serving as make_serving

__all__ = [
    "BoardProtocol",
    "GuardApp",
    "Listener",
    "ParserPool",
    "Rate",
    "Serving",
    "Settings",
    "Site",
    "check_installation",
    "check_private_files",
    "check_site",
    "find_settings",
    "listen_on_address",
    "listen_on_loopback",
    "listen_on_unix_socket",
    "make_app",
    "own_command",
    "read_or_create_token",
    "sandbox",
    "serve",
    "serve_as_worker",
    "serve_guard",
    "write_site",
]

# A guard is served without what boards need, and settings are found without what either needs.
_HOMES = {
    "BoardProtocol": "_process",
    "CONFIG": "_config",
    "ResolvedSettings": "_config",
    "GuardApp": "_guard",
    "Listener": "_process",
    "ServerLog": "_log",
    "ParserPool": "_sandbox",
    "Rate": "_rate_limits",
    "Serving": "_serving",
    "Settings": "_serving",
    "Site": "_pages",
    "VARIABLES": "_config",
    "Value": "_config",
    "Variable": "_config",
    "check_private_files": "_guard",
    "check_site": "_pages",
    "check_installation": "_doctor",
    "find_settings": "_config",
    "has_password": "_config",
    "is_worker": "_process",
    "listen_on_address": "_process",
    "listen_on_unix_socket": "_process",
    "listen_on_loopback": "_process",
    "machine_time": "_log",
    "make_app": "_app",
    "make_serving": "_serving",
    "own_command": "_process",
    "sandbox": "_sandbox",
    "serve": "_process",
    "serve_as_worker": "_process",
    "serve_guard": "_guard",
    "unknown_variables": "_config",
    "read_or_create_token": "_guard",
    "check_port_free": "_process",
    "without_password": "_config",
    "worker_log": "_log",
    "write_site": "_pages",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
