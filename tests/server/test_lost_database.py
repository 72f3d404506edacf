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
from ladderboard.server import _app, _webhook_sender
from support.postgres import PASSWORD, PostgresServer
from support.server import SERVE_FIRST_BOARD
from support.server.live_server import LiveServer, make_predictions

NOTHING = "Nothing was recorded, and no submission was used"


@pytest.fixture(scope="module", params=["postgres"])
def database(request):
    return request.param


@pytest.fixture(scope="module")
def postgres_server():
    """A server that a test may stop, if it starts it again."""
    server = PostgresServer(max_connections="20")
    yield server
    server.stop()


@pytest.fixture
def server(postgres_server, monkeypatch):
    """Serve one board with a team, with short database timeouts."""
    monkeypatch.setattr(_app, "_DATABASE", 2.5)
    monkeypatch.setattr(_postgres, "_RETRY_PAUSE", 0.5)
    url = postgres_server.url(query="?connect_timeout=2")
    storage = PostgresStorage(url, create=True, schema=f"s_{secrets.token_hex(6)}")
    live_server = LiveServer(storage)
    live_server.start()
    live_server.reset()
    live_server.create_board(questions=1000)
    live_server.token = live_server.join("Alpha")[1]
    yield live_server
    live_server.stop()


def assert_unavailable(live_server, wrong):
    """Check the replies while the database is unavailable."""
    response = live_server.submit(
        live_server.token, make_predictions(wrong), Idempotency_Key=f"{wrong}"
    )
    assert response.status_code == 503
    assert (response.json()["code"], response.headers["retry-after"]) == ("storage", "5")
    assert NOTHING in response.json()["detail"]
    assert live_server.call("GET", "/healthz").status_code == 503
    page = live_server.client.get(f"/boards/{live_server.slug}")
    assert (page.status_code, page.headers["retry-after"]) == (503, "5")
    assert NOTHING in page.text
    assert "text/html" in page.headers["content-type"]


def assert_recovered(live_server, wrong, number):
    response = live_server.submit(
        live_server.token, make_predictions(wrong), Idempotency_Key=f"{wrong}"
    )
    assert (response.status_code, response.json()["number"], response.json()["again"]) == (
        201,
        number,
        False,
    )
    assert live_server.call("GET", "/healthz").status_code == 200
    assert live_server.client.get(f"/boards/{live_server.slug}").status_code == 200
    assert live_server.boards.open(live_server.slug).book.check() == number


def errors_in(live_server):
    lines = [json.loads(line) for line in live_server.log.getvalue().splitlines()]
    return [line["said"] for line in lines if line["event"] == "error"]


def test_a_stopped_database_gives_503_until_it_is_back(server, postgres_server, caplog):
    assert_recovered(server, 30, 1)
    # SIGQUIT drops all connections and uncommitted work at once.
    postgres_server.end(signal.SIGQUIT)
    try:
        assert_unavailable(server, 20)
    finally:
        postgres_server.start()
    assert_recovered(server, 20, 2)
    assert all(
        "Cannot connect to the PostgreSQL database" in message for message in errors_in(server)
    )
    lost, back = [
        record.getMessage() for record in caplog.records if record.name == "ladderboard.database"
    ]
    assert lost.startswith("Cannot connect to the PostgreSQL database")
    assert back.startswith("Connected to the PostgreSQL database")
    assert PASSWORD not in lost + back
    postgres_server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    assert_recovered(server, 10, 3)  # clients do not notice


def test_a_hanging_database_gives_503_in_time(server, postgres_server):
    assert_recovered(server, 30, 1)
    postgres_server.hang()
    try:
        assert_unavailable(server, 20)  # each request ends, or the test never does
    finally:
        postgres_server.resume()
    # Reconnections are tried twice a second, and the database first ends what was sent to it.
    deadline = time.monotonic() + 10
    while server.call("GET", "/healthz").status_code != 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert_recovered(server, 20, 2)
    assert "connection timeout expired" in "".join(errors_in(server))


@pytest.mark.parametrize("path", ["/boards/{}", "/", "/api/v1/boards/{}/leaderboard", "/healthz"])
def test_a_read_from_a_freezing_database_times_out(server, postgres_server, monkeypatch, path):
    begin, frozen_at = _postgres.PostgresConnection.begin, []

    def freeze(connection, *, write):
        begin(connection, write=write)
        if not frozen_at:
            postgres_server.hang()
            frozen_at.append(time.monotonic())

    monkeypatch.setattr(_postgres.PostgresConnection, "begin", freeze)
    try:
        reply = server.client.get(path.format(server.slug))
        waited = time.monotonic() - frozen_at[0]
    finally:
        postgres_server.resume()
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert waited < 7  # 2.5 seconds, plus delays of a busy machine


def test_a_statement_without_an_answer_times_out(postgres_server, open_transaction):
    storage, connection = open_transaction
    connection.connection.timeout = 0.5
    postgres_server.hang()
    try:
        with pytest.raises(Exception, match=r"no response from the server for 0\.5 seconds"):
            connection.query("SELECT 1")
    finally:
        postgres_server.resume()
    assert connection.broken
    storage._pool.release(connection)
    assert storage.books() == ["b"]


@pytest.fixture
def open_transaction(postgres_server):
    storage = PostgresStorage(
        postgres_server.url(), create=True, schema=f"s_{secrets.token_hex(6)}"
    )
    with storage.add_book("b"):
        pass
    connection = storage._pool.acquire()
    connection.begin(write=False)
    connection.query("SELECT 1")
    yield storage, connection
    storage.close()


