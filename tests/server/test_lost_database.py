"""Boards on a PostgreSQL server that goes away, hangs or comes back."""

import concurrent.futures
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time

import httpx
import psycopg
import pytest

from ladderboard.ledger import PostgresStorage
from ladderboard.ledger._storage import _postgres
from ladderboard.server import _app
from support.postgres import PostgresServer
from support.server import SERVE_FIRST_BOARD
from support.server.live_server import LiveServer, make_predictions

NOTHING = "Nothing was recorded, and no question was used"


@pytest.fixture(scope="module", params=["postgres"])
def database(request):
    return request.param


@pytest.fixture(scope="module")
def own():
    """Give a server that may be ended; whoever does starts it again."""
    server = PostgresServer(max_connections="20")
    yield server
    server.stop()


@pytest.fixture
def there(own, monkeypatch):
    """Serve one board, and have a team on it; where nobody answers, for a short time only."""
    monkeypatch.setattr(_app, "_DATABASE", 2.5)
    monkeypatch.setattr(_postgres, "_SILENT", 0.5)
    url = own.url(query="?connect_timeout=2")
    storage = PostgresStorage(url, create=True, schema=f"s_{secrets.token_hex(6)}")
    live_server = LiveServer(storage)
    live_server.start()
    live_server.reset()
    live_server.create_board(questions=1000)
    live_server.token = live_server.join("Alpha")[1]
    yield live_server
    live_server.stop()


def is_lost(live_server, wrong):
    """Check what everybody sees while the database is gone."""
    sent = live_server.submit(
        live_server.token, make_predictions(wrong), Idempotency_Key=f"{wrong}"
    )
    assert sent.status_code == 503
    assert (sent.json()["code"], sent.headers["retry-after"]) == ("storage", "5")
    assert NOTHING in sent.json()["detail"]
    assert live_server.call("GET", "/healthz").status_code == 503
    page = live_server.client.get(f"/boards/{live_server.slug}")
    assert (page.status_code, page.headers["retry-after"]) == (503, "5")
    assert NOTHING in page.text
    assert "text/html" in page.headers["content-type"]


def is_back(live_server, wrong, number):
    sent = live_server.submit(
        live_server.token, make_predictions(wrong), Idempotency_Key=f"{wrong}"
    )
    assert (sent.status_code, sent.json()["number"], sent.json()["again"]) == (201, number, False)
    assert live_server.call("GET", "/healthz").status_code == 200
    assert live_server.client.get(f"/boards/{live_server.slug}").status_code == 200
    assert live_server.boards.open(live_server.slug).book.check() == number


def errors_in(live_server):
    lines = [json.loads(each) for each in live_server.log.getvalue().splitlines()]
    return [each["said"] for each in lines if each["event"] == "error"]


def test_a_server_that_was_ended_is_missed_until_it_is_back(there, own):
    is_back(there, 30, 1)
    own.end(signal.SIGQUIT)  # at once: its connections are gone, and what was not committed
    try:
        is_lost(there, 20)
    finally:
        own.start()
    is_back(there, 20, 2)
    assert all("no way to the PostgreSQL database" in each for each in errors_in(there))
    own.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    is_back(there, 10, 3)  # nobody sees that


def test_a_server_that_hangs_keeps_nobody_for_ever(there, own):
    is_back(there, 30, 1)
    own.hang()
    try:
        is_lost(there, 20)  # each of these ends, or the test never does
    finally:
        own.resume()
    time.sleep(0.5)  # nobody tries before that
    is_back(there, 20, 2)
    assert "connection timeout expired" in "".join(errors_in(there))


@pytest.mark.parametrize("path", ["/boards/{}", "/", "/api/v1/boards/{}/leaderboard", "/healthz"])
def test_a_database_that_freezes_under_a_reader_is_given_up_soon(there, own, monkeypatch, path):
    begin, frozen = _postgres.PostgresConnection.begin, []

    def freeze(link, *, write):
        begin(link, write=write)
        if not frozen:
            own.hang()
            frozen.append(time.monotonic())

    monkeypatch.setattr(_postgres.PostgresConnection, "begin", freeze)
    try:
        reply = there.client.get(path.format(there.slug))
        waited = time.monotonic() - frozen[0]
    finally:
        own.resume()
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert waited < 7  # 2.5 here, with what a busy machine adds


def test_a_statement_that_is_never_answered_ends(own, grow_a_book):
    storage, link = grow_a_book
    link.connection.patience = 0.5
    own.hang()
    try:
        with pytest.raises(Exception, match=r"said nothing for 0\.5 seconds"):
            link.query("SELECT 1")
    finally:
        own.resume()
    assert link.broken
    storage._pool.release(link)
    assert storage.books() == ["b"]


@pytest.fixture
def grow_a_book(own):
    storage = PostgresStorage(own.url(), create=True, schema=f"s_{secrets.token_hex(6)}")
    with storage.add_book("b"):
        pass
    link = storage._pool.acquire()
    link.begin(write=False)
    yield storage, link
    storage.close()


