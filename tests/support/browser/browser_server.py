"""A live server for a browser, with real parser processes."""

from __future__ import annotations

import contextlib
import hashlib
from itertools import count

from ladderboard.ledger import SqliteStorage
from ladderboard.server import ParserPool, Rate
from support.server.live_server import LiveServer


@contextlib.contextmanager
def serve_for_browser(folder, storage=None, **settings):
    """Give a server with an empty database; its tokens, ids and noise are the same every time."""
    unlimited, salts = Rate(10**6, 1.0), count()
    limits = dict.fromkeys(("failures", "registrations", "invalid"), unlimited)
    storage = storage or SqliteStorage(folder / "boards.db", create=True)
    live_server = LiveServer(
        storage, parsers=ParserPool(count=1),
        salt=lambda: hashlib.sha256(b"browser %d" % next(salts)).digest(),
        **{**limits, **settings},
    )  # fmt: skip
    live_server.start()
    try:
        yield live_server
    finally:
        live_server.stop()
        storage.close()
