"""Connections of clients that do not read, ask too much at once or leave keep nobody else out."""

import asyncio
import contextlib
import http.client
import json
import resource
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

import pytest
import uvicorn

from ladderboard.server._problems import RequestRefused
from ladderboard.server._process import _connections
from ladderboard.server._process._shutdown import BoardProtocol, BoardServer
from ladderboard.server._rate_limits import AddressLimit, RequestScheduler
from support.server import HOSTILE_CLIENTS
from support.server.live_server import make_folder
from support.server.stress_server import StressServer

SMALL = b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n"
BIG = SMALL.replace(b"small", b"big")
BODY = bytes(2**20)


async def answer(scope, receive, send):
    """Answer with a body whose size depends on the path."""
    body = BODY if scope["path"] == "/big" else b"ok"
    size = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [size]})
    for at in range(0, len(body), 2**16):
        part = {"body": body[at : at + 2**16], "more_body": at + 2**16 < len(body)}
        await send({"type": "http.response.body", **part})


class Small:
    """The real server and protocol, with an application that needs no database."""

    def __init__(self, **how):
        config = uvicorn.Config(
            answer, http=BoardProtocol, ws="none", lifespan="off", log_config=None
        )
        self.server = BoardServer(config, **how)
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        # Or the kernel would take a megabyte for a client that reads nothing.
        self.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.port = self.listening.getsockname()[1]
        self._thread = threading.Thread(target=self.server.run, args=([self.listening],))
        self._lines = []

    @property
    def connections(self):
        return len(self.server.server_state.connections)

    def dial(self, *said, source="127.0.0.1", buffer=None):
        line = socket.socket()
        self._lines.append(line)
        if buffer is not None:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        line.settimeout(20)
        line.bind((source, 0))
        line.connect(("127.0.0.1", self.port))
        for each in said:
            line.sendall(each)
        return line

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        for line in self._lines:
            line.close()
        self.server.should_exit = True
        self._thread.join()


def until(so, seconds=20):
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end
        time.sleep(0.01)


