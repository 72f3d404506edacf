"""Which requests a guard accepts. Each test fails if its defence is removed."""

import contextlib
import http.client
import re
import socket

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting, NotAllowed
from ladderboard.server import listen_on_loopback, listen_on_unix_socket
from support.credentials import ALL_INTERFACES, random_secret

TOKEN = random_secret()


def test_web_pages_are_refused(guard_server):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ):
        for path in ("/api/v1/guard", "/api/v1/guard/questions", "/healthz"):
            status, _, body = guard_server.call("POST", path, b"", headers)
            assert (status, body["code"]) == (403, "browser"), headers


def test_a_page_from_the_guards_own_origin_is_refused(guard_server):
    assert guard_server.call(headers={"Origin": guard_server.url})[0] == 403


def test_a_typed_address_is_accepted(guard_server):
    assert guard_server.call(headers={"Sec-Fetch-Site": "none"})[0] == 200


def test_other_hosts_than_the_bound_one_are_refused(guard_server):
    port = guard_server.url.rpartition(":")[2]
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "",
        f"0:{port}",
    ):
        status, _, body = guard_server.call(headers={"Host": host})
        assert (status, body["code"]) == (403, "wrong_host"), host


def test_the_bound_host_is_accepted(guard_server):
    port = guard_server.url.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "LocalHost"):
        assert guard_server.call(headers={"Host": f"{host}:{port}"})[0] == 200


def test_a_request_without_host_is_refused(guard_server):
    with socket.create_connection(guard_server.listener.socket.getsockname()) as connection:
        connection.sendall(b"GET /api/v1/guard HTTP/1.0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 403")


def test_a_wrong_token_is_refused(serve_guard, guard):
    guard_server = serve_guard(guard, token=TOKEN)
    near = [f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN]
    for authorization in (None, "", "Bearer", "Bearer wrong", "Bearer \xe9", *near):
        headers = {} if authorization is None else {"Authorization": authorization}
        for method, path in (("GET", "/api/v1/guard"), ("POST", "/api/v1/guard/questions")):
            status, response_headers, body = guard_server.call(method, path, None, headers)
            assert (status, body["code"]) == (401, "no_token"), authorization
            assert response_headers["www-authenticate"] == "Bearer"
            assert TOKEN not in body["detail"]
    assert guard_server.call(path="/healthz")[0] == 200  # reveals only that the guard runs


def test_two_tokens_are_refused(serve_guard, guard):
    guard_server = serve_guard(guard, token=TOKEN)
    with socket.create_connection(guard_server.listener.socket.getsockname()) as connection:
        host = guard_server.url.removeprefix("http://")
        header = f"Authorization: Bearer {TOKEN}\r\n"
        connection.sendall(
            f"GET /api/v1/guard HTTP/1.1\r\nHost: {host}\r\n{header}{header}\r\n".encode()
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 401")


def test_the_right_token_is_accepted(serve_guard, guard, labels, monkeypatch):
    guard_server = serve_guard(guard, token=TOKEN)
    assert guard_server.call(headers={"Authorization": f"bearer {TOKEN}"})[0] == 200
    with lb.Holdout.connect(guard_server.url, token=TOKEN) as remote:
        assert remote.ask(labels).released == 0
        assert TOKEN not in repr(remote)
    with (
        lb.Holdout.connect(guard_server.url) as remote,
        pytest.raises(NotAllowed, match="LADDERBOARD_TOKEN"),
    ):
        remote.ask(labels)
    monkeypatch.setenv("LADDERBOARD_TOKEN", TOKEN)
    with lb.Holdout.connect(guard_server.url) as remote:
        assert remote.remaining == 9


def test_a_unix_socket_accepts_any_host_but_no_web_page(serve_guard, guard, labels, tmp_path):
    guard_server = serve_guard(guard, listen_on_unix_socket(tmp_path / "s"))
    with lb.Holdout.connect(guard_server.url) as remote:
        assert remote.ask(labels ^ (np.arange(200) < 20)).released == 0.1
    for header, status in (("Origin: http://evil.example", 403), ("X: y", 200)):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.connect(str(tmp_path / "s"))
            connection.sendall(
                f"GET /healthz HTTP/1.1\r\nHost: whatever\r\n{header}\r\n\r\n".encode()
            )
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.status == status


@pytest.mark.parametrize(
    "host", [ALL_INTERFACES, "::", "192.168.0.1", "example.org", "", "127.1", "8"]
)
def test_only_loopback_addresses_are_bound(host):
    with pytest.raises(InvalidSetting, match=r"loopback.*reverse proxy"):
        listen_on_loopback(host, 0)


def test_an_ipv6_url_has_brackets(serve_guard, guard):
    try:
        listener = listen_on_loopback("::1", 0)
    except lb.LadderboardError:
        pytest.skip("this machine has no IPv6")
    guard_server = serve_guard(guard, listener)
    assert guard_server.url.startswith("http://[::1]:")
    with lb.Holdout.connect(guard_server.url) as remote:
        assert remote.remaining == 10


def test_small_responses_are_not_delayed(guard_server):
    # asyncio turns Nagle's algorithm off only for sockets whose protocol is TCP.
    assert guard_server.listener.socket.proto == socket.IPPROTO_TCP


def test_a_port_in_use_is_reported(guard_server):
    port = guard_server.listener.socket.getsockname()[1]
    with socket.socket() as neighbour:
        with contextlib.suppress(OSError):  # unless it is taken already
            neighbour.bind(("127.0.0.1", port + 1))
            neighbour.listen()
        with pytest.raises(lb.LadderboardError, match=rf"^Port {port} is taken\. ") as refused:
            listen_on_loopback(port=port)
        suggested = int(re.search(r"--port (\d+), or --port 0 ", str(refused.value))[1])
        assert port + 1 < suggested <= port + 50
        listen_on_loopback(port=suggested).close()
