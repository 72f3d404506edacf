"""Workers replaced under load: no request fails, and nothing is lost or done twice."""

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from support.server.cli_server import SOURCE, ClientCrowd, CliServer, connect, wait_until
from support.server.live_server import make_folder
from support.server.stress_server import check_board, count_orphaned_uploads, empty_database

TEAMS = 5
EXPECTED = {"start", "request", "restart", "stop"}


@pytest.fixture
def address(request, tmp_path):
    with empty_database("postgres", request, tmp_path) as url:
        yield url


@pytest.fixture
def cli_server(address, tmp_path):
    """A server with two workers on PostgreSQL, and a board with many questions."""
    with CliServer(address, tmp_path, "--workers", "2") as server:
        names = [f"team {index}" for index in range(TEAMS)]
        server.create_board(make_folder(questions=60_000, teams=TEAMS, per_team=10_000), names)
        yield server


def restart_under_load(cli_server, rolls, **options):
    """Replace all workers several times under load, and check that no client noticed."""
    cli_server.start()
    cli_server.wait_until_ready()
    all_workers = cli_server.wait_for_workers()
    crowd = ClientCrowd(cli_server, TEAMS, **options)
    for _ in range(rolls):
        workers_before, requests_before = cli_server.workers(), crowd.requests
        wait_until(
            lambda requests_before=requests_before: (
                crowd.requests > requests_before + 20 or crowd.errors
            )
        )
        cli_server.restart_workers()
        wait_until(lambda workers_before=workers_before: not workers_before & cli_server.workers())
        assert len(cli_server.workers()) == 2
        assert not all_workers & cli_server.workers()
        all_workers |= cli_server.workers()
    replies = crowd.stop()
    assert cli_server.stop() == 0
    assert replies
    assert [entry for entry in cli_server.log() if entry.get("status", 200) >= 400] == []
    assert [entry for entry in cli_server.log() if entry["event"] not in EXPECTED] == []
    boards = cli_server.open_boards()
    board = boards.open("first")
    submissions, fresh = check_board(board, replies)
    assert len(replies) == len(submissions) == len(fresh)  # each one recorded exactly once
    assert count_orphaned_uploads(board) == 0
    boards.close()


def test_clients_do_not_notice_a_restart_of_workers(cli_server):
    restart_under_load(cli_server, rolls=1)


@pytest.mark.slow
def test_many_restarts_of_workers_under_large_files(cli_server):
    restart_under_load(cli_server, rolls=10, padding=3_000_000)


@pytest.mark.slow
def test_a_new_version_is_loaded_and_a_broken_one_is_not(address, tmp_path):
    code = tmp_path / "code"
    shutil.copytree(SOURCE, code)
    with (
        CliServer(address, tmp_path, "--workers", "2", code=code) as cli_server,
        contextlib.ExitStack() as exit_stack,
    ):
        cli_server.start()
        cli_server.wait_until_ready()
        connection = exit_stack.enter_context(contextlib.closing(connect(cli_server)))
        version_before = version_of(connection)
        init = code / "ladderboard" / "_version.py"
        init.write_text('__version__ = "77.0"\n')
        cli_server.restart_workers()
        # The old worker still answers on its open connection.
        assert version_of(connection) == version_before
        wait_until(lambda: version_of(connection) == "77.0")
        # A version that does not start changes nothing.
        app = code / "ladderboard" / "server" / "_app.py"
        app.write_text("raise SystemExit(3)\n")
        wait_until(lambda: len(cli_server.workers()) == 2)
        workers = cli_server.workers()
        cli_server.signal(signal.SIGHUP)
        wait_until(lambda: cli_server.events("restart")[-1]["state"] == "given up")
        assert cli_server.workers() == workers
        assert version_of(connection) == "77.0"
        assert cli_server.stop() == 0


def version_of(connection):
    connection.request("GET", "/openapi.json")
    return json.loads(connection.getresponse().read())["info"]["version"]


def test_a_killed_worker_is_replaced(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    workers = cli_server.wait_for_workers()
    os.kill(min(workers), signal.SIGKILL)
    wait_until(lambda: len(cli_server.workers()) == 2 and cli_server.workers() != workers)
    (event,) = cli_server.events("worker")
    assert (event["state"], event["pid"], event["code"]) == ("ended", min(workers), -signal.SIGKILL)
    assert cli_server.stop() == 0


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    workers = cli_server.wait_for_workers()
    cli_server.signal(signal.SIGKILL)
    cli_server.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


@pytest.mark.slow
def test_failing_workers_are_restarted_with_growing_delays(cli_server, postgres):
    cli_server.start()
    cli_server.wait_until_ready()
    workers = cli_server.wait_for_workers()
    name = cli_server.database.rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    os.kill(min(workers), signal.SIGKILL)
    wait_until(lambda: len(cli_server.events("worker")) >= 4)
    first_wait, *waits = [
        event["wait"] for event in cli_server.events("worker") if event["state"] == "failed"
    ]
    assert waits[:2] == [2 * first_wait, 4 * first_wait]
    postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    connection = connect(cli_server)
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200  # the other worker was there all the time
    workers_now = wait_until(lambda: len(cli_server.workers()) == 2 and cli_server.workers())
    cli_server.restart_workers()  # begins when both respond
    wait_until(lambda: not workers_now & cli_server.workers())
    assert cli_server.stop() == 0


def test_a_server_whose_workers_do_not_start_ends(address, tmp_path):
    code = tmp_path / "code"
    shutil.copytree(SOURCE, code)
    app = code / "ladderboard" / "server" / "_app.py"
    broken = "import os\nassert '_LADDERBOARD_WORKER' not in os.environ\n"
    app.write_text(app.read_text() + broken)
    with CliServer(address, tmp_path, "--workers", "2", code=code) as cli_server:
        cli_server.start()
        cli_server.read_address()
        assert cli_server.wait() == 2
