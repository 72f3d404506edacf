"""Limits come before the body: a refused submission is neither read nor parsed."""

import contextlib
import gzip
import socket
import threading
import time

import pytest

from support.server.live_server import make_predictions


@pytest.fixture
def upload(empty_server):
    """Return a function that sends the header of a large submission and part of its body."""
    with contextlib.ExitStack() as stack:

        def start_upload(token, body=b"", *, length=10_000_000, **headers):
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", empty_server.port), timeout=10)
            )
            fields = {
                "Host": "127.0.0.1",
                "Authorization": f"Bearer {token}",
                "Content-Type": "text/csv",
                "Content-Length": str(length),
                **{name.replace("_", "-"): value for name, value in headers.items()},
            }
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            path = f"/api/v1/boards/{empty_server.slug}/submissions"
            connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            return connection

        yield start_upload


def status_of(connection):
    """Wait for the response and return its status."""
    return int(connection.recv(2000).split()[1])


def wait_for_uploads(live_server, count):
    """Wait until the server has this many uploads in progress."""
    uploads = live_server.app.state.context.uploads
    for _ in range(2000):
        if sum(team.count for team in tuple(uploads._teams.values())) == count:
            return
        time.sleep(0.005)
    raise AssertionError


LIMITS = {
    "paused": ({}, 409),
    "spent": ({"per_team": 1}, 409),
    "window": ({"window": "{questions: 1, hours: 1}"}, 429),
    "quota": ({"files": "{team_quota: 600}"}, 507),
    "quota of the board": ({"files": "{quota: 600, team_quota: 1 MB}"}, 507),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_submission_past_a_limit_is_refused_before_its_body_is_read(empty_server, upload, limit):
    live_server, (rules, status) = empty_server, LIMITS[limit]
    live_server.create_board(**rules)
    token = live_server.join("Alpha")[1]
    response = live_server.submit(token, make_predictions(30), Idempotency_Key="known")
    assert response.status_code == 201
    if limit == "paused":
        live_server.boards.open(live_server.slug).amendments.pause(
            live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
        )
    if limit.startswith("quota"):  # 544 bytes are stored; a second submission is too many
        assert live_server.submit(token, make_predictions(29)).status_code == status
        live_server.amend(files={"quota" if "board" in limit else "team_quota": 544})
    assert status_of(upload(token)) == status  # no byte of the body was sent
    assert status_of(upload(token, Idempotency_Key="new")) == status
    duplicate = live_server.submit(
        token, make_predictions(30), Idempotency_Key="known"
    )  # costs nothing
    assert (duplicate.status_code, duplicate.json()["again"]) == (200, True)
    assert live_server.boards.open(live_server.slug).book.chain_state().asked == 1


def test_each_team_sends_one_body_at_a_time(empty_server, upload):
    live_server = empty_server
    live_server.create_board()
    alpha, beta = live_server.join("Alpha")[1], live_server.join("Beta")[1]
    body = make_predictions(30)
    slow = upload(alpha, body[:100], length=len(body))
    wait_for_uploads(live_server, 1)
    waiting = [upload(alpha, length=len(body)) for _ in range(16)]
    wait_for_uploads(live_server, 17)
    assert status_of(upload(alpha)) == 429  # 16 may wait, no more
    assert (
        live_server.submit(beta, make_predictions(20)).status_code == 201
    )  # another team does not wait
    for connection in waiting:
        connection.settimeout(0.01)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(10)
    slow.sendall(body[100:])
    assert status_of(slow) == 201
    for index, connection in enumerate(waiting):  # their order is up to the network
        connection.sendall(make_predictions(index))
    assert {status_of(connection) for connection in waiting} == {201}
    wait_for_uploads(live_server, 0)


def test_a_waiting_upload_is_refused_when_the_limit_is_reached_meanwhile(empty_server, upload):
    live_server = empty_server
    live_server.create_board(per_team=1)
    token = live_server.join("Alpha")[1]
    body = make_predictions(30)
    first = upload(token, body[:100], length=len(body))
    wait_for_uploads(live_server, 1)
    second = upload(token)
    wait_for_uploads(live_server, 2)
    first.sendall(body[100:])
    assert (status_of(first), status_of(second)) == (201, 409)


def test_a_gzip_stream_that_unpacks_to_hundreds_of_times_its_size_is_refused(empty_server):
    live_server = empty_server
    live_server.create_board()
    token = live_server.join("Alpha")[1]
    bomb = gzip.compress(b"id,prediction\n" + b"0" * 20_000_000)
    assert len(bomb) < 20_000 + 1000
    response = live_server.submit(token, bomb, Content_Encoding="gzip")
    assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "packed")
    assert "more than 200 times as large" in response.json()["detail"]


def test_the_same_predictions_at_once_are_scored_once(empty_server, monkeypatch):
    live_server = empty_server
    board = live_server.create_board()
    caller = live_server.boards.caller_by_token(live_server.join("Alpha")[1], live_server.slug)
    scorer, scored, results = board.scorer(), [], []
    real = type(scorer).score

    def score(self, submission):
        scored.append(1)
        time.sleep(0.1)  # as long as a large holdout takes
        return real(self, submission)

    monkeypatch.setattr(type(scorer), "score", score)
    from ladderboard.board import IncomingSubmission

    def submit():
        submission = IncomingSubmission(scorer.read(make_predictions(30)), live_server.clock.now)
        results.append(board.submit(caller, submission))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(scored) == 1
    assert sorted(result.again for result in results) == [False, *[True] * 7]
    assert len({result.id for result in results}) == 1
    assert board.book.chain_state().asked == 1
