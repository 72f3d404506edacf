"""A server in its own processes, clients that put it under load, and checks of the result."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psycopg

from ladderboard.board import Caller, FolderStore, Role, open_boards
from ladderboard.holdout import AlignedPredictions

ORGANISER = Caller(Role.ORGANISER)
RELEASE = ("value", "score", "improved", "question")
_SERVE_MAIN = Path(__file__).with_name("serve_main.py")


@contextlib.contextmanager
def empty_database(kind, request, folder):
    """Give the URL or path of an empty database of a kind."""
    if kind == "sqlite":
        yield str(folder / "boards.db")
        return
    server, name = request.getfixturevalue("postgres"), f"d_{secrets.token_hex(6)}"
    server.run(f"CREATE DATABASE {name}")
    yield server.url().replace("/postgres", f"/{name}")


class StressServer:
    """A board server in its own processes that can be started, stopped and killed.

    ``options`` are fields of ``Settings``; ``in_folder`` stores submissions in a folder.
    """

    def __init__(self, database, folder, *, in_folder=False, **options):
        self.database, self._log = database, folder / "log"
        self._files = folder / "files" if in_folder else None
        self._options = {"parsers": 1, **options}
        self._process = None
        self.tokens = {}

    def open_boards(self):
        """Open the boards in this process, whether the server runs or not."""
        store = None if self._files is None else FolderStore(self._files)
        return open_boards(self.database, create=True, store=store)

    def create_board(self, folder, team_names):
        """Create a board with teams."""
        boards = self.open_boards()
        board = boards.create(folder)
        for name in team_names:
            self.tokens[board.slug, name] = board.teams.register_or_create(ORGANISER, name).token
        boards.close()

    def start(self):
        """Start the server."""
        options = {**self._options, "database": self.database}
        options["folder"] = None if self._files is None else str(self._files)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, _SERVE_MAIN, json.dumps(options)],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_ready(self):
        """Wait until the server answers requests."""
        line = self._process.stdout.readline().decode()
        assert line, self._log.read_text()[-5000:]
        self.port = int(line.rpartition(":")[2])
        reply, _ = StressClient(self).call("GET", "/healthz", Connection="close")
        assert reply.status == 200

    def process_tree(self):
        """Return the ids of all its processes, the first included."""
        pids, unvisited = [], [self._process.pid]
        while unvisited:
            parent = unvisited.pop()
            pids.append(parent)
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    unvisited += map(int, task.read_text().split())
        return pids

    def kill(self):
        """Kill all its processes at once."""
        for pid in self.process_tree():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()
        if self.database.startswith("postgresql"):
            self._wait_for_backends()

    def _wait_for_backends(self):
        """Wait until PostgreSQL has ended what the killed server had sent, a commit perhaps."""
        count = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        deadline = time.monotonic() + 60
        with psycopg.connect(self.database, autocommit=True) as connection:
            while connection.execute(count).fetchone() != (0,):
                assert time.monotonic() < deadline, "PostgreSQL still serves the killed server."
                time.sleep(0.01)

    def stop(self):
        """Stop the server with SIGTERM; return its exit code."""
        self._process.terminate()
        code = self._process.wait(timeout=60)
        self._process.stdout.close()
        return code

    def log(self):
        """Return the events in the log."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None and self._process.poll() is None:
            self.kill()


class SubmissionReply(NamedTuple):
    """A complete reply to a submission, with what was sent."""

    slug: str
    team_name: str
    body: bytes
    status: int
    content_type: str
    content: dict
    retry_after: str | None


@dataclass
class StressClient:
    """One connection to a server; collects the replies to its submissions."""

    server: StressServer
    replies: list[SubmissionReply] = field(default_factory=list)
    connections_lost: int = 0
    _connection: http.client.HTTPConnection | None = None

    def call(self, method, path, body=None, **headers):
        """Return the reply and its body; None if the connection was lost."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                "127.0.0.1", self.server.port, timeout=120
            )
        try:
            self._connection.request(method, path, body, headers)
            reply = self._connection.getresponse()
            return reply, reply.read()
        except (http.client.HTTPException, OSError):
            self.connections_lost += 1
            self.close()
            return None

    @property
    def local_port(self):
        """The port at this end of the open connection."""
        return self._connection.sock.getsockname()[1]

    def submit(self, slug, team_name, body, key=None):
        """Submit predictions for a team; return the reply, None if the connection was lost."""
        headers = {"Authorization": f"Bearer {self.server.tokens[slug, team_name]}"}
        headers["Content-Type"] = "text/csv"
        if key is not None:
            headers["Idempotency-Key"] = key
        received = self.call("POST", f"/api/v1/boards/{slug}/submissions", body, **headers)
        if received is None:
            return None
        reply, content = received
        content_type, retry_after = reply.headers["content-type"], reply.headers["retry-after"]
        self.replies.append(
            SubmissionReply(
                slug, team_name, body, reply.status, content_type, json.loads(content), retry_after
            )
        )
        return self.replies[-1]

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def server_process(port, pids):
    """Return the process that holds the server's end of the connection from a local port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) == port}
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):  # it was closed meanwhile
                if str(file.readlink()) in sockets:
                    return pid
    raise AssertionError(port)


