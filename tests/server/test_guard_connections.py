"""Idle connections are closed and do not shut others out."""

import contextlib
import socket

import pytest

import ladderboard as lb
from ladderboard.server._process._listener import GuardProtocol

PARTIAL = b"POST /api/v1/guard/questions HTTP/1.1\r\nHost: x\r\nX: "
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n"


@pytest.fixture
def connect(guard_server):
    """Return a function that opens a connection, closed after the test."""
    address = guard_server.listener.socket.getsockname()
    with contextlib.ExitStack() as exit_stack:

        def open_connection(*chunks):
            connection = exit_stack.enter_context(socket.create_connection(address, timeout=20))
            for chunk in chunks:
                connection.sendall(chunk)
            return connection

        yield open_connection


def health_request(guard_server):
    return HEALTH % guard_server.url.removeprefix("http://").encode()


def wait_until_closed(connection):
    """Wait until the server has closed the connection."""
    try:
        while connection.recv(1000):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize(
    "chunks", [[], [PARTIAL], [b"\r\n"]], ids=["nothing", "half", "empty line"]
)
def test_a_header_that_never_arrives_times_out(guard_server, connect, monkeypatch, chunks):
    monkeypatch.setattr(GuardProtocol, "header_seconds", 0.05)
    assert wait_until_closed(connect(*chunks))
    monkeypatch.undo()  # a busy machine may be too slow otherwise
    assert guard_server.call()[0] == 200


def test_a_header_sent_byte_by_byte_times_out(guard_server, connect, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "header_seconds", 0.2)
    connection = connect(PARTIAL)
    connection.settimeout(0.02)
    with pytest.raises(ConnectionError):  # noqa: PT012 - whichever comes first
        for _ in range(1000):
            connection.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1):
                    raise ConnectionError


@pytest.mark.parametrize("next_bytes", [b"", b"G"])
def test_an_idle_connection_is_closed(guard_server, connect, monkeypatch, next_bytes):
    if not next_bytes:
        monkeypatch.setattr(GuardProtocol, "idle_seconds", 0.3)
    connection = connect(health_request(guard_server))
    assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    if next_bytes:
        monkeypatch.setattr(GuardProtocol, "header_seconds", 0.3)
        connection.sendall(next_bytes)
    assert wait_until_closed(connection)


def test_a_request_that_takes_too_long_is_closed(guard_server, connect, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "request_seconds", 0.05)
    host = guard_server.url.removeprefix("http://").encode()
    head = b"POST /api/v1/guard/questions HTTP/1.1\r\nHost: %s\r\nContent-Length: 9\r\n\r\n"
    assert wait_until_closed(connect(head % host))
    monkeypatch.undo()
    assert guard_server.call("GET", "/api/v1/guard/meter")[2]["asked"] == 0


def test_the_longest_idle_connection_is_closed_for_a_new_one(guard_server, connect, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "max_connections", 5)
    oldest = connect()
    connections = [connect(PARTIAL) for _ in range(30)]
    assert guard_server.call()[0] == 200
    assert wait_until_closed(oldest)
    assert all(map(wait_until_closed, connections[:20]))
    assert len(guard_server.server.server_state.connections) <= 5


def test_a_new_connection_is_refused_while_all_are_busy(guard_server, connect, monkeypatch):
    monkeypatch.setattr(GuardProtocol, "max_connections", 3)
    host = guard_server.url.removeprefix("http://").encode()
    head = b"POST /api/v1/guard/questions HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\n"
    head = head % host + b"Content-Length: 3\r\n\r\n"
    busy = [connect(head) for _ in range(3)]
    for connection in busy:
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
    with lb.Holdout.connect(guard_server.url) as remote, pytest.raises(lb.errors.GuardUnreachable):
        _ = remote.remaining
    for connection in busy:
        connection.sendall(b"abc")
        assert connection.recv(100).startswith(b"HTTP/1.1 422")
    assert guard_server.call()[0] == 200


def test_several_requests_on_one_connection(guard_server, connect):
    connection, received = connect(), b""
    for requests in (1, 1, 2):  # two at once
        connection.sendall(requests * health_request(guard_server))
        responses_before = received.count(b'"ok"')
        while received.count(b'"ok"') < responses_before + requests:
            part = connection.recv(1000)
            assert part
            received += part
