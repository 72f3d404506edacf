"""A server on which one world is played, with everything written down that it says, and to whom."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import time
from typing import NamedTuple

import httpx
import uvicorn

from ladderboard.board import PUBLIC, Boards, Caller, MixedStore
from ladderboard.errors import NotAllowed
from ladderboard.ledger import World
from ladderboard.server import BoardProtocol, Parsers, Rate, Settings, make_app

SECRET = {"secret": "packed", "ladder": "state", "kept": "value"}
KEPT = ("key", "marking", "salt of the holdout", "salt of the key")
TABLES = ("board", "team", "credential", "submission", "record", "upload", "entry", "mark", *SECRET)
_FREE = re.compile(rb"(ladderboard_disk_free_bytes{\w+=\"\w+\"}) \d+")  # the machine's, of no world


class Heard(NamedTuple):
    """An answer, who heard it, and how much was shown of the board by then."""

    by: Caller
    visibility: str
    method: str
    path: str
    status: int
    headers: bytes
    body: bytes


class Theatre:
    """A server on which one world is played."""

    def __init__(self, storage, path, mechanism, salt, parsers=None):
        self.now = 1_800_000_000
        self.world = World(clock=lambda: self.now, salt=salt)
        self.path, store = path, MixedStore(storage, path / "files")
        self.boards = Boards(storage, store, world=self.world, mechanism=mechanism)
        self.log, self.seen, self.heard = io.StringIO(), [], []
        self.visibility, self._signed_in, self._bearers = "public", PUBLIC, {}
        many = Rate(150, 1e9)  # of which the tours with a wrong token use up all
        settings = Settings(
            log=self.log, timer=lambda: 0.0, failures=many, registrations=Rate(8, 1e9), invalid=many
        )
        self.app = make_app(self.boards, parsers or Parsers(1), settings=settings)
        config = uvicorn.Config(
            self.app, http=BoardProtocol, ws="none", lifespan="on", port=0, log_level="critical",
            log_config=None, server_header=False, date_header=False,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run)

    def __enter__(self):
        self._thread.start()
        while not self.server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        # The port is told in pages, and belongs to no world.
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Host": "localhost"}, timeout=60
        )
        return self

    def __exit__(self, *_):
        self.client.close()
        self.server.should_exit = True
        self._thread.join()

    def call(self, method, path, token=None, *, cookies=False, **more):
        """Ask something, and write down every byte of the answer."""
        headers = {**more.pop("headers", {})}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if not cookies:
            self.client.cookies.clear()
            self._signed_in = PUBLIC
        by = self._signed_in if token is None else self._who(token)
        said = self.client.request(method, path, headers=headers, **more)
        while said.headers["x-request-id"] not in self.log.getvalue()[-5000:]:
            time.sleep(0.001)  # a refused body is still read; the clock moves after its line
        if method != "GET":  # by which tokens may come and go
            self._bearers.clear()
        if path == "/session" and said.status_code == 303:
            self._signed_in = by = self._who(more["data"]["token"])
        step = f"{len(self.seen)} {method} {path}"
        raw = [(name, value) for name, value in said.headers.raw]
        body = _FREE.sub(rb"\1 ...", said.content)
        self.seen.append({"step": step, "said": (said.status_code, raw, body)})
        flat = b"".join(b"%b: %b\n" % each for each in raw)
        self.heard.append(Heard(by, self.visibility, method, path, said.status_code, flat, body))
        return said

    def _who(self, token):
        """Return whose token this is now, whatever the server thinks."""
        if token not in self._bearers:
            try:
                found = self.boards.by_token(token, "first")._replace(credential=None)
            except NotAllowed:
                found = PUBLIC
            self._bearers[token] = found
        return self._bearers[token]

    def show(self, visibility, organiser):
        """Let the organiser decide how much is shown."""
        self.api("PATCH", "/rules", organiser, json={"visibility": visibility})
        self.visibility = visibility

    def api(self, method, path, token=None, **more):
        return self.call(method, f"/api/v1/boards/first{path}", token, **more)

    def submit(self, token, body, query="", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api(
            "POST", f"/submissions{query}", token, content=body,
            headers={"Content-Type": "text/csv", **named},
        )  # fmt: skip

    def look_inside(self):
        """Write down the whole ledger, which holds, all teams, and what nobody may know."""
        board = self.boards.open("first")
        assert board.book.check() == board.book.at().asked
        with board.reading() as view:
            self.chain = list(view.entries())
            self.teams = dict(view.run("SELECT id, number FROM main.team"))
        kept = {board.book.kept(name): name for name in KEPT}
        key = hashlib.sha256(board.book.kept("key")).digest()
        self.kept = {**kept, key: "hash of the key", self.boards.signing_key(): "signing key"}

    def files(self):
        """Return what lies beside the database."""
        found = (each for each in self.path.rglob("*") if each.is_file())
        return sorted(each.read_bytes() for each in found if ".db-" not in f"{each.name}-")

    def tables(self):
        """Return everything that is stored; of what is secret, the size."""
        found = {}
        with self.boards.open("first").reading() as view:
            for table in TABLES:
                rows = view.run(f"SELECT * FROM main.{table}")
                secret = SECRET.get(table)
                shown = [
                    tuple(len(each) if secret and isinstance(each, bytes) else each for each in row)
                    for row in rows
                ]
                found[table] = sorted(shown, key=repr)
        return found
