"""What every request goes through: host names, methods, sizes, internal errors and the log."""

import asyncio
import http.client
import io
import itertools
import json
import socket
import threading
import time
from contextlib import suppress

import pytest

from ladderboard.errors import StorageFailed
from support.credentials import random_secret
from support.server.live_server import assert_problem, make_predictions


def test_health(live_server, monkeypatch):
    response = live_server.call("GET", "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})

    def fail():
        raise StorageFailed("The disk owner/secret is full.")

    monkeypatch.setattr(live_server.boards, "list", fail)
    response = live_server.call("GET", "/healthz")
    assert_problem(response, 503, "storage")
    assert "secret" not in response.text
    assert "The disk owner/secret is full." in live_server.log.getvalue()  # the operator must know
    assert response.headers["retry-after"]


def test_unknown_methods_paths_and_types_are_refused(live_server):
    response = live_server.call("DELETE", "/boards/first/submissions")
    assert_problem(response, 405, "method")
    assert response.headers["allow"] == "GET, HEAD, POST"
    assert_problem(live_server.call("GET", "/nothing"), 404, "not_found")
    assert_problem(live_server.call("GET", "/boards/nothing"), 404, "not_found")
    assert_problem(live_server.call("GET", "/boards/first/"), 404, "not_found")
    assert_problem(live_server.call("GET", "/boards/No_Board"), 422, "invalid")
    assert_problem(
        live_server.call("GET", "/boards", headers={"Accept": "text/html"}), 406, "not_acceptable"
    )
    for accept in ("application/json;q=0.5, text/html", "application/*", "text/html, */*;q=0.1"):
        assert live_server.call("GET", "/boards", headers={"Accept": accept}).status_code == 200
    refused = live_server.call("GET", "/boards", headers={"Accept": "application/json;q=0"})
    assert_problem(refused, 406, "not_acceptable")


def test_head_is_get_without_a_body(live_server):
    for path in ("/boards/first", "/healthz", "/openapi.json"):
        get, head = live_server.call("GET", path), live_server.call("HEAD", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == get.headers["content-length"]


def test_bodies_that_are_not_json_or_too_large_are_refused(live_server):
    path = "/boards/first/teams"
    response = live_server.call(
        "POST", path, content=b'{"name": "a"}', headers={"Content-Type": "text/plain"}
    )
    assert_problem(response, 415, "content_type")
    json_ = {"Content-Type": "application/json"}
    assert_problem(live_server.call("POST", path, content=b"{", headers=json_), 422, "invalid")
    assert_problem(
        live_server.call("POST", path, content=b'{"name": "\xff"}', headers=json_),
        400,
        "bad_request",
    )
    assert_problem(
        live_server.call("POST", path, content=b" " * 70_000, headers=json_), 413, "too_large"
    )
    assert_problem(live_server.call("POST", path), 422, "invalid")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "",
        "[::1]evil",
        "127.0.0.1:x",
        '127.0.0.1:"><x',
    ],
)
def test_an_unknown_host_is_refused(live_server, host):
    response = live_server.call("GET", "/boards", headers={"Host": host})
    assert response.status_code == 403
    assert response.json()["code"] == "wrong_host"


def test_configured_hosts_and_loopback_are_accepted(make_server):
    live_server = make_server(hosts=frozenset({"Boards.Example"}))
    for host in ("boards.example", "BOARDS.example:443", "localhost:1", "127.0.0.1", "[::1]:80"):
        assert live_server.call("GET", "/boards", headers={"Host": host}).status_code == 200


def test_an_internal_error_is_detailed_only_in_the_log(live_server, monkeypatch):
    token = live_server.join("Alpha")[1]

    def broken(self, *_):
        raise ZeroDivisionError("label 7 of row 3 is 0.4366")

    monkeypatch.setattr("ladderboard.board._submissions.SubmissionService.submit_all", broken)
    response = live_server.submit(token, make_predictions(1))
    body = assert_problem(response, 500, "broken")
    assert "label" not in response.text
    assert body["errors"] == []
    log = live_server.log.getvalue()
    line = next(json.loads(text) for text in log.splitlines() if '"error"' in text)
    assert line["error"] == "ZeroDivisionError"
    assert line["request"] == response.headers["x-request-id"]
    assert any(frame.startswith("server/_api/_submissions.py:") for frame in line["at"])
    assert "0.4366" not in log


@pytest.mark.parametrize("uncertain", [True, False])
def test_a_failing_database_gives_503(live_server, monkeypatch, uncertain):
    token = live_server.join("Alpha")[1]

    def broken(self, *_):
        raise StorageFailed("boards.db: disk I/O error", uncertain=uncertain)

    monkeypatch.setattr("ladderboard.board._submissions.SubmissionService.submit_all", broken)
    response = live_server.submit(token, make_predictions(1))
    body = assert_problem(response, 503, "storage")
    assert ("retry is safe" in body["detail"]) == uncertain
    assert "owner" not in response.text
    assert response.headers["retry-after"]
    monkeypatch.undo()
    assert live_server.submit(token, make_predictions(1)).status_code == 201