def test_a_commit_without_an_answer_is_uncertain_and_found_later(there, own, monkeypatch):
    """A commit that waits for a second server, which is not there, is on the disk already."""
    monkeypatch.setattr(_postgres, "_ANSWER", 1.0)
    short = _postgres._WRITE.replace("'30s'", "'300ms'")
    monkeypatch.setattr(_postgres, "_WRITE", short)
    is_back(there, 30, 1)

    def wait_for(name):
        own.run(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        own.run("SELECT pg_reload_conf()")
        while own.run("SHOW synchronous_standby_names") != [(name,)]:
            time.sleep(0.01)

    wait_for("nobody")
    try:
        sent = there.submit(there.token, make_predictions(20), Idempotency_Key="once")
        assert (sent.status_code, sent.json()["code"]) == (503, "storage")
        assert "did not say whether this was kept" in sent.json()["detail"]
        assert NOTHING not in sent.json()["detail"]
    finally:
        wait_for("")
    for _ in range(2):
        sent = there.submit(there.token, make_predictions(20), Idempotency_Key="once")
        assert (sent.status_code, sent.json()["number"], sent.json()["again"]) == (200, 2, True)
    is_back(there, 10, 3)


def test_where_no_connection_is_left_it_is_told(there, own):
    is_back(there, 30, 1)
    there.boards.storage.close()
    with contextlib.ExitStack() as others:
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                others.enter_context(psycopg.connect(own.url()))
        is_lost(there, 20)
    is_back(there, 20, 2)
    assert "too many clients" in errors_in(there)[0]


@pytest.mark.slow
def test_restarts_under_load_lose_nothing(there, own):
    """Whatever is refused is sent again under its key, and everything is answered once."""
    place = f"{there.url}/api/v1/boards/{there.slug}/submissions"
    mine = {"Authorization": f"Bearer {there.token}", "Content-Type": "text/csv"}
    seen = []

    def send(wrong):
        with httpx.Client(timeout=60) as client:
            for _ in range(200):
                said = client.post(
                    place,
                    content=make_predictions(wrong),
                    headers={**mine, "Idempotency-Key": f"{wrong}"},
                )
                seen.append(said.status_code)
                if said.status_code != 503:
                    return said.json()["number"]
                assert said.json()["code"] == "storage"
                time.sleep(0.1)
        raise AssertionError

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(send, wrong) for wrong in range(60)]
        for how in (signal.SIGQUIT, signal.SIGINT):
            while len(seen) < 5:
                time.sleep(0.01)
            own.end(how)
            own.start()
        numbers = [each.result() for each in sent]
    assert sorted(numbers) == list(range(1, 61))
    assert set(seen) <= {200, 201, 503}
    assert 503 in seen
    assert there.boards.open(there.slug).book.check() == 60


@pytest.fixture
def program(own):
    """Run a server of two processes, and end what is left of it."""
    name = f"run_{secrets.token_hex(6)}"
    own.run(f"CREATE DATABASE {name}")
    url = own.url().replace("/postgres", f"/{name}").replace("postgresql:", "postgresql+psycopg:")
    command = [sys.executable, SERVE_FIRST_BOARD, url, "2"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    yield server
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
    server.communicate()


def healths(url, *, wanted):
    """Ask on new connections, so that both processes get some, until all say the same."""
    for _ in range(300):
        with contextlib.suppress(httpx.TransportError):
            said = [httpx.get(f"{url}/healthz", timeout=30).status_code for _ in range(8)]
            if set(said) == {wanted}:
                return
        time.sleep(0.1)
    raise AssertionError


@pytest.mark.slow
def test_two_processes_come_back_by_themselves(program, own):
    url = program.stdout.readline().split()[0]
    healths(url, wanted=200)
    made = httpx.post(f"{url}/api/v1/boards/first/teams", json={"name": "A"}, timeout=30).json()
    mine = {"Authorization": f"Bearer {made['token']}", "Content-Type": "text/csv"}
    place = f"{url}/api/v1/boards/first/submissions"

    def send(wrong):
        return httpx.post(place, content=make_predictions(wrong), headers=mine, timeout=60)

    for at, how in enumerate((signal.SIGQUIT, signal.SIGINT)):
        own.end(how)
        try:
            healths(url, wanted=503)
            assert (send(at).status_code, send(at).json()["code"]) == (503, "storage")
        finally:
            own.start()
        healths(url, wanted=200)
        assert (send(at).status_code, send(at).json()["again"]) == (201, True)
    own.hang()
    try:
        assert httpx.get(f"{url}/healthz", timeout=30).status_code == 503
    finally:
        own.resume()
    healths(url, wanted=200)
    assert send(9).json()["number"] == 3
    program.terminate()
    assert program.wait(timeout=60) == 0
