"""The HTML pages. They are rendered on the server and work without JavaScript.

``_rendering`` renders the templates, ``_static`` serves style sheets, scripts and icons. Pages read
and change boards through :mod:`ladderboard.board`, as the API does.
"""

from fastapi import APIRouter

from ladderboard.server._pages import (
    _board,
    _downloads,
    _organise,
    _play,
    _sign_in,
    _static,
    _submit,
    _team,
)
from ladderboard.server._pages._organise import remove_stale_dumps
from ladderboard.server._pages._rendering import is_page, refusal_page
from ladderboard.server._pages._site import Site, check_site, write_site

__all__ = [
    "Site",
    "check_site",
    "is_page",
    "refusal_page",
    "remove_stale_dumps",
    "router",
    "write_site",
]

router = APIRouter(include_in_schema=False)
for _module in (_board, _downloads, _submit, _team, _sign_in, _organise, _play, _static):
    router.routes.extend(_module.router.routes)
