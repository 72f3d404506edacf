"""The organiser's pages: teams, tokens, amendments and dumps."""

from ladderboard.server._pages._organise._dump import remove_stale_dumps
from ladderboard.server._pages._organise._pages import router

__all__ = ["remove_stale_dumps", "router"]
