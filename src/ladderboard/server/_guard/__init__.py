"""A guard over HTTP."""

from ladderboard.server._guard._app import GuardApp
from ladderboard.server._guard._run import check_private, serve_guard, take_token

__all__ = ["GuardApp", "check_private", "serve_guard", "take_token"]
