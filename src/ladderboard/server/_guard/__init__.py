"""A guard over HTTP."""

from ladderboard.server._guard._app import GuardApp
from ladderboard.server._guard._run import check_private_files, read_or_create_token, serve_guard

__all__ = ["GuardApp", "check_private_files", "read_or_create_token", "serve_guard"]
