"""The leaderboard over HTTP: the API and its pages, and a guard's door.

:func:`serve` runs a server of boards as a :class:`Serving` says; :func:`make_app` is what answers
there, with its :class:`Settings`. A guard behind HTTP on loopback or a Unix socket keeps its file
and key under another user than whoever asks: :class:`GuardApp` answers, a :class:`Listener` is
where, and :func:`serve_guard` runs the one at the other.
"""

from typing import TYPE_CHECKING, Any

from ladderboard.server._guard_app import GuardApp
from ladderboard.server._guard_listener import (
    Listener,
    listen_anywhere,
    listen_on_path,
    listen_on_port,
)
from ladderboard.server._guard_private import check_private
from ladderboard.server._guard_run import serve_guard
from ladderboard.server._guard_token import take_token

if TYPE_CHECKING:
    from ladderboard.server._app import make_app
    from ladderboard.server._limits import Rate
    from ladderboard.server._options import Settings
    from ladderboard.server._parse import Parsers
    from ladderboard.server._post import own_command
    from ladderboard.server._run import BoardProtocol, Serving, serve, serve_as_worker

__all__ = [
    "BoardProtocol",
    "GuardApp",
    "Listener",
    "Parsers",
    "Rate",
    "Serving",
    "Settings",
    "check_private",
    "listen_anywhere",
    "listen_on_path",
    "listen_on_port",
    "make_app",
    "own_command",
    "serve",
    "serve_as_worker",
    "serve_guard",
    "take_token",
]

# A guard is served without what boards need.
_BOARDS = {
    "BoardProtocol": "_run",
    "Parsers": "_parse",
    "Rate": "_limits",
    "Serving": "_run",
    "Settings": "_options",
    "make_app": "_app",
    "own_command": "_post",
    "serve": "_run",
    "serve_as_worker": "_run",
}


def __getattr__(name: str) -> Any:
    if name not in _BOARDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - not needed for a guard

    return getattr(import_module(f"{__name__}.{_BOARDS[name]}"), name)
