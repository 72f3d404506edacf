"""A live server of boards for a browser, with parsers as there are in earnest."""

from __future__ import annotations

import contextlib
import hashlib
from itertools import count

from ladderboard.ledger import SqliteStorage
from ladderboard.server import Parsers, Rate
from support.server.live_server import LiveServer

__all__ = ["serve"]


@contextlib.contextmanager
def serve(folder, storage=None, **settings):
    """Serve boards from an empty database until it is done with.

    Tokens, ids and noise are the same every time.
    """
    many, salts = Rate(10**6, 1.0), count()
    limits = {"failures": many, "registrations": many, "invalid": many}
    made = SqliteStorage(folder / "boards.db", create=True) if storage is None else storage
    live_server = LiveServer(
        made, parsers=Parsers(count=1),
        salt=lambda: hashlib.sha256(b"browser %d" % next(salts)).digest(),
        **{**limits, **settings},
    )  # fmt: skip
    live_server.start()
    try:
        yield live_server
    finally:
        live_server.stop()
        made.close()
