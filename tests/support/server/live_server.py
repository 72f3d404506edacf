"""A board server in a thread of the test's process, on either database."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import secrets
from dataclasses import replace

import httpx
import numpy as np

from ladderboard.board import Boards, DatabaseStore, read_rules
from ladderboard.files import read_holdout, read_predictions
from ladderboard.holdout import AlignedPredictions
from ladderboard.ledger import LedgerEnvironment, PostgresStorage, SqliteStorage
from ladderboard.server import BoardProtocol, Settings, make_app
from support.board_stubs import FolderContent, ManualClock
from support.server.threaded_server import ThreadedServer

API = "/api/v1"
LABELS = np.arange(400) % 2
CSV = {"Content-Type": "text/csv"}


class InlineParsers:
    """Reads uploads in this process, which is faster than in a parser process."""

    busy = waiting = 0

    async def start(self):
        pass

    async def close(self):
        pass

    async def read(self, spec, received, notes=None):
        body = received.content
        if not isinstance(body, bytes):
            body.seek(0)
        options = {"format": received.format, "limits": spec.limits, "notes": notes}
        return await asyncio.to_thread(
            lambda: AlignedPredictions.from_values(
                read_predictions(body, spec.roster, spec.loss, **options)
            )
        )

    async def check(self, spec, received):
        notes = []
        await self.read(spec, received, notes)
        return notes


def make_folder(slug="first", **rules):
    """Return the content of a folder with 300 public and 100 private rows, and these rules."""
    lines = {"slug": slug, "title": "First", "loss": "zero_one", "questions": 100, "teams": 4}
    lines |= {"registration": "open", "ladder": "team", "mechanism": "{name: ladder, step: 0.01}"}
    lines |= rules
    body = "\n".join(f"{key}: {value}" for key, value in lines.items() if value is not None)
    rows = [f"{row},{row % 2},{'public' if row < 300 else 'private'}" for row in range(400)]
    table = read_holdout("\n".join(["id,label,split", *rows, ""]).encode())
    return FolderContent(read_rules(body), table)


def make_predictions(public, private=0):
    """Return a CSV file of predictions with this many errors on each split."""
    wrong = np.zeros(400, dtype=int)
    wrong[:public] = 1
    wrong[300 : 300 + private] = 1
    rows = "\n".join(f"{i},{v}" for i, v in enumerate(LABELS ^ wrong))
    return f"id,prediction\n{rows}\n".encode()


class LiveServer(ThreadedServer):
    """A board server, its boards, and methods that send requests to it."""

    slug = "first"
    boards_made = 0

    def __init__(self, storage, *, clock=None, salt=None, parsers=None, **settings):
        self.clock = ManualClock() if clock is None else clock
        environment = LedgerEnvironment() if clock is False else LedgerEnvironment(clock=self.clock)
        environment = environment if salt is None else replace(environment, salt=salt)
        self.boards = Boards(storage, DatabaseStore(storage), environment=environment)
        self.log = io.StringIO()
        self.organiser = self.boards.create_first_token()
        settings = Settings(log=self.log, **settings)
        app = make_app(self.boards, parsers or InlineParsers(), settings=settings)
        super().__init__(app, http=BoardProtocol, lifespan="on")

    def start(self):
        super().start()
        self.client = self.browser()

    def stop(self):
        self.client.close()
        super().stop()
        self.boards.close()

    def reset(self):
        """Choose a new slug for the next test's board; "first" in paths stands for it, too."""
        LiveServer.boards_made += 1
        self.slug = f"b{LiveServer.boards_made}"
        self.clock.now = 1_800_000_000
        self.log.seek(0)
        self.log.truncate()

    def browser(self):
        """Return an HTTP client with its own cookies."""
        return httpx.Client(base_url=self.url, timeout=60)

    def call(self, method, path, token=None, *, headers=None, **options):
        """Send a request and return the reply; most paths are below the API's."""
        path = path if path.startswith(("/api", "/healthz", "/metrics", "/openapi")) else API + path
        path = re.sub(r"/boards/first\b", f"/boards/{self.slug}", path)
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self.client.cookies.clear()
        return self.client.request(method, path, headers=headers, **options)

    def submit(self, token, body, *, slug="first", query="", **headers):
        """Submit a CSV file and return the reply."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        path = f"/boards/{slug}/submissions{query}"
        return self.call("POST", path, token, content=body, headers={**CSV, **named})

    def create_board(self, slug=None, **rules):
        """Create and return a board."""
        return self.boards.create(make_folder(slug or self.slug, **rules))

    def join(self, name, slug=None):
        """Create a team; return its id and token."""
        slug = slug or self.slug
        caller = self.boards.caller_by_token(self.organiser, slug)
        team = self.boards.open(slug).teams.register_or_create(caller, name)
        return team.id, team.token

    def issue_token(self, role, slug=None):
        """Return a token for an evaluator or organiser of a board."""
        path = f"/boards/{slug or self.slug}/tokens"
        reply = self.call("POST", path, self.organiser, json={"role": role})
        return reply.json()["token"]

    def amend(self, slug="first", **changes):
        """Change rules of a board as its organiser."""
        reply = self.call("PATCH", f"/boards/{slug}/rules", self.organiser, json=changes)
        assert reply.status_code == 200, reply.text

    def sign_in(self, browser, token, **fields):
        """Sign a browser in through the form; return the reply."""
        csrf = csrf_token(browser.get("/login").text)
        return browser.post("/session", data={"token": token, "csrf": csrf, **fields})


def assert_problem(response, status, code, *words):
    """Check the form of a problem document and the words in its detail, and return it."""
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code), response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert set(body) == {"type", "title", "status", "detail", "code", "errors"}
    assert (body["type"], body["status"]) == (f"urn:ladderboard:problem:{code}", status)
    for word in words:
        assert word in body["detail"]
    return body


def csrf_token(page):
    """Return the CSRF token in a page's forms."""
    return re.search(r'name="csrf" value="([^"]+)"', page).group(1)


@contextlib.contextmanager
def empty_storage(kind, request, folder):
    """Give an empty database of a kind."""
    if kind == "sqlite":
        storage = SqliteStorage(folder / f"boards-{secrets.token_hex(4)}.db", create=True)
    else:
        server = request.getfixturevalue("postgres")
        storage = PostgresStorage(server.url(), create=True, schema=f"s_{secrets.token_hex(6)}")
    try:
        yield storage
    finally:
        storage.close()
