"""The pages of organisers: teams, tokens, amendments, a dump, and what an attacker could gain."""

from fastapi import APIRouter

from ladderboard.server._pages._organise import _attack, _pages
from ladderboard.server._pages._organise._dump import remove_stale_dumps

__all__ = ["remove_stale_dumps", "router"]

router = APIRouter()
for _each in (_pages, _attack):
    router.routes.extend(_each.router.routes)