def test_a_commit_without_an_answer_is_uncertain_and_is_found_by_a_retry(
    server, postgres_server, monkeypatch
):
    """A commit that waits for a missing standby server is already on the disk."""
    monkeypatch.setattr(_postgres, "_STATEMENT_TIMEOUT", 1.0)
    short = _postgres._WRITE.replace("'30s'", "'300ms'")
    monkeypatch.setattr(_postgres, "_WRITE", short)
    assert_recovered(server, 30, 1)

    def wait_for(name):
        postgres_server.run(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        postgres_server.run("SELECT pg_reload_conf()")
        while postgres_server.run("SHOW synchronous_standby_names") != [(name,)]:
            time.sleep(0.01)

    wait_for("nobody")
    try:
        response = server.submit(server.token, make_predictions(20), Idempotency_Key="once")
        assert (response.status_code, response.json()["code"]) == (503, "storage")
        assert "did not confirm the write" in response.json()["detail"]
        assert NOTHING not in response.json()["detail"]
    finally:
        wait_for("")
    for _ in range(2):
        response = server.submit(server.token, make_predictions(20), Idempotency_Key="once")
        assert (response.status_code, response.json()["number"], response.json()["again"]) == (
            200,
            2,
            True,
        )
    assert_recovered(server, 10, 3)


@pytest.fixture
def idle_webhooks(monkeypatch):
    """Let a server look for deliveries only once, so that it takes no connection later."""
    monkeypatch.setattr(_webhook_sender, "_TICK_SECONDS", 600.0)


def test_a_database_without_free_connections_gives_503(idle_webhooks, server, postgres_server):
    assert_recovered(server, 30, 1)
    server.boards.storage.close()
    with contextlib.ExitStack() as connections:
        refused_since = None  # connections that were closed are free a moment later
        while refused_since is None or time.monotonic() < refused_since + 0.5:
            try:
                connections.enter_context(psycopg.connect(postgres_server.url()))
                refused_since = None
            except psycopg.OperationalError:
                refused_since = refused_since or time.monotonic()
        assert_unavailable(server, 20)
    assert_recovered(server, 20, 2)
    assert "too many clients" in errors_in(server)[0]


@pytest.mark.slow
def test_restarts_under_load_lose_nothing(server, postgres_server, caplog):
    """Refused submissions are resent with their key, and each is counted once."""
    url = f"{server.url}/api/v1/boards/{server.slug}/submissions"
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "text/csv"}
    statuses = []

    def send(wrong):
        with httpx.Client(timeout=60) as client:
            for _ in range(200):
                response = client.post(
                    url,
                    content=make_predictions(wrong),
                    headers={**headers, "Idempotency-Key": f"{wrong}"},
                )
                statuses.append(response.status_code)
                if response.status_code != 503:
                    return response.json()["number"]
                assert response.json()["code"] == "storage"
                time.sleep(0.1)
        raise AssertionError

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(send, wrong) for wrong in range(60)]
        for stop_signal in (signal.SIGQUIT, signal.SIGINT):
            while len(statuses) < 5:
                time.sleep(0.01)
            postgres_server.end(stop_signal)
            postgres_server.start()
        numbers = [future.result() for future in futures]
    assert sorted(numbers) == list(range(1, 61))
    assert set(statuses) <= {200, 201, 503}
    # A request that waits until the database is back is not refused.
    assert 503 in statuses or "Cannot connect" in caplog.text
    assert server.boards.open(server.slug).book.check() == 60


@pytest.fixture
def program(postgres_server):
    """Run a server of two processes, and kill it if it is still running."""
    name = f"run_{secrets.token_hex(6)}"
    postgres_server.run(f"CREATE DATABASE {name}")
    url = (
        postgres_server.url()
        .replace("/postgres", f"/{name}")
        .replace("postgresql:", "postgresql+psycopg:")
    )
    command = [sys.executable, SERVE_FIRST_BOARD, url, "2"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    yield server
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
    server.communicate()


def wait_for_health(url, *, status):
    """Wait until eight requests, each on a new connection, all get this status."""
    for _ in range(300):
        with contextlib.suppress(httpx.TransportError):
            statuses = [httpx.get(f"{url}/healthz", timeout=30).status_code for _ in range(8)]
            if set(statuses) == {status}:
                return
        time.sleep(0.1)
    raise AssertionError


@pytest.mark.slow
def test_two_processes_reconnect_by_themselves(program, postgres_server):
    url = program.stdout.readline().split()[0]
    wait_for_health(url, status=200)
    body = httpx.post(f"{url}/api/v1/boards/first/teams", json={"name": "A"}, timeout=30).json()
    headers = {"Authorization": f"Bearer {body['token']}", "Content-Type": "text/csv"}
    submissions_url = f"{url}/api/v1/boards/first/submissions"

    def send(wrong):
        return httpx.post(
            submissions_url, content=make_predictions(wrong), headers=headers, timeout=60
        )

    for index, stop_signal in enumerate((signal.SIGQUIT, signal.SIGINT)):
        postgres_server.end(stop_signal)
        try:
            wait_for_health(url, status=503)
            assert (send(index).status_code, send(index).json()["code"]) == (503, "storage")
        finally:
            postgres_server.start()
        wait_for_health(url, status=200)
        assert (send(index).status_code, send(index).json()["again"]) == (201, True)
    postgres_server.hang()
    try:
        assert httpx.get(f"{url}/healthz", timeout=30).status_code == 503
    finally:
        postgres_server.resume()
    wait_for_health(url, status=200)
    assert send(9).json()["number"] == 3
    program.terminate()
    assert program.wait(timeout=60) == 0
