"""The leaderboard over HTTP: the API and its pages.

So far there is one door: a guard behind HTTP on loopback or a Unix socket, so that its file and
key stay under another user than whoever asks. :class:`GuardApp` is what answers, a
:class:`Listener` is where, and :func:`serve_guard` runs the one at the other. The boards come
later.
"""

from ladderboard.server._guard_app import GuardApp
from ladderboard.server._guard_listener import Listener, listen_on_path, listen_on_port
from ladderboard.server._guard_private import check_private
from ladderboard.server._guard_run import serve_guard
from ladderboard.server._guard_token import take_token

__all__ = [
    "GuardApp",
    "Listener",
    "check_private",
    "listen_on_path",
    "listen_on_port",
    "serve_guard",
    "take_token",
]
