"""Boards on a disk that is full, that may only be read, or whose file others hold: what is told."""

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
from ladderboard.server._attack_jobs import AttackJobs
from ladderboard.server._uploads._spool import Spool
from support.credentials import random_secret
from support.server import SERVE_FIRST_BOARD
from support.server.live_server import LiveServer, make_predictions

METRICS_TOKEN = random_secret()
NOTHING = "Nothing was recorded, and no question was used"
LOOKS = ("/healthz", "/boards/first/leaderboard", "/boards/first/ledger", "/boards")


@pytest.fixture(scope="module", params=["sqlite"])
def database(request):
    return request.param


@pytest.fixture
def serve_from_disk(disk):
    """Give a function that serves one board from the small disk."""
    with contextlib.ExitStack() as ends:

        def make(**how):
            storage = ends.enter_context(SqliteStorage(disk.path / "boards.db", create=True))
            live_server = LiveServer(storage, metrics_token=METRICS_TOKEN, **how)
            live_server.start()
            ends.callback(live_server.stop)
            live_server.reset()
            live_server.create_board()
            return live_server

        yield make


def looks(live_server):
    return [live_server.call("GET", each).status_code for each in LOOKS] + [
        live_server.client.get(each).status_code for each in ("/", f"/boards/{live_server.slug}")
    ]


def errors_in(live_server):
    lines = [json.loads(each) for each in live_server.log.getvalue().splitlines()]
    return [each["said"] for each in lines if each["event"] == "error"]


def is_told(reply, status, code, *words):
    assert reply.status_code == status, reply.text
    said = reply.json()
    assert (said["type"], said["code"]) == (f"urn:ladderboard:problem:{code}", code)
    for each in words:
        assert each in said["detail"]


def test_a_full_disk_costs_nothing_and_is_over_when_there_is_room(serve_from_disk, disk):
    live_server = serve_from_disk()
    _, token = live_server.join("Alpha")
    assert live_server.submit(token, make_predictions(30)).status_code == 201
    disk.fill()
    for _ in range(2):  # the second time on what the first has left
        sent = live_server.submit(token, make_predictions(20), Idempotency_Key="once")
        is_told(sent, 507, "disk_full", NOTHING, "disk is full")
        assert sent.headers["retry-after"] == "10"
    is_told(live_server.call("POST", "/boards/first/teams", json={"name": "B"}), 507, "disk_full")
    assert set(looks(live_server)) == {200}
    assert live_server.submit(token, make_predictions(30)).json()[
        "again"
    ]  # what was answered is answered
    said = errors_in(live_server)
    assert len(said) == 3
    assert all("boards.db cannot be used: the disk is full." in each for each in said)
    counted = live_server.call("GET", "/metrics", METRICS_TOKEN).text
    assert 'route="/api/v1/boards/{board}/submissions",status="507"} 2' in counted
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
    sent = live_server.submit(token, make_predictions(20), Idempotency_Key="once")
    assert (sent.status_code, sent.json()["number"], sent.json()["again"]) == (201, 2, False)
    assert live_server.boards.open(live_server.slug).book.check() == 2


def test_a_disk_that_may_only_be_read_goes_on_showing(serve_from_disk, disk):
    live_server = serve_from_disk()
    _, token = live_server.join("Alpha")
    assert live_server.submit(token, make_predictions(30)).status_code == 201
    live_server.boards.storage.close()  # or it could not be made so here
    disk.read_only()
    sent = live_server.submit(token, make_predictions(20))
    is_told(sent, 503, "read_only", NOTHING, "can only be read")
    assert int(sent.headers["retry-after"]) > 0
    is_told(live_server.call("POST", "/boards/first/teams", json={"name": "B"}), 503, "read_only")
    assert set(looks(live_server)) == {200}
    assert live_server.submit(token, make_predictions(30)).json()["again"]
    assert all("read" in each.lower() for each in errors_in(live_server))
    disk.writable()
    for wrong, number in ((20, 2), (10, 3)):
        assert live_server.submit(token, make_predictions(wrong)).json()["number"] == number
    assert set(looks(live_server)) == {200}
    assert live_server.boards.open(live_server.slug).book.check() == 3


def test_who_holds_the_file_for_long_keeps_nobody_from_looking(serve_from_disk, disk, monkeypatch):
    monkeypatch.setattr(_sqlite, "WRITER_TIMEOUT", 2.0)
    monkeypatch.setattr(_pool, "WRITER_TIMEOUT", 2.0)
    live_server = serve_from_disk(threads=2)
    _, token = live_server.join("Alpha")
    begun = []
    turn = live_server.boards.open(live_server.slug).book.transaction
    monkeypatch.setattr(
        live_server.boards.open(live_server.slug).book,
        "transaction",
        lambda: begun.append(1) or turn(),
    )
    other = sqlite3.connect(disk.path / "boards.db", isolation_level=None)
    with contextlib.closing(other), concurrent.futures.ThreadPoolExecutor(4) as pool:
        other.execute("BEGIN IMMEDIATE")

        def send(wrong):
            with httpx.Client(timeout=60) as client:
                return client.post(
                    f"{live_server.url}/api/v1/boards/{live_server.slug}/submissions",
                    content=make_predictions(wrong),
                    headers={"Authorization": f"Bearer {token}", "Content-Type": "text/csv"},
                )

        sent = [pool.submit(send, wrong) for wrong in range(4)]
        while not begun:
            time.sleep(0.01)
        assert set(looks(live_server)) == {200}
        assert not any(each.done() for each in sent)  # they wait, and nobody waits for them
        for each in sent:
            is_told(each.result(), 503, "storage", NOTHING)
        other.execute("ROLLBACK")
    assert len(begun) <= 4  # nobody's turn is tried again where none could begin
    assert "others have been writing for too long" in errors_in(live_server)[0]
    assert live_server.submit(token, make_predictions(0)).status_code == 201


