"""The pages of organisers: teams, tokens, amendments, a dump, and what an attacker could gain."""

from fastapi import APIRouter

from ladderboard.server._pages._organise import _attack, _pages
from ladderboard.server._pages._organise._dump import sweep_dumps

__all__ = ["router", "sweep_dumps"]

router = APIRouter()
for _each in (_pages, _attack):
    router.routes.extend(_each.router.routes)
