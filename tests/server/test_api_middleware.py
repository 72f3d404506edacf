"""What every request goes through: names, methods, sizes, mistakes of our own, and the log."""

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
from support.server.live_server import make_predictions


def problem(said, status, code):
    told = said.json()
    assert (said.status_code, told["code"]) == (status, code), said.text
    assert said.headers["content-type"] == "application/problem+json"
    return told


def test_health(live_server, monkeypatch):
    said = live_server.call("GET", "/healthz")
    assert (said.status_code, said.json()) == (200, {"status": "ok"})

    def fail():
        raise StorageFailed("The disk owner/secret is full.")

    monkeypatch.setattr(live_server.boards, "list", fail)
    said = live_server.call("GET", "/healthz")
    problem(said, 503, "storage")
    assert "secret" not in said.text
    assert "The disk owner/secret is full." in live_server.log.getvalue()  # its keeper must know
    assert said.headers["retry-after"]


def test_methods_and_places_that_there_are_not(live_server):
    said = live_server.call("DELETE", "/boards/first/submissions")
    problem(said, 405, "method")
    assert said.headers["allow"] == "GET, HEAD, POST"
    problem(live_server.call("GET", "/nothing"), 404, "not_found")
    problem(live_server.call("GET", "/boards/nothing"), 404, "not_found")
    problem(live_server.call("GET", "/boards/first/"), 404, "not_found")
    problem(live_server.call("GET", "/boards/No_Board"), 422, "invalid")
    problem(
        live_server.call("GET", "/boards", headers={"Accept": "text/html"}), 406, "not_acceptable"
    )
    for accept in ("application/json;q=0.5, text/html", "application/*", "text/html, */*;q=0.1"):
        assert live_server.call("GET", "/boards", headers={"Accept": accept}).status_code == 200
    refused = live_server.call("GET", "/boards", headers={"Accept": "application/json;q=0"})
    problem(refused, 406, "not_acceptable")


def test_head_is_get_without_a_body(live_server):
    for path in ("/boards/first", "/healthz", "/openapi.json"):
        whole, head = live_server.call("GET", path), live_server.call("HEAD", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]


def test_bodies_that_are_no_json_or_too_much_of_it(live_server):
    path = "/boards/first/teams"
    said = live_server.call(
        "POST", path, content=b'{"name": "a"}', headers={"Content-Type": "text/plain"}
    )
    problem(said, 415, "content_type")
    json_ = {"Content-Type": "application/json"}
    problem(live_server.call("POST", path, content=b"{", headers=json_), 422, "invalid")
    problem(
        live_server.call("POST", path, content=b'{"name": "\xff"}', headers=json_),
        400,
        "bad_request",
    )
    problem(live_server.call("POST", path, content=b" " * 70_000, headers=json_), 413, "too_large")
    problem(live_server.call("POST", path), 422, "invalid")


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
def test_a_name_that_is_not_ours_is_refused(live_server, host):
    said = live_server.call("GET", "/boards", headers={"Host": host})
    assert said.status_code == 403
    assert said.json()["code"] == "wrong_host"


def test_names_that_are_ours(make_server):
    live_server = make_server(hosts=frozenset({"Boards.Example"}))
    for host in ("boards.example", "BOARDS.example:443", "localhost:1", "127.0.0.1", "[::1]:80"):
        assert live_server.call("GET", "/boards", headers={"Host": host}).status_code == 200


def test_a_mistake_of_ours_is_told_to_the_log_alone(live_server, monkeypatch):
    token = live_server.join("Alpha")[1]

    def broken(self, *_):
        raise ZeroDivisionError("label 7 of row 3 is 0.4366")

    monkeypatch.setattr("ladderboard.board._submissions.SubmissionService.submit", broken)
    said = live_server.submit(token, make_predictions(1))
    told = problem(said, 500, "broken")
    assert "label" not in said.text
    assert told["errors"] == []
    log = live_server.log.getvalue()
    line = next(json.loads(each) for each in log.splitlines() if '"error"' in each)
    assert line["error"] == "ZeroDivisionError"
    assert line["request"] == said.headers["x-request-id"]
    assert any(each.startswith("server/_api/_submissions.py:") for each in line["at"])
    assert "0.4366" not in log


@pytest.mark.parametrize("uncertain", [True, False])
def test_a_database_that_fails(live_server, monkeypatch, uncertain):
    token = live_server.join("Alpha")[1]

    def broken(self, *_):
        raise StorageFailed("boards.db: disk I/O error", uncertain=uncertain)

    monkeypatch.setattr("ladderboard.board._submissions.SubmissionService.submit", broken)
    said = live_server.submit(token, make_predictions(1))
    told = problem(said, 503, "storage")
    assert ("again is safe" in told["detail"]) == uncertain
    assert "owner" not in said.text
    assert said.headers["retry-after"]
    monkeypatch.undo()
    assert live_server.submit(token, make_predictions(1)).status_code == 201


def test_metrics_have_a_token_of_their_own(make_server):
    token = random_secret()
    live_server = make_server(metrics_token=token)
    live_server.create_board()
    live_server.call("GET", "/boards/first")
    said = live_server.call("GET", "/metrics", token)
    assert said.headers["content-type"].startswith("text/plain; version=0.0.4")
    line = 'ladderboard_requests_total{method="GET",route="/api/v1/boards/{board}",status="200"} 1'
    assert line in said.text
    assert 'le="+Inf"} 1' in said.text
    assert "ladderboard_parsers_busy 0" in said.text
    problem(live_server.call("GET", "/metrics"), 401, "no_token")
    problem(live_server.call("GET", "/metrics", token[:-1]), 401, "no_token")
    problem(live_server.call("GET", "/boards/first/teams", token), 401, "no_token")
    other = live_server.call("GET", "/metrics", token, headers={"Accept": "text/plain"})
    assert other.status_code == 200


