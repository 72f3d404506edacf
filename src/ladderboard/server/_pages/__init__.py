"""The pages: HTML that is made here and works without a script.

One file a page; ``_page`` renders them, ``_static`` hands out how they look and what a script adds.
Whatever a page shows or does goes through the board room, as everything of the API does.
"""

from fastapi import APIRouter

from ladderboard.server._pages import (
    _board,
    _boards,
    _downloads,
    _join,
    _organise,
    _play,
    _select,
    _session,
    _static,
    _submit,
    _trial,
    _wheel,
)
from ladderboard.server._pages._page import is_page, refusal

__all__ = ["is_page", "refusal", "router"]

router = APIRouter(include_in_schema=False)
for _each in (
    _boards,
    _board,
    _downloads,
    _submit,
    _select,
    _join,
    _organise,
    _trial,
    _play,
    _session,
    _static,
    _wheel,
):
    router.routes.extend(_each.router.routes)
