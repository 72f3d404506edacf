"""The HTTP server: the API and pages of boards, and a guard behind HTTP.

:func:`serve` runs a board server with :class:`Settings`; :func:`make_app` returns its ASGI
application. :func:`find_settings` reads the settings from the command line, the environment and a
file; :func:`check_installation` checks what a server needs.
:func:`write_site` writes a closed board as a folder of files that any web server can host.

A guard served over HTTP on loopback or a Unix socket keeps its file and key under another user than
the programs that ask it: :class:`GuardApp` is the ASGI application, a :class:`Listener` the address
and :func:`serve_guard` runs one at the other.
"""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ladderboard.server._app import make_app
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
        restart_command,
        serve,
        serve_as_worker,
    )
    from ladderboard.server._process import check_port_free as check_port_free
    from ladderboard.server._process import is_worker as is_worker
    from ladderboard.server._rate_limits import Rate
    from ladderboard.server._sandbox import ParserPool, sandbox
    from ladderboard.server._settings import CONFIG as CONFIG
    from ladderboard.server._settings import SETTINGS as SETTINGS
    from ladderboard.server._settings import VARIABLES as VARIABLES
    from ladderboard.server._settings import ResolvedSettings as ResolvedSettings
    from ladderboard.server._settings import Settings, find_settings
    from ladderboard.server._settings import Value as Value
    from ladderboard.server._settings import Variable as Variable
    from ladderboard.server._settings import format_value as format_value
    from ladderboard.server._settings import has_password as has_password
    from ladderboard.server._settings import unknown_variables as unknown_variables
    from ladderboard.server._settings import without_password as without_password

__all__ = [
    "BoardProtocol",
    "GuardApp",
    "Listener",
    "ParserPool",
    "Rate",
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
    "read_or_create_token",
    "restart_command",
    "sandbox",
    "serve",
    "serve_as_worker",
    "serve_guard",
    "write_site",
]

# Lazy: a guard is served without the packages of boards, and settings are read without either.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "_process": (
            "BoardProtocol",
            "Listener",
            "check_port_free",
            "is_worker",
            "listen_on_address",
            "listen_on_loopback",
            "listen_on_unix_socket",
            "restart_command",
            "serve",
            "serve_as_worker",
        ),
        "_settings": (
            "CONFIG",
            "ResolvedSettings",
            "SETTINGS",
            "Settings",
            "VARIABLES",
            "Value",
            "Variable",
            "find_settings",
            "format_value",
            "has_password",
            "unknown_variables",
            "without_password",
        ),
        "_guard": ("GuardApp", "check_private_files", "read_or_create_token", "serve_guard"),
        "_log": ("ServerLog", "machine_time", "worker_log"),
        "_sandbox": ("ParserPool", "sandbox"),
        "_rate_limits": ("Rate",),
        "_pages": ("Site", "check_site", "write_site"),
        "_doctor": ("check_installation",),
        "_app": ("make_app",),
    },
)