def start_clients(server, count, work):
    """Run ``work(client, number)`` in a thread for each client.

    Returns the clients, their threads and a list that collects errors.
    """
    clients = [StressClient(server) for _ in range(count)]
    errors = []

    def run(client, number):
        try:
            work(client, number)
        except BaseException as error:  # noqa: BLE001 - the test's thread raises it
            errors.append(error)
        finally:
            client.close()

    threads = [
        threading.Thread(target=run, args=(client, number)) for number, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    return clients, threads, errors


def check_board(board, replies):
    """Compare ledger, tables, files and all replies.

    Returns all submissions by id, and the ids of those that a reply named as new.
    """
    book = board.book
    with board.reading() as view:
        rows = view.query(
            "SELECT id, team, number, entry, time, size, place, value, score, improved, question "
            "FROM main.submission WHERE book = ? ORDER BY entry",
            (view.book_id,),
        )
        teams = view.query(
            "SELECT number, id, used, last, released, since FROM main.team WHERE book = ?",
            (view.book_id,),
        )
        records = view.query(
            "SELECT entry, time, team, value FROM main.record WHERE book = ? ORDER BY entry",
            (view.book_id,),
        )
        uploads = {row[0] for row in view.query("SELECT id FROM main.upload")}
        state = view.chain_state()
    row, rules = board.row(), board.rules
    team_ids = {number: team_id for number, team_id, *_ in teams}
    # The chain is intact, and every release and state follows from what came before.
    entries = [fields for _, fields in book.entries() if fields["kind"] == "question"]
    assert book.check() == len(entries) == state.asked
    # One row per question, and no other.
    assert [entry["number"] for entry in entries] == [submission[3] for submission in rows]
    by_id, files = {}, {}
    best, best_rows, pooled = None, [], 0
    standings = {number: [0, None, None, None] for number in team_ids}
    for entry, columns in zip(entries, rows, strict=True):
        own_id, team, number, _, time, size, location, value, score, improved, question = columns
        assert entry["asker"] == team_ids[team]
        assert entry["time"] == time
        assert [value, score, bool(improved), question] == [entry[name] for name in RELEASE]
        standing = standings[team]
        pooled += standing[0] >= rules.share
        standing[0] += 1
        standing[1] = time
        assert number == standing[0]
        if improved:
            standing[2:] = [value, time]
            if value is not None and (best is None or value < best):
                best = value
                best_rows.append((entry["number"], time, team, value))
        files[own_id] = board.read_stored_file(location)
        assert len(files[own_id]) == size
        by_id[own_id] = {
            **dict(zip(RELEASE, columns[7:], strict=True)),
            "entry": columns[3], "time": time, "team": team_ids[team], "number": number,
            "place": location,
        }  # fmt: skip
    # Counts in other tables agree with the ledger.
    assert {number: [*rest] for number, _, *rest in teams} == standings
    assert records == best_rows
    assert (row.best, row.pooled, row.stored) == (best, pooled, sum(map(len, files.values())))
    assert {upload for upload in uploads if upload in by_id} == {
        own_id for own_id, submission in by_id.items() if submission["place"] == own_id
    }
    read = board.scorer_of(row).read
    return by_id, _check_replies(replies, board.slug, by_id, files, read)


def _check_replies(replies, slug, by_id, files, read):
    """Compare all replies with what is stored; return the ids of submissions told as new."""
    new = set()
    for reply in replies:
        if reply.slug != slug or reply.status not in {200, 201}:
            continue
        content = reply.content
        stored = by_id[content["id"]]
        assert content["again"] == (reply.status == 200)
        assert AlignedPredictions.unpack(files[content["id"]]).digest == read(reply.body).digest
        release = [content["loss"], content["score_loss"], *(content[name] for name in RELEASE[2:])]
        assert release == [
            stored["value"], stored["score"], bool(stored["improved"]), stored["question"]
        ]  # fmt: skip
        assert (content["entry"], content["number"]) == (stored["entry"], stored["number"])
        assert content["team"] == {"id": stored["team"], "name": reply.team_name}
        if reply.status == 201:
            assert content["id"] not in new
            new.add(content["id"])
    return new


def count_orphaned_uploads(board):
    """Return the number of uploads in the database without a submission on any board."""
    with board.reading() as view:
        return view.query(
            "SELECT count(*) FROM main.upload WHERE NOT EXISTS "
            "(SELECT 1 FROM main.submission WHERE main.submission.place = main.upload.id)"
        )[0][0]
