"""Boards on a full or read-only disk, or with a locked or missing file: the errors clients get."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from html import unescape

import httpx
import pytest

import ladderboard as lb
from ladderboard.errors import DiskFull, ReadOnly
from ladderboard.ledger import SqliteStorage
from ladderboard.ledger._storage import _pool, _sqlite
from ladderboard.server._uploads._body import ReceivedBody, Spool
from support.credentials import random_secret
from support.server import SERVE_FIRST_BOARD
from support.server.live_server import LiveServer, assert_problem, make_predictions

METRICS_TOKEN = random_secret()
NOTHING = "Nothing was recorded, and no submission was used"
READ_PATHS = ("/healthz", "/boards/first/leaderboard", "/boards/first/ledger", "/boards")


@pytest.fixture(scope="module", params=["sqlite"])
def database(request):
    return request.param


@pytest.fixture
def serve_from_disk(disk):
    """Return a function that serves one board from the small disk."""
    with contextlib.ExitStack() as exit_stack:

        def make(**options):
            storage = exit_stack.enter_context(SqliteStorage(disk.path / "boards.db", create=True))
            live_server = LiveServer(storage, metrics_token=METRICS_TOKEN, **options)
            live_server.start()
            exit_stack.callback(live_server.stop)
            live_server.reset()
            live_server.create_board()
            return live_server

        yield make


def read_statuses(live_server):
    return [live_server.call("GET", path).status_code for path in READ_PATHS] + [
        live_server.client.get(path).status_code for path in ("/", f"/boards/{live_server.slug}")
    ]


def errors_in(live_server):
    lines = [json.loads(line) for line in live_server.log.getvalue().splitlines()]
    return [line["said"] for line in lines if line["event"] == "error"]


def test_a_full_disk_costs_nothing_and_recovers(serve_from_disk, disk):
    live_server = serve_from_disk()
    _, token = live_server.join("Alpha")
    assert live_server.submit(token, make_predictions(30)).status_code == 201
    disk.fill()
    for _ in range(2):  # the second time after the first failure
        response = live_server.submit(token, make_predictions(20), Idempotency_Key="once")
        assert_problem(response, 507, "disk_full", NOTHING, "disk is full")
        assert response.headers["retry-after"] == "10"
    assert_problem(
        live_server.call("POST", "/boards/first/teams", json={"name": "B"}), 507, "disk_full"
    )
    assert set(read_statuses(live_server)) == {200}
    assert live_server.submit(token, make_predictions(30)).json()[
        "again"
    ]  # a duplicate still gets its result
    messages = errors_in(live_server)
    assert len(messages) == 3
    assert all("boards.db cannot be used: the disk is full." in message for message in messages)
    metrics = live_server.call("GET", "/metrics", METRICS_TOKEN).text
    assert 'route="/api/v1/boards/{board}/submissions",status="507"} 2' in metrics
    browser = live_server.browser()
    live_server.sign_in(browser, token)
    form = browser.get(f"/boards/{live_server.slug}/submit").text
    action = re.search(r'action="(/boards/[^"]+csrf=[^"]+)"', form).group(1)
    page = browser.post(unescape(action), files={"file": ("p.csv", make_predictions(20))})
    browser.close()
    assert page.status_code == 507
    assert "text/html" in page.headers["content-type"]
    assert NOTHING in page.text
    disk.free()
    response = live_server.submit(token, make_predictions(20), Idempotency_Key="once")
    assert (response.status_code, response.json()["number"], response.json()["again"]) == (
        201,
        2,
        False,
    )
    assert live_server.boards.open(live_server.slug).book.check() == 2


def test_a_read_only_disk_still_serves_reads(serve_from_disk, disk):
    live_server = serve_from_disk()
    _, token = live_server.join("Alpha")
    assert live_server.submit(token, make_predictions(30)).status_code == 201
    live_server.boards.storage.close()  # an open file would prevent the remount
    disk.read_only()
    response = live_server.submit(token, make_predictions(20))
    assert_problem(response, 503, "read_only", NOTHING, "is read-only")
    assert int(response.headers["retry-after"]) > 0
    assert_problem(
        live_server.call("POST", "/boards/first/teams", json={"name": "B"}), 503, "read_only"
    )
    assert set(read_statuses(live_server)) == {200}
    assert live_server.submit(token, make_predictions(30)).json()["again"]
    assert all("read" in message.lower() for message in errors_in(live_server))
    disk.writable()
    for wrong, number in ((20, 2), (10, 3)):
        assert live_server.submit(token, make_predictions(wrong)).json()["number"] == number
    assert set(read_statuses(live_server)) == {200}
    assert live_server.boards.open(live_server.slug).book.check() == 3


def test_a_locked_database_does_not_block_readers(serve_from_disk, disk, monkeypatch):
    monkeypatch.setattr(_sqlite, "WRITER_TIMEOUT", 2.0)
    monkeypatch.setattr(_pool, "WRITER_TIMEOUT", 2.0)
    live_server = serve_from_disk(threads=2)
    _, token = live_server.join("Alpha")
    transactions = []
    transaction = live_server.boards.open(live_server.slug).book.transaction
    monkeypatch.setattr(
        live_server.boards.open(live_server.slug).book,
        "transaction",
        lambda *arguments: transactions.append(1) or transaction(*arguments),
    )
    other_connection = sqlite3.connect(disk.path / "boards.db", isolation_level=None)
    with contextlib.closing(other_connection), concurrent.futures.ThreadPoolExecutor(4) as pool:
        other_connection.execute("BEGIN IMMEDIATE")

        def send(wrong):
            with httpx.Client(timeout=60) as client:
                return client.post(
                    f"{live_server.url}/api/v1/boards/{live_server.slug}/submissions",
                    content=make_predictions(wrong),
                    headers={"Authorization": f"Bearer {token}", "Content-Type": "text/csv"},
                )

        futures = [pool.submit(send, wrong) for wrong in range(4)]
        while not transactions and not any(future.done() for future in futures):
            time.sleep(0.01)
        assert set(read_statuses(live_server)) == {200}
        assert not any(future.done() for future in futures)  # they wait without blocking others
        for future in futures:
            assert_problem(future.result(), 503, "storage", NOTHING)
        other_connection.execute("ROLLBACK")
    assert len(transactions) <= 4  # a transaction that could not begin is not retried
    assert "is locked by another process" in errors_in(live_server)[0]
    assert live_server.submit(token, make_predictions(0)).status_code == 201


def test_a_moved_database_file_gives_503_until_it_is_back(serve_from_disk, disk):
    live_server = serve_from_disk()
    _, token = live_server.join("Alpha")
    file, away = disk.path / "boards.db", disk.path / "away.db"
    file.rename(away)
    time.sleep(2 * _sqlite._REPLACED_CHECK_INTERVAL)
    assert_problem(live_server.submit(token, make_predictions(20)), 503, "storage", NOTHING)
    assert live_server.call("GET", "/healthz").status_code == 503
    # A copy is another file, without the others' writes.
    subprocess.run(["cp", away, file], check=True)
    assert live_server.call("GET", "/healthz").status_code == 503
    assert "was moved, removed or replaced" in errors_in(live_server)[0]
    away.rename(file)
    assert live_server.call("GET", "/healthz").status_code == 200
    assert live_server.submit(token, make_predictions(20)).json()["number"] == 1


def test_a_large_body_needs_disk_space(serve_from_disk, disk):
    live_server = serve_from_disk(spool=disk.path / "spool")
    _, token = live_server.join("Alpha")
    assert_problem(live_server.submit(token, b"id,prediction\n" * 2**17), 507, "disk_full", NOTHING)
    assert "bytes left, which is too few" in errors_in(live_server)[0]
    assert list((disk.path / "spool").iterdir()) == []


async def write_body(spool, size=2**22):
    async with ReceivedBody(spool) as body:
        for _ in range(size // 2**18):
            await body.write(bytes(2**18))
        await body.finish()
        return os.fstat(body.content.fileno()).st_size


def test_a_spool_distinguishes_full_and_read_only_disks(disk):
    spool = Spool(disk.path / "spool", min_free=0)
    disk.fill(leave=2**21)
    with pytest.raises(DiskFull, match="bytes left, which is too few"):
        asyncio.run(write_body(spool))
    disk.free()
    disk.read_only()
    with pytest.raises(ReadOnly, match="cannot be created"):
        asyncio.run(write_body(spool))
    disk.writable()
    assert asyncio.run(write_body(spool)) == 2**22
    assert list(spool.path.iterdir()) == []


def write_past_a_full_disk(server, file, disk):
    """Fill the disk of a server's log, use the server, and free the disk again."""
    url = server.stdout.readline().split()[0]
    with httpx.Client(base_url=url, timeout=60) as client:
        while True:
            with contextlib.suppress(httpx.TransportError):
                client.get("/healthz")
                break
            time.sleep(0.05)
        disk.fill()
        for _ in range(100):  # more lines than a buffer holds
            assert client.get("/healthz").status_code == 200
        body = client.post("/api/v1/boards/first/teams", json={"name": "A"}).json()
        headers = {"Authorization": f"Bearer {body['token']}", "Content-Type": "text/csv"}
        path = "/api/v1/boards/first/submissions"
        assert client.post(path, content=make_predictions(30), headers=headers).status_code == 201
        size_before = os.fstat(file.fileno()).st_size
        disk.free()
        assert client.get("/healthz").status_code == 200
        deadline = time.monotonic() + 20
        while os.fstat(file.fileno()).st_size <= size_before:  # written after the response
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.slow
def test_a_log_on_a_full_disk_does_not_stop_the_server(disk, tmp_path):
    file = (disk.path / "log").open("wb")
    command = [sys.executable, SERVE_FIRST_BOARD, tmp_path / "boards.db", "1"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
    with file, server:
        try:
            write_past_a_full_disk(server, file, disk)
        finally:
            server.terminate()
        server.wait(timeout=60)
    assert server.returncode == 0


def test_a_served_guard_reports_the_same_errors(disk, labels, serve_guard):
    guard = lb.Holdout.create(
        disk.path / "guard.db", labels, questions=10, mechanism=lb.Ladder(step=0.02)
    )
    guard_server = serve_guard(guard)
    remote = lb.Holdout.connect(guard_server.url)
    assert remote.ask(labels).question == 1
    disk.fill()
    for _ in range(2):
        with pytest.raises(DiskFull, match="and no question was used"):
            remote.ask(1 - labels)
    assert remote.remaining == 9
    assert guard_server.call("GET", "/healthz")[0] == 200
    disk.free()
    assert remote.ask(1 - labels).question == 2
    guard.close()
    disk.read_only()
    with pytest.raises(ReadOnly, match="read-only"):
        remote.ask(labels * 0)
    assert remote.status().meter.remaining == 8
    disk.writable()
    assert remote.ask(labels * 0).question == 3
    assert guard.check() == 3
    guard.close()