def test_metrics_have_their_own_token(make_server):
    token = random_secret()
    live_server = make_server(metrics_token=token)
    live_server.create_board()
    live_server.call("GET", "/boards/first")
    response = live_server.call("GET", "/metrics", token)
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    line = 'ladderboard_requests_total{method="GET",route="/api/v1/boards/{board}",status="200"} 1'
    assert line in response.text
    assert 'le="+Inf"} 1' in response.text
    assert "ladderboard_parsers_busy 0" in response.text
    assert_problem(live_server.call("GET", "/metrics"), 401, "no_token")
    assert_problem(live_server.call("GET", "/metrics", token[:-1]), 401, "no_token")
    assert_problem(live_server.call("GET", "/boards/first/teams", token), 401, "no_token")
    plain_text = live_server.call("GET", "/metrics", token, headers={"Accept": "text/plain"})
    assert plain_text.status_code == 200


def test_request_ids_are_not_sequential(live_server):
    """Neither half of an id counts or repeats. False alarms: below 1 in a million."""
    ids = [live_server.call("GET", "/healthz").headers["x-request-id"] for _ in range(20)]
    for half in (slice(8), slice(8, None)):
        numbers = sorted(int(id_[half], 16) for id_ in ids)
        gaps = [higher - lower for lower, higher in itertools.pairwise(numbers)]
        assert min(gaps) > 1


def test_the_log_has_client_addresses_if_configured(make_server):
    live_server = make_server(log_client=True)
    live_server.call("GET", "/healthz?token=lb_team_x")
    line = json.loads(live_server.log.getvalue().splitlines()[-1])
    assert line["client"] == "127.0.0.1"
    assert "lb_team_x" not in live_server.log.getvalue()


def test_requests_succeed_though_the_log_cannot_be_written(make_server):
    live_server = make_server()
    live_server.app.state.context.log._stream = closed = io.StringIO()
    closed.close()
    assert live_server.call("GET", "/healthz").status_code == 200


def test_a_submission_counts_though_the_client_disconnected(live_server, monkeypatch):
    token = live_server.join("Alpha")[1]
    body, parsers = make_predictions(30), live_server.app.state.context.parsers
    started, disconnected = threading.Event(), threading.Event()
    original_read = parsers.read

    async def slow(*args):
        started.set()
        await asyncio.to_thread(disconnected.wait, 30)
        return await original_read(*args)

    monkeypatch.setattr(parsers, "read", slow)
    connection = http.client.HTTPConnection("127.0.0.1", live_server.port)
    connection.request(
        "POST",
        f"/api/v1/boards/{live_server.slug}/submissions",
        body,
        {"Authorization": f"Bearer {token}", "Content-Type": "text/csv"},
    )
    assert started.wait(30)
    connection.close()
    disconnected.set()
    for _ in range(500):
        submissions = live_server.call("GET", "/boards/first/submissions", token).json()[
            "submissions"
        ]
        if submissions:
            break
        time.sleep(0.01)
    assert [submission["released"] for submission in submissions] == [0.1]
    monkeypatch.undo()
    assert live_server.submit(token, body).status_code == 200


def test_an_incomplete_body_is_not_a_submission(live_server):
    token = live_server.join("Alpha")[1]
    with socket.create_connection(("127.0.0.1", live_server.port)) as connection:
        head = f"POST /api/v1/boards/{live_server.slug}/submissions HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: Bearer {token}\r\nContent-Type: text/csv\r\n"
        connection.sendall(f"{head}Content-Length: 100000\r\n\r\nid,prediction\n".encode())
    assert live_server.submit(token, make_predictions(1)).json()["number"] == 1
    assert '"status": 500' not in live_server.log.getvalue()


def send_endless_header(connection):
    """Send header lines until the server closes the connection."""
    for _ in range(10_000):
        connection.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
        time.sleep(0.001)


def test_an_endless_header_is_cut_off(live_server):
    with socket.create_connection(("127.0.0.1", live_server.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with pytest.raises(OSError, match=r"reset|pipe"):
            send_endless_header(connection)
    assert live_server.call("GET", "/healthz").status_code == 200


def test_a_killed_parser_costs_the_team_nothing(make_server, kill_parsers):
    from ladderboard.server import ParserPool, Rate

    live_server = make_server(parsers=ParserPool(1), invalid=Rate(1, 1e6))
    live_server.create_board()
    token = live_server.join("Alpha")[1]
    kill_parsers(2)
    response = live_server.submit(token, make_predictions(30))
    assert_problem(response, 503, "unavailable")
    assert response.headers["retry-after"] == "5"
    lines = map(json.loads, live_server.log.getvalue().splitlines())
    (line,) = (entry for entry in lines if entry["event"] == "error")
    assert line["error"] == "WorkerError"
    assert "2 parsers were killed from outside (SIGKILL)" in line["said"]
    kill_parsers(1)
    assert (
        live_server.submit(token, make_predictions(30)).status_code == 201
    )  # on the second parser
    assert_problem(
        live_server.submit(token, b"nonsense"), 422, "invalid_predictions"
    )  # the only one allowed
    assert_problem(live_server.submit(token, make_predictions(20)), 429, "rate")


def test_a_body_that_arrives_too_slowly_times_out(live_server, monkeypatch):
    """Sending single bytes keeps a connection open no longer than a whole body may take."""
    monkeypatch.setattr("ladderboard.server._middleware._BODY_SECONDS", 0.5)
    host, port = live_server.url.removeprefix("http://").split(":")
    head = "POST /api/v1/boards/first/teams HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode())
        connection.settimeout(0.1)
        reply = b""
        for _ in range(100):  # ten seconds in all
            with suppress(TimeoutError):
                reply = connection.recv(100)
                break
            connection.sendall(b" ")
    assert reply.startswith(b"HTTP/1.1 408 ")