def test_a_file_that_is_taken_away_is_missed_until_it_is_back(serve_from_disk, disk):
    live_server = serve_from_disk()
    _, token = live_server.join("Alpha")
    file, away = disk.path / "boards.db", disk.path / "away.db"
    file.rename(away)
    time.sleep(2 * _sqlite._GLANCE)
    is_told(live_server.submit(token, make_predictions(20)), 503, "storage", NOTHING)
    assert live_server.call("GET", "/healthz").status_code == 503
    # A copy is another file: what others wrote is not in it.
    subprocess.run(["cp", away, file], check=True)
    assert live_server.call("GET", "/healthz").status_code == 503
    assert "was moved, removed or replaced" in errors_in(live_server)[0]
    away.rename(file)
    assert live_server.call("GET", "/healthz").status_code == 200
    assert live_server.submit(token, make_predictions(20)).json()["number"] == 1


def test_a_large_body_finds_no_room(serve_from_disk, disk):
    live_server = serve_from_disk(spool=disk.path / "spool")
    _, token = live_server.join("Alpha")
    is_told(live_server.submit(token, b"id,prediction\n" * 2**17), 507, "disk_full", NOTHING)
    assert "bytes left, which is too few" in errors_in(live_server)[0]
    assert list((disk.path / "spool").iterdir()) == []


async def pour(spool, size=2**22):
    draft = spool.new_body()
    try:
        for _ in range(size // 2**18):
            await draft.write(bytes(2**18))
        return await draft.finish()
    finally:
        draft.discard()


def test_a_spool_says_which_it_is(disk):
    spool = Spool(disk.path / "spool", free=0)
    disk.fill(leave=2**21)
    with pytest.raises(DiskFull, match="cannot be written"):
        asyncio.run(pour(spool))
    disk.free()
    disk.read_only()
    with pytest.raises(ReadOnly, match="cannot be made"):
        asyncio.run(pour(spool))
    disk.writable()
    assert asyncio.run(pour(spool)).parent == spool.path
    assert list(spool.path.iterdir()) == []
    spool.close()


def test_games_on_a_full_disk_are_refused_and_end_in_time(disk, monkeypatch):
    trials, others = (AttackJobs(disk.path / each, seconds=0.3) for each in ("trials", "others"))
    monkeypatch.setattr(trials, "_spawn_worker", lambda *_: subprocess.Popen(["sleep", "600"]))
    trials.start("first", {}, "now")
    disk.fill()
    trials._watch.join()  # it ends, though nobody can write down why
    trials.close()
    with pytest.raises(DiskFull, match="No trial could be started"):
        others.start("first", {}, "now")


@pytest.mark.slow
def test_a_log_on_a_full_disk_ends_no_server(disk, tmp_path):
    file = (disk.path / "log").open("wb")
    command = [sys.executable, SERVE_FIRST_BOARD, tmp_path / "boards.db", "1"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
    with file, server:
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
            made = client.post("/api/v1/boards/first/teams", json={"name": "A"}).json()
            mine = {"Authorization": f"Bearer {made['token']}", "Content-Type": "text/csv"}
            place = "/api/v1/boards/first/submissions"
            assert client.post(place, content=make_predictions(30), headers=mine).status_code == 201
            before = os.fstat(file.fileno()).st_size
            disk.free()
            assert client.get("/healthz").status_code == 200
            assert os.fstat(file.fileno()).st_size > before
        server.terminate()
        server.wait(timeout=60)
    assert server.returncode == 0


def test_a_served_guard_says_the_same(disk, labels, serve):
    guard = lb.Holdout.create(
        disk.path / "guard.db", labels, questions=10, mechanism=lb.Ladder(step=0.02)
    )
    served = serve(guard)
    remote = lb.Holdout.connect(served.url)
    assert remote.ask(labels).question == 1
    disk.fill()
    for _ in range(2):
        with pytest.raises(DiskFull, match=NOTHING):
            remote.ask(1 - labels)
    assert remote.remaining == 9
    assert served.call("GET", "/healthz")[0] == 200
    disk.free()
    assert remote.ask(1 - labels).question == 2
    guard.close()
    disk.read_only()
    with pytest.raises(ReadOnly, match="can only be read now"):
        remote.ask(labels * 0)
    assert remote.status().meter.remaining == 8
    disk.writable()
    assert remote.ask(labels * 0).question == 3
    assert guard.check() == 3
    guard.close()
