"""A server of boards for tests: uvicorn in a thread, on either database."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import secrets
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import httpx
import numpy as np
import uvicorn

from ladderboard.board import Boards, DatabaseStore, Rules, read_rules
from ladderboard.files import HoldoutTable, read_holdout, read_predictions
from ladderboard.holdout import Submission
from ladderboard.ledger import PostgresStorage, SqliteStorage, World
from ladderboard.server import BoardProtocol, Rate, Settings, make_app

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Hall", "Rate", "csrf_of", "make_folder", "predict", "storage_of"]

API = "/api/v1"
LABELS = np.arange(400) % 2
CSV = {"Content-Type": "text/csv"}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now=1_800_000_000):
        self.now = now

    def __call__(self):
        return self.now


class Inline:
    """Parsers that are no processes: for tests of everything else."""

    busy = waiting = 0

    async def start(self):
        pass

    async def close(self):
        pass

    async def read(self, key, spec, received, *, training=None):
        body = received.content
        return await asyncio.to_thread(
            lambda: Submission.of(
                read_predictions(
                    body, spec.roster, spec.loss, format=received.format, limits=spec.limits
                )
            )
        )


@dataclass
class Folder:
    """A board's folder, without a folder: 300 public rows, 100 private ones."""

    rules: Rules
    table: HoldoutTable
    baselines: dict[str, Path] = field(default_factory=dict)


def make_folder(slug="first", **more):
    """Return what a board is made of; ``more`` are keys of board.yaml."""
    lines = {"slug": slug, "title": "First", "loss": "zero_one", "questions": 100, "teams": 4}
    lines |= {"registration": "open", "ladder": "team", "mechanism": "{name: ladder, step: 0.01}"}
    lines |= more
    body = "\n".join(f"{key}: {value}" for key, value in lines.items() if value is not None)
    rows = [f"{at},{at % 2},{'public' if at < 300 else 'private'}" for at in range(400)]
    table = read_holdout("\n".join(["id,label,split", *rows, ""]).encode())
    return Folder(read_rules(body), table)


def predict(public, private=0):
    """Return predictions as a file, with so many wrong on each split."""
    wrong = np.zeros(400, dtype=int)
    wrong[:public] = 1
    wrong[300 : 300 + private] = 1
    rows = "\n".join(f"{i},{v}" for i, v in enumerate(LABELS ^ wrong))
    return f"id,prediction\n{rows}\n".encode()


class Hall:
    """A running server, its boards, and ways to talk to it."""

    slug = "first"
    made = 0

    def __init__(self, storage, *, clock=None, salt=None, parsers=None, **settings):
        self.clock = Clock() if clock is None else clock
        world = World() if clock is False else World(clock=self.clock)
        world = world if salt is None else replace(world, salt=salt)
        self.boards = Boards(storage, DatabaseStore(storage), world=world)
        self.log = io.StringIO()
        self.organiser = self.boards.first_token()
        self.app = make_app(
            self.boards, parsers or Inline(), settings=Settings(log=self.log, **settings)
        )
        config = uvicorn.Config(
            self.app, http=BoardProtocol, ws="none", lifespan="on", port=0, log_level="critical",
            log_config=None, server_header=False, date_header=False,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run)

    def start(self):
        self._thread.start()
        while not self.server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = self.browser()

    def stop(self):
        self.client.close()
        self.server.should_exit = True
        self._thread.join()
        self.boards.close()

    def renew(self):
        """Begin with a board of its own for a test; it goes by "first" in paths, too."""
        Hall.made += 1
        self.slug = f"b{Hall.made}"
        self.clock.now = 1_800_000_000
        self.log.seek(0)
        self.log.truncate()

    def browser(self):
        """Return a client with cookies of its own."""
        return httpx.Client(base_url=self.url, timeout=60)

    def call(self, method, path, token=None, *, headers=None, **more):
        """Return the reply to a request under the API, or elsewhere if the path says so."""
        path = path if path.startswith(("/api", "/healthz", "/metrics", "/openapi")) else API + path
        path = re.sub(r"/boards/first\b", f"/boards/{self.slug}", path)
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        self.client.cookies.clear()
        return self.client.request(method, path, headers=sent, **more)

    def submit(self, token, body, *, slug="first", query="", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        path = f"/boards/{slug}/submissions{query}"
        return self.call("POST", path, token, content=body, headers={**CSV, **named})

    def board(self, slug=None, **more):
        """Make a board."""
        return self.boards.create(make_folder(slug or self.slug, **more))

    def join(self, name, slug=None):
        """Make a team; return its id and token."""
        slug = slug or self.slug
        made = self.boards.open(slug).seats.admit(self.boards.by_token(self.organiser, slug), name)
        return made.id, made.token

    def trusted(self, role, slug=None):
        """Make a token for an evaluator or organiser of a board."""
        path = f"/boards/{slug or self.slug}/tokens"
        said = self.call("POST", path, self.organiser, json={"role": role})
        return said.json()["token"]

    def amend(self, slug="first", **changes):
        said = self.call("PATCH", f"/boards/{slug}/rules", self.organiser, json=changes)
        assert said.status_code == 200, said.text

    def sign_in(self, browser, token, **more):
        """Sign a browser in through the form."""
        word = csrf_of(browser.get("/login").text)
        return browser.post("/session", data={"token": token, "csrf": word, **more})


def csrf_of(page):
    """Return the word that a page's forms say."""
    return re.search(r'name="csrf" value="([^"]+)"', page).group(1)


@contextlib.contextmanager
def storage_of(kind, request, folder):
    """Give an empty database."""
    if kind == "sqlite":
        made = SqliteStorage(folder / f"boards-{secrets.token_hex(4)}.db", create=True)
    else:
        server = request.getfixturevalue("postgres")
        made = PostgresStorage(server.url(), create=True, schema=f"s_{secrets.token_hex(6)}")
    try:
        yield made
    finally:
        made.close()
