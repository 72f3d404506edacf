"""Who may come in. Each of these fails if its defence is taken away."""

import contextlib
import http.client
import socket

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting, NotAllowed
from ladderboard.server import listen_on_loopback, listen_on_unix_socket
from support.credentials import ALL_INTERFACES, random_secret

TOKEN = random_secret()


def test_web_pages_are_refused(served):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ):
        for path in ("/api/v1/guard", "/api/v1/guard/questions", "/healthz"):
            status, _, said = served.call("POST", path, b"", headers)
            assert (status, said["code"]) == (403, "browser"), headers


def test_even_a_page_from_the_guards_own_address_is_refused(served):
    assert served.call(headers={"Origin": served.url})[0] == 403


def test_somebody_who_typed_the_address_is_let_in(served):
    assert served.call(headers={"Sec-Fetch-Site": "none"})[0] == 200


def test_other_names_than_the_bound_one_are_refused(served):
    port = served.url.rpartition(":")[2]
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "",
        f"0:{port}",
    ):
        status, _, said = served.call(headers={"Host": host})
        assert (status, said["code"]) == (403, "wrong_host"), host


def test_the_bound_name_is_let_in(served):
    port = served.url.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "LocalHost"):
        assert served.call(headers={"Host": f"{host}:{port}"})[0] == 200


def test_without_a_host_nobody_is_let_in(served):
    with socket.create_connection(served.listener.socket.getsockname()) as line:
        line.sendall(b"GET /api/v1/guard HTTP/1.0\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 403")


def test_a_wrong_token_is_refused(serve, guard):
    served = serve(guard, token=TOKEN)
    near = [f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN]
    for given in (None, "", "Bearer", "Bearer wrong", "Bearer \xe9", *near):
        headers = {} if given is None else {"Authorization": given}
        for method, path in (("GET", "/api/v1/guard"), ("POST", "/api/v1/guard/questions")):
            status, answered, said = served.call(method, path, None, headers)
            assert (status, said["code"]) == (401, "no_token"), given
            assert answered["www-authenticate"] == "Bearer"
            assert TOKEN not in said["detail"]
    assert served.call(path="/healthz")[0] == 200  # says nothing but that it lives


def test_two_tokens_are_none(serve, guard):
    served = serve(guard, token=TOKEN)
    with socket.create_connection(served.listener.socket.getsockname()) as line:
        host = served.url.removeprefix("http://")
        once = f"Authorization: Bearer {TOKEN}\r\n"
        line.sendall(f"GET /api/v1/guard HTTP/1.1\r\nHost: {host}\r\n{once}{once}\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 401")


def test_the_right_token_is_let_in(serve, guard, labels, monkeypatch):
    served = serve(guard, token=TOKEN)
    assert served.call(headers={"Authorization": f"bearer {TOKEN}"})[0] == 200
    with lb.Holdout.connect(served.url, token=TOKEN) as remote:
        assert remote.ask(labels).released == 0
        assert TOKEN not in repr(remote)
    with (
        lb.Holdout.connect(served.url) as remote,
        pytest.raises(NotAllowed, match="LADDERBOARD_TOKEN"),
    ):
        remote.ask(labels)
    monkeypatch.setenv("LADDERBOARD_TOKEN", TOKEN)
    with lb.Holdout.connect(served.url) as remote:
        assert remote.remaining == 9


def test_a_unix_socket_takes_any_host_but_no_page(serve, guard, labels, tmp_path):
    served = serve(guard, listen_on_unix_socket(tmp_path / "s"))
    with lb.Holdout.connect(served.url) as remote:
        assert remote.ask(labels ^ (np.arange(200) < 20)).released == 0.1
    for header, status in (("Origin: http://evil.example", 403), ("X: y", 200)):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as line:
            line.connect(str(tmp_path / "s"))
            line.sendall(f"GET /healthz HTTP/1.1\r\nHost: whatever\r\n{header}\r\n\r\n".encode())
            answer = http.client.HTTPResponse(line)
            answer.begin()
            assert answer.status == status


@pytest.mark.parametrize(
    "host", [ALL_INTERFACES, "::", "192.168.0.1", "example.org", "", "127.1", "8"]
)
def test_only_loopback_is_bound(host):
    with pytest.raises(InvalidSetting, match=r"loopback.*real server"):
        listen_on_loopback(host, 0)


def test_ipv6_has_its_brackets(serve, guard):
    try:
        listener = listen_on_loopback("::1", 0)
    except lb.LadderboardError:
        pytest.skip("there is no IPv6 here")
    served = serve(guard, listener)
    assert served.url.startswith("http://[::1]:")
    with lb.Holdout.connect(served.url) as remote:
        assert remote.remaining == 10


def test_answers_do_not_wait_for_one_another(served):
    # asyncio turns Nagle's algorithm off only where a socket says that it speaks TCP.
    assert served.listener.socket.proto == socket.IPPROTO_TCP


def test_a_port_in_use_is_said_so(served):
    port = served.listener.socket.getsockname()[1]
    with pytest.raises(lb.LadderboardError, match=rf"^Port {port} is taken\..*--port {port + 1}, "):
        listen_on_loopback(port=port)
