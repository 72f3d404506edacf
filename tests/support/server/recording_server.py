"""A board server that records every reply, its recipient, and everything it stores."""

from __future__ import annotations

import collections
import hashlib
import io
import re
import time
from typing import NamedTuple

import httpx

from ladderboard.board import PUBLIC, Boards, Caller, MixedStore
from ladderboard.errors import NotAllowed
from ladderboard.ledger import LedgerEnvironment
from ladderboard.server import BoardProtocol, ParserPool, Rate, Settings, make_app
from support.server.threaded_server import ThreadedServer

SECRET_COLUMNS = {"secret": "packed", "ladder": "state", "kept": "value"}
SECRET_NAMES = ("key", "marking", "salt of the holdout", "salt of the key")
TABLES = ("board", "team", "credential", "submission", "record", "upload", "entry", "mark",
          *SECRET_COLUMNS)  # fmt: skip
_DISK_FREE = re.compile(rb"(ladderboard_disk_free_bytes{\w+=\"\w+\"}) \d+")  # of the machine


class RecordedReply(NamedTuple):
    """A reply, its recipient, and the visibility of the board at the time."""

    recipient: Caller
    visibility: str
    method: str
    path: str
    status: int
    headers: bytes
    body: bytes


class RecordedLog(io.StringIO):
    """A log whose last lines can be read without copying all of it."""

    def __init__(self):
        super().__init__()
        self._last = collections.deque(maxlen=20)

    def write(self, text):
        self._last.append(text)
        return super().write(text)

    def recent(self):
        """Return what was written last."""
        return "".join(self._last.copy())


class RecordingServer(ThreadedServer):
    """Serves one world's board.

    ``steps`` are maps of ``step`` and ``output``, ``replies`` the same replies in parts. After
    ``read_ledger`` there are ``entries``, ``teams`` and ``secrets`` with their names.
    """

    def __init__(self, storage, path, mechanism, salt, parsers=None):
        self.now = 1_800_000_000
        self.environment = LedgerEnvironment(clock=lambda: self.now, salt=salt)
        self.path, store = path, MixedStore(storage, path / "files")
        self.boards = Boards(storage, store, environment=self.environment, mechanism=mechanism)
        self.log, self.steps, self.replies = RecordedLog(), [], []
        self.visibility, self._signed_in, self._callers = "public", PUBLIC, {}
        limit = Rate(150, 1e9)  # reached by the requests with an invalid token
        settings = Settings(
            log=self.log, timer=lambda: 0.0, registrations=Rate(8, 1e9), failures=limit,
            invalid=limit,
        )  # fmt: skip
        app = make_app(self.boards, parsers or ParserPool(1), settings=settings)
        super().__init__(app, http=BoardProtocol, lifespan="on")

    def start(self):
        super().start()
        # Pages show the port, which differs between worlds.
        self.client = httpx.Client(base_url=self.url, headers={"Host": "localhost"}, timeout=60)

    def stop(self):
        self.client.close()
        super().stop()

    def call(self, method, path, token=None, *, cookies=False, **options):
        """Send a request; record and return the reply."""
        headers = {**options.pop("headers", {})}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if not cookies:
            self.client.cookies.clear()
            self._signed_in = PUBLIC
        recipient = self._signed_in if token is None else self._caller_of(token)
        reply = self.client.request(method, path, headers=headers, **options)
        while reply.headers["x-request-id"] not in self.log.recent():
            time.sleep(0.001)  # a refused body is still read; the clock moves after its log line
        if method != "GET":  # which may issue or revoke tokens
            self._callers.clear()
        if path == "/session" and reply.status_code == 303:
            self._signed_in = recipient = self._caller_of(options["data"]["token"])
        raw = [(name, value) for name, value in reply.headers.raw]
        body = _DISK_FREE.sub(rb"\1 ...", reply.content)
        step = f"{len(self.steps)} {method} {path}"
        self.steps.append({"step": step, "output": (reply.status_code, raw, body)})
        lines = b"".join(b"%b: %b\n" % header for header in raw)
        self.replies.append(
            RecordedReply(recipient, self.visibility, method, path, reply.status_code, lines, body)
        )
        return reply

    def _caller_of(self, token):
        """Return the current holder of a token, independently of the server."""
        if token not in self._callers:
            try:
                caller = self.boards.caller_by_token(token, "first")._replace(credential=None)
            except NotAllowed:
                caller = PUBLIC
            self._callers[token] = caller
        return self._callers[token]

    def set_visibility(self, visibility, organiser):
        """Change the visibility of the board as its organiser."""
        self.api("PATCH", "/rules", organiser, json={"visibility": visibility})
        self.visibility = visibility

    def api(self, method, path, token=None, **options):
        """Send a request to the API of the board."""
        return self.call(method, f"/api/v1/boards/first{path}", token, **options)

    def submit(self, token, body, query="", **headers):
        """Submit a CSV file."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api(
            "POST", f"/submissions{query}", token, content=body,
            headers={"Content-Type": "text/csv", **named},
        )  # fmt: skip

    def read_ledger(self):
        """Check the ledger; keep its entries, all teams, and all secrets."""
        board = self.boards.open("first")
        assert board.book.check() == board.book.chain_state().asked
        with board.reading() as view:
            self.entries = list(view.entries())
            self.teams = dict(view.query("SELECT id, number FROM main.team"))
        secrets_by_value = {board.book.read_encrypted(name): name for name in SECRET_NAMES}
        key = hashlib.sha256(board.book.read_encrypted("key")).digest()
        self.secrets = {
            **secrets_by_value,
            key: "hash of the key",
            self.boards.signing_key(): "signing key",
        }

    def files(self):
        """Return the content of all files but the database."""
        files = (path for path in self.path.rglob("*") if path.is_file())
        return sorted(file.read_bytes() for file in files if ".db-" not in f"{file.name}-")

    def tables(self):
        """Return all rows of all tables; of secret values, the size."""
        content = {}
        with self.boards.open("first").reading() as view:
            for table in TABLES:
                rows = view.query(f"SELECT * FROM main.{table}")
                if table in SECRET_COLUMNS:
                    rows = [tuple(map(_size_of_bytes, row)) for row in rows]
                content[table] = sorted(map(tuple, rows), key=repr)
        return content


def _size_of_bytes(value):
    return len(value) if isinstance(value, bytes) else value
