"""Webhooks against a real receiver: signatures, retries, hangs, restarts, several processes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from functools import partial
from itertools import pairwise

import pytest

from ladderboard.board import Boards, Caller, DatabaseStore, Role, claim_and_sign_deliveries
from ladderboard.board import _webhooks as _queue
from ladderboard.board._webhooks import queue_event
from ladderboard.server import BoardProtocol, Settings, _webhook_sender, make_app
from support.server.cli_server import wait_until
from support.server.live_server import InlineParsers, assert_problem, make_predictions
from support.server.threaded_server import ThreadedServer
from support.server.webhooks import add, due, listed, pause, resume, wait_for_result

ORGANISER = Caller(Role.ORGANISER)


@pytest.fixture
def server(webhook_server):
    return webhook_server


def verify(secret, headers, body):
    """Check a signature as docs/how-to/webhooks.md shows it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(headers["webhook-signature"], f"v1,{expected}")


def test_a_delivery_is_signed_and_says_what_happened(server, receiver):
    _, secret = add(server, receiver.url)
    pause(server)
    ((path, headers, body),) = receiver.wait_for(1)
    assert (path, headers["Content-Type"]) == ("/hook", "application/json")
    assert verify(secret, headers, body)
    assert not verify(secret, headers, body + b" ")
    assert not verify(secret, {**headers, "webhook-timestamp": "1"}, body)
    content = json.loads(body)
    assert content == {
        "id": headers["webhook-id"],
        "webhook": 1,
        "event": "paused",
        "time": "2027-01-15T08:00:00Z",
        "board": {
            "slug": "first",
            "title": "First",
            "url": "https://boards.example.org/boards/first",
        },
        "text": "First: The board is paused.\nhttps://boards.example.org/boards/first",
    }
    webhook = wait_for_result(server, delivered=True)
    assert (webhook["result"], webhook["waiting"]) == ("answered 204", 0)
    assert secret not in json.dumps(listed(server))


def test_a_failed_delivery_is_sent_again_later_and_less_and_less_often(server, receiver):
    _, secret = add(server, receiver.url)
    receiver.statuses = [500, 302, 404]
    pause(server)
    waits = [10, 60, 300]
    results = ["answered 500", "answered 302; redirects are not followed", "answered 404"]
    for wait, result in zip(waits, results, strict=True):
        wait_for_result(server, result=result, delivered=False, waiting=1)
        due_at = [bool(due(server, after)) for after in (wait - 1, wait)]
        assert due_at == [False, True]
        server.clock.now += wait
    receiver.wait_for(4)
    wait_for_result(server, delivered=True, waiting=0)
    assert {path for path, _, _ in receiver.requests} == {"/hook"}  # the redirect was not followed
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 1
    assert all(verify(secret, headers, body) for _, headers, body in receiver.requests)
    times = [int(headers["webhook-timestamp"]) for _, headers, _ in receiver.requests]
    assert [after - before for before, after in pairwise(times)] == waits


def test_a_delivery_fails_for_good_after_eight_attempts(server, receiver):
    add(server, receiver.url)
    receiver.statuses = [500 + attempt for attempt in range(1, 21)]
    pause(server)
    for attempt in range(1, 9):
        result = f"answered {500 + attempt}"
        wait_for_result(server, result=result, delivered=False, waiting=int(attempt < 8))
        server.clock.now += 86_400
    assert due(server, 10**9) == []
    assert len(receiver.requests) == 8


def test_a_receiver_that_hangs_delays_nothing(server, start_receiver, monkeypatch):
    monkeypatch.setattr(_webhook_sender, "TIMEOUT_SECONDS", 3.0)
    hanging, quick = start_receiver(), start_receiver()
    hanging.statuses = ["hang"] * 100
    for path in range(40):  # more than may be under way at one host
        add(server, f"{hanging.url}/{path}", events=["paused"])
    add(server, quick.url)
    token = server.join("Ada")[1]
    start = time.monotonic()
    pause(server)
    quick.wait_for(1)
    resume(server)
    assert server.submit(token, make_predictions(30)).status_code == 201
    assert time.monotonic() - start < 3.0
    wait_for_result(server, 1, delivered=False, result="no answer within 3 seconds")
    hanging.wait_for(17)


