"""Connections on which nothing is said keep nobody out, and end."""

import contextlib
import socket

import pytest

import ladderboard as lb
from ladderboard.server._process._connections import GuardProtocol

BEGUN = b"POST /api/v1/guard/questions HTTP/1.1\r\nHost: x\r\nX: "
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n"


@pytest.fixture
def dial(served):
    """Open connections that end with the test."""
    address = served.listener.socket.getsockname()
    with contextlib.ExitStack() as lines:

        def connect(*said):
            line = lines.enter_context(socket.create_connection(address, timeout=20))
            for each in said:
                line.sendall(each)
            return line

        yield connect


def health(served):
    return HEALTH % served.url.removeprefix("http://").encode()


def ended(line):
    """Wait until the other side has ended a connection."""
    try:
        while line.recv(1000):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize("said", [[], [BEGUN], [b"\r\n"]], ids=["nothing", "half", "empty line"])
def test_a_header_that_never_comes_is_not_waited_for(served, dial, monkeypatch, said):
    monkeypatch.setattr(GuardProtocol, "header_seconds", 0.05)
    assert ended(dial(*said))
    monkeypatch.undo()  # or this machine, when it is busy, may be too slow itself
    assert served.call()[0] == 200


def test_nor_a_header_that_drips(served, dial, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "header_seconds", 0.2)
    line = dial(BEGUN)
    line.settimeout(0.02)
    with pytest.raises(ConnectionError):  # noqa: PT012 - whichever comes first
        for _ in range(1000):
            line.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                if not line.recv(1):
                    raise ConnectionError


@pytest.mark.parametrize("then", [b"", b"G"])
def test_a_connection_that_falls_silent_ends(served, dial, monkeypatch, then):
    if not then:
        monkeypatch.setattr(GuardProtocol, "idle_seconds", 0.3)
    line = dial(health(served))
    assert line.recv(1000).startswith(b"HTTP/1.1 200")
    if then:
        monkeypatch.setattr(GuardProtocol, "header_seconds", 0.3)
        line.sendall(then)
    assert ended(line)


def test_a_request_that_takes_for_ever_ends(served, dial, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "request_seconds", 0.05)
    host = served.url.removeprefix("http://").encode()
    head = b"POST /api/v1/guard/questions HTTP/1.1\r\nHost: %s\r\nContent-Length: 9\r\n\r\n"
    assert ended(dial(head % host))
    monkeypatch.undo()
    assert served.call("GET", "/api/v1/guard/meter")[2]["asked"] == 0


def test_whoever_was_silent_longest_makes_way(served, dial, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "max_connections", 5)
    first = dial()
    others = [dial(BEGUN) for _ in range(30)]
    assert served.call()[0] == 200
    assert ended(first)
    assert all(map(ended, others[:20]))
    assert len(served.server.server_state.connections) <= 5


def test_where_every_connection_is_busy_who_comes_is_turned_away(served, dial, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "max_connections", 3)
    host = served.url.removeprefix("http://").encode()
    head = b"POST /api/v1/guard/questions HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\n"
    head = head % host + b"Content-Length: 3\r\n\r\n"
    busy = [dial(head) for _ in range(3)]
    for line in busy:
        assert line.recv(100).startswith(b"HTTP/1.1 100")
    with lb.Holdout.connect(served.url) as remote, pytest.raises(lb.errors.GuardUnreachable):
        _ = remote.remaining
    for line in busy:
        line.sendall(b"abc")
        assert line.recv(100).startswith(b"HTTP/1.1 422")
    assert served.call()[0] == 200


def test_several_requests_on_one_connection(served, dial):
    line, got = dial(), b""
    for asked in (1, 1, 2):  # two at once
        line.sendall(asked * health(served))
        before = got.count(b'"ok"')
        while got.count(b'"ok"') < before + asked:
            part = line.recv(1000)
            assert part
            got += part
