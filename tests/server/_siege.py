"""A server in processes of its own, clients that press it, and everything checked afterwards."""

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ladderboard.board import Caller, FolderStore, Role, open_boards
from ladderboard.holdout import Submission

ORGANISER = Caller(Role.ORGANISER)
RELEASE = ("value", "score", "improved", "question")
_KEEPER = Path(__file__).with_name("_keeper.py")


@contextlib.contextmanager
def database_of(kind, request, folder):
    """Give the address of an empty database."""
    if kind == "sqlite":
        yield str(folder / "boards.db")
        return
    server, name = request.getfixturevalue("postgres"), f"d_{secrets.token_hex(6)}"
    server.run(f"CREATE DATABASE {name}")
    yield server.url().replace("/postgres", f"/{name}")


class Keep:
    """A server of boards that can be started, stopped and killed."""

    def __init__(self, database, folder, **how):
        self.database, self._log = database, folder / "log"
        self._files = folder / "files" if how.pop("in_folder", False) else None
        self._how = {"parsers": 1, **how}
        self._process = None
        self.tokens = {}

    def open(self):
        """Open the boards from here, beside the server or without one."""
        store = None if self._files is None else FolderStore(self._files)
        return open_boards(self.database, create=True, store=store)

    def make(self, folder, teams):
        """Make a board, and teams by their names."""
        boards = self.open()
        board = boards.create(folder)
        for name in teams:
            self.tokens[board.slug, name] = board.seats.admit(ORGANISER, name).token
        boards.close()

    def start(self):
        """Start it."""
        told = {**self._how, "database": self.database}
        told["folder"] = None if self._files is None else str(self._files)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, _KEEPER, json.dumps(told)],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def ready(self):
        """Wait until it answers."""
        line = self._process.stdout.readline().decode()
        assert line, self._log.read_text()[-5000:]
        self.port = int(line.rpartition(":")[2])
        reply, _ = Client(self).call("GET", "/healthz", Connection="close")
        assert reply.status == 200

    def family(self):
        """Return the processes that make it up, parsers included."""
        found, young = [], [self._process.pid]
        while young:
            parent = young.pop()
            found.append(parent)
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    young += map(int, task.read_text().split())
        return found

    def kill(self):
        """End all its processes at once, without a word."""
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    def stop(self):
        """Ask it to end, and return how it did."""
        self._process.terminate()
        code = self._process.wait(timeout=60)
        self._process.stdout.close()
        return code

    def log(self):
        """Return the lines of the log."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None and self._process.poll() is None:
            self.kill()


class Told(NamedTuple):
    """A reply that came whole."""

    slug: str
    name: str
    body: bytes
    status: int
    kind: str
    said: dict
    wait: str | None


@dataclass
class Client:
    """One connection to a server; what it is told is kept."""

    keep: Keep
    told: list[Told] = field(default_factory=list)
    cut: int = 0
    _line: http.client.HTTPConnection | None = None

    def call(self, method, path, body=None, **headers):
        """Return status, headers and body; None if the connection was cut."""
        if self._line is None:
            self._line = http.client.HTTPConnection("127.0.0.1", self.keep.port, timeout=120)
        try:
            self._line.request(method, path, body, headers)
            reply = self._line.getresponse()
            return reply, reply.read()
        except (http.client.HTTPException, OSError):
            self.cut += 1
            self.close()
            return None

    @property
    def local_port(self):
        """The port at this end of the open connection."""
        return self._line.sock.getsockname()[1]

    def submit(self, slug, name, body, key=None):
        """Send predictions for a team; return what was said, None if nobody will know."""
        headers = {"Authorization": f"Bearer {self.keep.tokens[slug, name]}"}
        headers["Content-Type"] = "text/csv"
        if key is not None:
            headers["Idempotency-Key"] = key
        found = self.call("POST", f"/api/v1/boards/{slug}/submissions", body, **headers)
        if found is None:
            return None
        reply, said = found
        kind, wait = reply.headers["content-type"], reply.headers["retry-after"]
        told = Told(slug, name, body, reply.status, kind, json.loads(said), wait)
        self.told.append(told)
        return told

    def close(self):
        if self._line is not None:
            self._line.close()
        self._line = None


def server_process(port, pids):
    """Return which process holds the other end of the connection from a local port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) == port}
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):  # it was closed meanwhile
                if str(file.readlink()) in ends:
                    return pid
    raise AssertionError(port)