def test_request_ids_tell_nothing_about_other_requests(live_server):
    """Neither half of an id counts or repeats. False alarms: below 1 in a million."""
    ids = [live_server.call("GET", "/healthz").headers["x-request-id"] for _ in range(20)]
    for half in (slice(8), slice(8, None)):
        numbers = sorted(int(each[half], 16) for each in ids)
        gaps = [after - before for before, after in itertools.pairwise(numbers)]
        assert min(gaps) > 1


def test_the_log_names_addresses_if_it_shall(make_server):
    live_server = make_server(log_client=True)
    live_server.call("GET", "/healthz?token=lb_team_x")
    line = json.loads(live_server.log.getvalue().splitlines()[-1])
    assert line["client"] == "127.0.0.1"
    assert "lb_team_x" not in live_server.log.getvalue()


def test_a_log_that_cannot_be_written_stops_nobody(make_server):
    live_server = make_server()
    live_server.app.state.context.log._to = closed = io.StringIO()
    closed.close()
    assert live_server.call("GET", "/healthz").status_code == 200


def test_whoever_goes_away_is_answered_all_the_same(live_server, monkeypatch):
    token = live_server.join("Alpha")[1]
    body, parsers = make_predictions(30), live_server.app.state.context.parsers
    came, gone = threading.Event(), threading.Event()
    read = parsers.read

    async def slow(*what):
        came.set()
        await asyncio.to_thread(gone.wait, 30)
        return await read(*what)

    monkeypatch.setattr(parsers, "read", slow)
    line = http.client.HTTPConnection("127.0.0.1", live_server.port)
    line.request(
        "POST",
        f"/api/v1/boards/{live_server.slug}/submissions",
        body,
        {"Authorization": f"Bearer {token}", "Content-Type": "text/csv"},
    )
    assert came.wait(30)
    line.close()
    gone.set()
    for _ in range(500):
        found = live_server.call("GET", "/boards/first/submissions", token).json()["submissions"]
        if found:
            break
        time.sleep(0.01)
    assert [each["released"] for each in found] == [0.1]
    monkeypatch.undo()
    assert live_server.submit(token, body).status_code == 200


def test_half_a_body_leaves_nothing(live_server):
    token = live_server.join("Alpha")[1]
    with socket.create_connection(("127.0.0.1", live_server.port)) as line:
        head = f"POST /api/v1/boards/{live_server.slug}/submissions HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: Bearer {token}\r\nContent-Type: text/csv\r\n"
        line.sendall(f"{head}Content-Length: 100000\r\n\r\nid,prediction\n".encode())
    assert live_server.submit(token, make_predictions(1)).json()["number"] == 1
    assert '"status": 500' not in live_server.log.getvalue()


def pour(line):
    """Send a header without end."""
    for _ in range(10_000):
        line.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
        time.sleep(0.001)


def test_a_header_without_end_is_cut_off(live_server):
    with socket.create_connection(("127.0.0.1", live_server.port)) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with pytest.raises(OSError, match=r"reset|pipe"):
            pour(line)
    assert live_server.call("GET", "/healthz").status_code == 200


def test_real_parsers(make_server):
    from ladderboard.server import ParserPool

    live_server = make_server(parsers=ParserPool(1))
    live_server.create_board()
    token = live_server.join("Alpha")[1]
    assert live_server.submit(token, make_predictions(30)).json()["released"] == 0.1
    problem(live_server.submit(token, b"PAR1 nonsense PAR1"), 422, "invalid_predictions")
    assert live_server.submit(token, make_predictions(20)).status_code == 201


def test_a_killed_parser_costs_the_team_nothing(make_server, kill_parsers):
    from ladderboard.server import ParserPool, Rate

    live_server = make_server(parsers=ParserPool(1), invalid=Rate(1, 1e6))
    live_server.create_board()
    token = live_server.join("Alpha")[1]
    kill_parsers(2)
    said = live_server.submit(token, make_predictions(30))
    problem(said, 503, "unavailable")
    assert said.headers["retry-after"] == "5"
    lines = map(json.loads, live_server.log.getvalue().splitlines())
    (line,) = (each for each in lines if each["event"] == "error")
    assert line["error"] == "WorkerError"
    assert "2 parsers were killed from outside (SIGKILL)" in line["said"]
    kill_parsers(1)
    assert (
        live_server.submit(token, make_predictions(30)).status_code == 201
    )  # on the second parser
    problem(
        live_server.submit(token, b"nonsense"), 422, "invalid_predictions"
    )  # the only one allowed
    problem(live_server.submit(token, make_predictions(20)), 429, "rate")


def test_who_sends_a_small_body_for_ever_is_given_up(live_server, monkeypatch):
    """A byte now and then holds a connection no longer than the whole body may take."""
    monkeypatch.setattr("ladderboard.server._middleware._PATIENCE", 0.5)
    host, port = live_server.url.removeprefix("http://").split(":")
    head = "POST /api/v1/boards/first/teams HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
    with socket.create_connection((host, int(port)), timeout=20) as line:
        line.sendall(head.encode())
        line.settimeout(0.1)
        said = b""
        for _ in range(100):  # ten seconds in all
            with suppress(TimeoutError):
                said = line.recv(100)
                break
            line.sendall(b" ")
    assert said.startswith(b"HTTP/1.1 408 ")
