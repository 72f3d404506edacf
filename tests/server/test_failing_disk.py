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
from pathlib import Path

import httpx
import pytest

import ladderboard as lb
from ladderboard.errors import DiskFull, ReadOnly
from ladderboard.ledger import SqliteStorage
from ladderboard.ledger._storage import _pool, _sqlite
from ladderboard.server._attack_jobs import Trials
from ladderboard.server._uploads._spool import Spool

PROGRAM = Path(__file__).with_name("_serve.py")
NOTHING = "Nothing was recorded, and no question was used"
LOOKS = ("/healthz", "/boards/first/leaderboard", "/boards/first/ledger", "/boards")


@pytest.fixture(scope="module", params=["sqlite"])
def database(request):
    return request.param


@pytest.fixture
def place(halls, disk):
    """Give a function that serves one board from the small disk."""
    with contextlib.ExitStack() as ends:

        def make(**how):
            storage = ends.enter_context(SqliteStorage(disk.path / "boards.db", create=True))
            hall = halls.Hall(storage, metrics_token="count", **how)  # noqa: S106
            hall.start()
            ends.callback(hall.stop)
            hall.renew()
            hall.board()
            return hall

        yield make


def looks(hall):
    return [hall.call("GET", each).status_code for each in LOOKS] + [
        hall.client.get(each).status_code for each in ("/", f"/boards/{hall.slug}")
    ]


def errors_in(hall):
    lines = [json.loads(each) for each in hall.log.getvalue().splitlines()]
    return [each["said"] for each in lines if each["event"] == "error"]


def is_told(reply, status, code, *words):
    assert reply.status_code == status, reply.text
    said = reply.json()
    assert (said["type"], said["code"]) == (f"urn:ladderboard:problem:{code}", code)
    for each in words:
        assert each in said["detail"]


def test_a_full_disk_costs_nothing_and_is_over_when_there_is_room(place, disk, predict):
    hall = place()
    _, token = hall.join("Alpha")
    assert hall.submit(token, predict(30)).status_code == 201
    disk.fill()
    for _ in range(2):  # the second time on what the first has left
        sent = hall.submit(token, predict(20), Idempotency_Key="once")
        is_told(sent, 507, "disk_full", NOTHING, "disk is full")
        assert sent.headers["retry-after"] == "10"
    is_told(hall.call("POST", "/boards/first/teams", json={"name": "B"}), 507, "disk_full")
    assert set(looks(hall)) == {200}
    assert hall.submit(token, predict(30)).json()["again"]  # what was answered is answered
    said = errors_in(hall)
    assert len(said) == 3
    assert all("boards.db cannot be used: the disk is full." in each for each in said)
    counted = hall.call("GET", "/metrics", "count").text
    assert 'route="/api/v1/boards/{board}/submissions",status="507"} 2' in counted
    browser = hall.browser()
    hall.sign_in(browser, token)
    form = browser.get(f"/boards/{hall.slug}/submit").text
    action = re.search(r'action="(/boards/[^"]+csrf=[^"]+)"', form).group(1)
    page = browser.post(unescape(action), files={"file": ("p.csv", predict(20))})
    browser.close()
    assert page.status_code == 507
    assert "text/html" in page.headers["content-type"]
    assert NOTHING in page.text
    disk.free()
    sent = hall.submit(token, predict(20), Idempotency_Key="once")
    assert (sent.status_code, sent.json()["number"], sent.json()["again"]) == (201, 2, False)
    assert hall.boards.open(hall.slug).book.check() == 2


def test_a_disk_that_may_only_be_read_goes_on_showing(place, disk, predict):
    hall = place()
    _, token = hall.join("Alpha")
    assert hall.submit(token, predict(30)).status_code == 201
    hall.boards.storage.close()  # or it could not be made so here
    disk.read_only()
    sent = hall.submit(token, predict(20))
    is_told(sent, 503, "read_only", NOTHING, "can only be read")
    assert int(sent.headers["retry-after"]) > 0
    is_told(hall.call("POST", "/boards/first/teams", json={"name": "B"}), 503, "read_only")
    assert set(looks(hall)) == {200}
    assert hall.submit(token, predict(30)).json()["again"]
    assert all("read" in each.lower() for each in errors_in(hall))
    disk.writable()
    for wrong, number in ((20, 2), (10, 3)):
        assert hall.submit(token, predict(wrong)).json()["number"] == number
    assert set(looks(hall)) == {200}
    assert hall.boards.open(hall.slug).book.check() == 3


