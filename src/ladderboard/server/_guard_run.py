"""Running a guard's server until somebody stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn

from ladderboard.server._guard_app import GuardApp
from ladderboard.server._guard_body import MOST_BYTES
from ladderboard.server._guard_protocol import GuardProtocol
from ladderboard.server._signals import stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.holdout import Holdout
    from ladderboard.server._guard_listener import Listener

__all__ = ["serve_guard"]

_BACKLOG = 64  # connections taken at once, before any can be turned away
_GRACE = 30  # seconds for questions that are being answered when it ends


def serve_guard(
    holdout: Holdout,
    listener: Listener,
    *,
    token: str | None = None,
    most_bytes: int = MOST_BYTES,
    ladder: str = "",
    started: Callable[[uvicorn.Server], None] | None = None,
) -> None:
    """Answer at a listener until Ctrl-C, SIGTERM or SIGHUP; then end what was begun, and close it.

    With ``ladder`` questions on any other ladder are refused.
    ``started`` gets the server before it runs; ``server.should_exit = True`` ends it from another
    thread.
    """
    app = GuardApp(holdout, hosts=listener.hosts, token=token, most_bytes=most_bytes, ladder=ladder)
    # The access log would hold query strings. Nothing of uvicorn's own is worth a line: whoever
    # asks could fill the disk with it.
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=GuardProtocol,
        ws="none",
        lifespan="off",
        workers=1,
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=int(2 * GuardProtocol.idle),  # which ends it before
        timeout_graceful_shutdown=_GRACE,
    )
    server = uvicorn.Server(config)
    try:
        with stopped_by_signals(server):
            if started is not None:
                started(server)
            server.run(sockets=[listener.socket])
    finally:
        listener.close()
        app.close()