def press(keep, clients, work):
    """Let so many clients work at once: ``work(client, number)``; return them when all have."""
    made = [Client(keep) for _ in range(clients)]
    errors = []

    def run(client, number):
        try:
            work(client, number)
        except BaseException as error:  # noqa: BLE001 - the test's own thread raises it
            errors.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(each, at)) for at, each in enumerate(made)]
    for each in threads:
        each.start()
    return made, threads, errors


def verify(board, told):
    """Compare ledger, tables, files and everything that was told; return all submissions by id."""
    book = board.book
    with board.reading() as view:
        rows = view.run(
            "SELECT id, team, number, entry, time, size, place, value, score, improved, question "
            "FROM main.submission WHERE book = ? ORDER BY entry",
            (view.number,),
        )
        teams = view.run(
            "SELECT number, id, used, last, released, since FROM main.team WHERE book = ?",
            (view.number,),
        )
        records = view.run(
            "SELECT entry, time, team, value FROM main.record WHERE book = ? ORDER BY entry",
            (view.number,),
        )
        uploads = {row[0] for row in view.run("SELECT id FROM main.upload")}
        at = view.at()
    row, rules = board.row(), board.rules
    names = {number: own for number, own, *_ in teams}
    # The chain holds, and every release and state follows from what came before.
    entries = [fields for _, fields in book.entries() if fields["kind"] == "question"]
    assert book.check() == len(entries) == at.asked
    # A row for each question, and none without.
    assert [each["number"] for each in entries] == [each[3] for each in rows]
    by_id, files = {}, {}
    best, best_rows, pooled = None, [], 0
    state = {number: [0, None, None, None] for number in names}
    for entry, each in zip(entries, rows, strict=True):
        own, team, number, _, time, size, place, value, score, improved, question = each
        assert entry["asker"] == names[team]
        assert entry["time"] == time
        assert [value, score, bool(improved), question] == [entry[name] for name in RELEASE]
        stands = state[team]
        pooled += stands[0] >= rules.share
        stands[0] += 1
        stands[1] = time
        assert number == stands[0]
        if improved:
            stands[2:] = [value, time]
            if value is not None and (best is None or value < best):
                best = value
                best_rows.append((entry["number"], time, team, value))
        files[own] = board.stored(place)
        assert len(files[own]) == size
        by_id[own] = {**dict(zip(RELEASE, each[7:], strict=True)), "entry": each[3], "time": time}
        by_id[own] |= {"team": names[team], "number": number, "place": place}
    # What is counted beside the ledger is what the ledger says.
    assert {number: [*rest] for number, _, *rest in teams} == state
    assert records == best_rows
    assert (row.best, row.pooled, row.stored) == (best, pooled, sum(map(len, files.values())))
    assert {each for each in uploads if each in by_id} == {
        own for own, each in by_id.items() if each["place"] == own
    }
    read = board.scorer_of(row).read
    return by_id, _compare(told, board.slug, by_id, files, read)


def _compare(told, slug, by_id, files, read):
    """Compare what anybody was told; return the ids of what was told as new."""
    fresh = set()
    for each in told:
        if each.slug != slug or each.status not in {200, 201}:
            continue
        said = each.said
        known = by_id[said["id"]]
        assert said["again"] == (each.status == 200)
        assert Submission.unpack(files[said["id"]]).digest == read(each.body).digest
        assert [said["loss"], said["score_loss"], *(said[name] for name in RELEASE[2:])] == [
            known["value"], known["score"], bool(known["improved"]), known["question"]
        ]  # fmt: skip
        assert (said["entry"], said["number"]) == (known["entry"], known["number"])
        assert said["team"] == {"id": known["team"], "name": each.name}
        if each.status == 201:
            assert said["id"] not in fresh
            fresh.add(said["id"])
    return fresh


def orphans(board):
    """Return how many uploads in the database belong to no submission of any board."""
    with board.reading() as view:
        return view.run(
            "SELECT count(*) FROM main.upload WHERE NOT EXISTS "
            "(SELECT 1 FROM main.submission WHERE main.submission.place = main.upload.id)"
        )[0][0]


__all__ = ["Client", "Keep", "database_of", "orphans", "press", "server_process", "verify"]