def read_all(line):
    """Return everything until the other side ends the connection."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while part := line.recv(2**16):
            got += part
    return got


def works(server, **how):
    line = server.dial(SMALL, **how)
    try:
        return line.recv(1000).endswith(b"ok")
    except ConnectionResetError:
        return False


def blocked(server):
    """Return how many connections wait for their client to read."""
    return sum(each.flow.write_paused for each in list(server.server.server_state.connections))


def test_a_client_that_does_not_read_is_closed(monkeypatch):
    monkeypatch.setattr(BoardProtocol, "stall_seconds", 0.2)
    with Small() as server:
        line = server.dial(BIG, buffer=4096)
        until(lambda: blocked(server) == 1)
        until(lambda: server.connections == 0)
        assert len(read_all(line)) < len(BODY)


def test_a_client_that_reads_slowly_is_not(monkeypatch):
    monkeypatch.setattr(BoardProtocol, "stall_seconds", 0.5)
    monkeypatch.setattr(BoardProtocol, "idle_seconds", 0.5)
    with Small() as server:
        line, got = server.dial(BIG, buffer=4096), 0
        for _ in range(16):
            time.sleep(0.1)
            for _ in range(8):
                got += len(line.recv(2**13))
        while got < len(BODY):
            got += len(line.recv(2**16))


def test_clients_that_do_not_read_make_way_for_others(monkeypatch):
    monkeypatch.setattr(BoardProtocol, "max_connections", 5)
    monkeypatch.setattr(_connections, "_SPARED", 0.0)
    with Small() as server:
        for _ in range(5):
            server.dial(BIG, buffer=4096)
        until(lambda: blocked(server) == 5)
        assert works(server)


def test_a_thousand_clients_that_do_not_read_keep_nobody_out(files):
    with Small() as server:
        for _ in range(BoardProtocol.max_connections):
            server.dial(BIG, buffer=4096)
        until(lambda: blocked(server) == BoardProtocol.max_connections)
        until(lambda: works(server), 5)
        assert server.connections <= BoardProtocol.max_connections


@pytest.fixture
def files():
    """Let this process have some thousand files open."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 4096:
        pytest.skip("too few files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before, 4096), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


def test_an_address_has_its_limit_and_others_have_theirs():
    with Small(addresses=AddressLimit(3, local=True)) as server:
        for _ in range(3):
            server.dial(BIG, source="127.0.0.2", buffer=4096)
        until(lambda: blocked(server) == 3)
        assert not works(server, source="127.0.0.2")
        assert works(server, source="127.0.0.3")
        idle = server.dial(source="127.0.0.3")
        for _ in range(3):
            assert works(server, source="127.0.0.3")  # the silent ones make way
        assert read_all(idle) == b""
        assert blocked(server) == 3


def test_trusted_proxies_and_this_machine_have_no_limit():
    limit = AddressLimit(1, "127.0.0.2")
    assert limit.key_for_peer(("127.0.0.1", 1)) is None
    limit = AddressLimit(1, "127.0.0.2", local=True)
    with Small(addresses=limit) as server:
        for _ in range(4):
            server.dial(BIG, source="127.0.0.2", buffer=4096)
        until(lambda: blocked(server) == 4)


def test_few_requests_are_taken_ahead_of_their_answers():
    with Small() as server:
        got = read_all(server.dial(1000 * SMALL))
        answers = got.count(b"HTTP/1.1 200")
        assert answers == 1 + BoardProtocol.depth
        assert got.count(b"connection: close") == 1
        assert got.rindex(b"connection: close") > got.rindex(b"HTTP/1.1")
        line = server.dial(BoardProtocol.depth * SMALL)
        got = b""
        while got.count(b"ok") < BoardProtocol.depth:
            got += line.recv(2**16)
        line.sendall(SMALL)
        assert line.recv(1000).endswith(b"ok")


def test_what_is_no_http_is_refused_after_the_answer_before_it():
    with Small() as server:
        got = read_all(server.dial(BIG + b"nonsense\r\n\r\n"))
        assert got.count(b"HTTP/1.1") == 1
        assert got.endswith(BODY)
        assert read_all(server.dial(b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_pipelining_client_that_leaves_is_no_error(live_server, monkeypatch):
    open_board, second, left = live_server.boards.open, threading.Event(), threading.Event()
    opened = []

    def open_late(slug):
        opened.append(slug)
        if len(opened) == 2:
            second.set()
            left.wait(20)
        return open_board(slug)

    monkeypatch.setattr(live_server.boards, "open", open_late)
    live_server.client.close()
    asked = f"GET /api/v1/boards/{live_server.slug} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", live_server.port)) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.sendall(4 * asked)
        assert second.wait(20)
    time.sleep(0.3)
    left.set()
    state = live_server.server.server_state
    until(lambda: not state.connections and not state.tasks)
    lines = [json.loads(each) for each in live_server.log.getvalue().splitlines()]
    assert {each["event"] for each in lines} == {"request"}, lines


def test_an_address_has_two_requests_worked_on_at_once():
    """The others of the address wait, those of another do not, and too many are refused."""

    async def work(turns, client, log, go):
        async with turns.admit((client, 1)):
            log.append(client)
            await go.wait()

    async def main():
        turns, log, go = RequestScheduler(AddressLimit(5)), [], asyncio.Event()
        begin = asyncio.create_task
        first = [begin(work(turns, "203.0.113.1", log, go)) for _ in range(5)]
        second = [begin(work(turns, "203.0.113.2", log, go)) for _ in range(2)]
        local = [begin(work(turns, "127.0.0.1", log, go)) for _ in range(9)]
        await asyncio.sleep(0)
        assert (log.count("203.0.113.1"), log.count("203.0.113.2")) == (2, 2)
        assert log.count("127.0.0.1") == 9
        with pytest.raises(RequestRefused) as refused:
            await work(turns, "203.0.113.1", log, go)
        assert refused.value.status == 429
        go.set()
        await asyncio.gather(*first, *second, *local)
        assert log.count("203.0.113.1") == 5
        assert not turns._queues

    asyncio.run(main())


@pytest.fixture
def stress_server(tmp_path):
    """A server in a process of its own, behind what it takes for a proxy."""
    with StressServer(str(tmp_path / "boards.db"), tmp_path, proxies="127.0.0.1") as made:
        made.create_board(make_folder(), [])
        made.start()
        made.wait_until_ready()
        yield made


@contextlib.contextmanager
def hostile(stress_server, count, kind, path):
    """Press a server with so many connections from one address."""
    words = [sys.executable, HOSTILE_CLIENTS, stress_server.port, count, kind, "198.51.100.7", path]
    with subprocess.Popen(
        [*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"started\n"
        yield
        process.stdin.close()
        process.wait()


def seconds_of(stress_server, path):
    """Return how long somebody else waits for an answer, on a connection of its own."""
    begun = time.perf_counter()
    line = http.client.HTTPConnection("127.0.0.1", stress_server.port, timeout=60)
    with contextlib.closing(line):
        line.request("GET", path, headers={"X-Forwarded-For": "203.0.113.9"})
        reply = line.getresponse()
        assert reply.status == 200
        reply.read()
    return time.perf_counter() - begun


def test_a_hundred_hostile_connections_do_not_slow_others_down(stress_server):
    """The median of 50 answers is at most twice the one before; the best of eight tries counts.

    A busy machine makes single tries worse, and cannot make a slow server fast: without the limits
    it is fifty times the quiet one or more.
    """
    path = "/api/v1/boards/first/leaderboard"
    for _ in range(20):
        seconds_of(stress_server, path)
    for kind in ("deaf", "flood"):
        ratios = []
        while len(ratios) < 8 and min(ratios, default=9.0) > 2:
            quiet = statistics.median(seconds_of(stress_server, path) for _ in range(50))
            with hostile(stress_server, 100, kind, path):
                pressed = statistics.median(seconds_of(stress_server, path) for _ in range(50))
            ratios.append(pressed / quiet)
        assert min(ratios) <= 2, (kind, ratios)