def test_deliveries_survive_a_restart(make_server, receiver, tmp_path):
    """A server that stops leaves what waits to the next one on the same database."""
    server = make_server(webhook_private=True)
    server.create_board()
    add(server, receiver.url)
    receiver.statuses = [503]
    pause(server)
    wait_for_result(server, result="answered 503")
    ThreadedServer.stop(server)
    server.clock.now += 10
    app = make_app(server.boards, InlineParsers(), settings=Settings(webhook_private=True))
    with ThreadedServer(app, http=BoardProtocol, lifespan="on") as another:
        receiver.wait_for(2)
        server.client.base_url = another.url
        wait_for_result(server, result="answered 204", delivered=True, waiting=0)


def test_several_servers_send_each_delivery_once(server, receiver):
    """Two servers on one database look for deliveries at the same time."""
    board = server.boards.open("first")
    for path in range(60):
        board.webhooks.add(ORGANISER, f"{receiver.url}/{path}")
    app = make_app(server.boards, InlineParsers(), settings=Settings(webhook_private=True))
    with ThreadedServer(app, http=BoardProtocol, lifespan="on"):
        for change in (pause, resume, pause):
            change(server)
        receiver.wait_for(120, seconds=60)
        wait_for_result(server, 60, waiting=0)
    sent = [(path, headers["webhook-id"]) for path, headers, _ in receiver.requests]
    assert len(set(sent)) == len(sent) == 120


def test_processes_share_the_work_and_send_each_delivery_once(server):
    """Every delivery is claimed by exactly one of four processes, each with its own connections."""
    board = server.boards.open("first")
    for path in range(50):
        board.webhooks.add(ORGANISER, f"https://example.org/{path}")
    storage, claimed, now = server.boards.storage, [], server.clock.now
    others = [
        Boards(storage, DatabaseStore(storage), environment=server.boards.environment)
        for _ in range(4)
    ]
    # In the future, so that the server's own sender leaves them alone.
    board.queue.run(partial(queue_later, board, now + 50))
    rows = due(server, 50)
    barrier = threading.Barrier(4)

    def claim(boards):
        barrier.wait()
        claimed.extend(claim_and_sign_deliveries(storage, boards.open, rows, now + 50, None))

    threads = [threading.Thread(target=claim, args=(boards,)) for boards in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [delivery.key for delivery in claimed]
    assert len(set(keys)) == len(keys) == len(rows) == 50
    # One that a process claimed and did not finish is due again, for any process.
    assert (due(server, 109), len(due(server, 110))) == ([], 50)


def queue_later(board, time, transaction):
    queue_event(board, transaction, "paused")
    transaction.view.execute("UPDATE main.delivery SET due = ?", (time,))


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_many_subscriptions(server, receiver, count, monkeypatch):
    monkeypatch.setattr(_queue, "MAX_WEBHOOKS", count)
    board = server.boards.open("first")
    for path in range(count):
        board.webhooks.add(ORGANISER, f"{receiver.url}/{path}")
    path = "/boards/first/webhooks"
    reply = server.call("POST", path, server.organiser, json={"url": receiver.url})
    assert_problem(reply, 409, "taken", f"at most {count:,} webhooks")
    start = time.monotonic()
    pause(server)
    assert time.monotonic() - start < 2.0
    receiver.wait_for(count, seconds=120)
    assert len({path for path, _, _ in receiver.requests}) == count
    wait_until(lambda: all(webhook["delivered"] for webhook in listed(server)))
    assert len(receiver.requests) == count
