"""The reference of bench/server.py: a bare handler that scores a body and commits one row.

python bench/_minimal_server.py HOLDOUT.csv DATABASE

Reader and loss are ours; the handler has no authentication, no limits and no ledger. Rows that
wait during a commit share the next one.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from ladderboard.files import read_holdout
from ladderboard.holdout import Scorer
from ladderboard.losses import loss
from ladderboard.server import BoardProtocol, listen_on_loopback

if TYPE_CHECKING:
    from starlette.requests import Request


class Committer:
    """One writer thread; rows added during a commit are in the next transaction."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = WAL", "synchronous = FULL"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.execute("CREATE TABLE row (number INTEGER PRIMARY KEY, time, risk, size)")
        self._waiting: list[tuple[tuple[Any, ...], asyncio.Future[None]]] = []
        self._has_rows = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        threading.Thread(target=self._commit_rows, daemon=True).start()

    async def add(self, *row: Any) -> None:
        """Return when a row is on the disk."""
        self._loop = asyncio.get_running_loop()
        done = self._loop.create_future()
        with self._has_rows:
            self._waiting.append((row, done))
            self._has_rows.notify()
        await done

    def _commit_rows(self) -> None:
        while True:
            with self._has_rows:
                self._has_rows.wait_for(lambda: self._waiting)
                rows, self._waiting = self._waiting, []
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(
                "INSERT INTO row (time, risk, size) VALUES (unixepoch(), ?, ?)",
                [row for row, _ in rows],
            )
            self._database.execute("COMMIT")
            if self._loop is not None:
                self._loop.call_soon_threadsafe(_resolve, [done for _, done in rows])


def _resolve(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        future.set_result(None)


def main(holdout: str, database: str) -> None:
    """Serve until killed; the first line printed is the address."""
    scorer = Scorer(read_holdout(Path(holdout)), loss("zero_one"))
    committer = Committer(database)

    async def score(request: Request) -> JSONResponse:
        body = await request.body()
        risk = scorer.score(scorer.read(body, format="csv")).risk
        await committer.add(risk, len(body))
        return JSONResponse({"risk": risk}, 201)

    app = Starlette(routes=[Route("/submissions", score, methods=["POST"])])
    listener = listen_on_loopback(port=0)
    print(f"at {listener.url}", flush=True)
    config = uvicorn.Config(
        app, http=BoardProtocol, ws="none", log_config=None, access_log=False, server_header=False,
        date_header=False,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener.socket])


if __name__ == "__main__":
    main(*sys.argv[1:])