def test_who_holds_the_file_for_long_keeps_nobody_from_looking(place, disk, predict, monkeypatch):
    monkeypatch.setattr(_sqlite, "PATIENCE", 2.0)
    monkeypatch.setattr(_pool, "PATIENCE", 2.0)
    hall = place(threads=2)
    _, token = hall.join("Alpha")
    begun = []
    turn = hall.boards.open(hall.slug).book.turn
    monkeypatch.setattr(hall.boards.open(hall.slug).book, "turn", lambda: begun.append(1) or turn())
    other = sqlite3.connect(disk.path / "boards.db", isolation_level=None)
    with contextlib.closing(other), concurrent.futures.ThreadPoolExecutor(4) as pool:
        other.execute("BEGIN IMMEDIATE")

        def send(wrong):
            with httpx.Client(timeout=60) as client:
                return client.post(
                    f"{hall.url}/api/v1/boards/{hall.slug}/submissions",
                    content=predict(wrong),
                    headers={"Authorization": f"Bearer {token}", "Content-Type": "text/csv"},
                )

        sent = [pool.submit(send, wrong) for wrong in range(4)]
        while not begun:
            time.sleep(0.01)
        assert set(looks(hall)) == {200}
        assert not any(each.done() for each in sent)  # they wait, and nobody waits for them
        for each in sent:
            is_told(each.result(), 503, "storage", NOTHING)
        other.execute("ROLLBACK")
    assert len(begun) <= 4  # nobody's turn is tried again where none could begin
    assert "others have been writing for too long" in errors_in(hall)[0]
    assert hall.submit(token, predict(0)).status_code == 201


def test_a_file_that_is_taken_away_is_missed_until_it_is_back(place, disk, predict):
    hall = place()
    _, token = hall.join("Alpha")
    file, away = disk.path / "boards.db", disk.path / "away.db"
    file.rename(away)
    time.sleep(2 * _sqlite._GLANCE)
    is_told(hall.submit(token, predict(20)), 503, "storage", NOTHING)
    assert hall.call("GET", "/healthz").status_code == 503
    # A copy is another file: what others wrote is not in it.
    subprocess.run(["cp", away, file], check=True)
    assert hall.call("GET", "/healthz").status_code == 503
    assert "was moved, removed or replaced" in errors_in(hall)[0]
    away.rename(file)
    assert hall.call("GET", "/healthz").status_code == 200
    assert hall.submit(token, predict(20)).json()["number"] == 1


def test_a_large_body_finds_no_room(place, disk):
    hall = place(spool=disk.path / "spool")
    _, token = hall.join("Alpha")
    is_told(hall.submit(token, b"id,prediction\n" * 2**17), 507, "disk_full", NOTHING)
    assert "bytes left, which is too few" in errors_in(hall)[0]
    assert list((disk.path / "spool").iterdir()) == []


async def pour(spool, size=2**22):
    draft = spool.draft()
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
    trials, others = (Trials(disk.path / each, seconds=0.3) for each in ("trials", "others"))
    monkeypatch.setattr(trials, "_begin", lambda *_: subprocess.Popen(["sleep", "600"]))
    trials.start("first", {}, "now")
    disk.fill()
    trials._watch.join()  # it ends, though nobody can write down why
    trials.close()
    with pytest.raises(DiskFull, match="No trial could be started"):
        others.start("first", {}, "now")


@pytest.mark.slow
def test_a_log_on_a_full_disk_ends_no_server(disk, tmp_path, predict):
    file = (disk.path / "log").open("wb")
    command = [sys.executable, PROGRAM, tmp_path / "boards.db", "1"]
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
            assert client.post(place, content=predict(30), headers=mine).status_code == 201
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
