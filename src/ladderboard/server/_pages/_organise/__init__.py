"""The organiser's pages: teams, tokens, amendments, dumps, and simulated attacks."""

from fastapi import APIRouter

from ladderboard.server._pages._organise import _attack, _pages
from ladderboard.server._pages._organise._dump import remove_stale_dumps

__all__ = ["remove_stale_dumps", "router"]

router = APIRouter()
for _module in (_pages, _attack):
    router.routes.extend(_module.router.routes)
