"""Workers that are replaced while clients ask: nobody is cut off, nothing is lost or done twice."""

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
    with empty_database("postgres", request, tmp_path) as found:
        yield found


@pytest.fixture
def cli_server(address, tmp_path):
    """A server with two workers on PostgreSQL, and a board with many questions."""
    with CliServer(address, tmp_path, "--workers", "2") as made:
        names = [f"team {at}" for at in range(TEAMS)]
        made.create_board(make_folder(questions=60_000, teams=TEAMS, per_team=10_000), names)
        yield made


def restart_under_load(cli_server, rolls, **options):
    """Replace all workers so often while clients ask; see that nobody noticed."""
    cli_server.start()
    cli_server.wait_until_ready()
    seen = cli_server.wait_for_workers()
    crowd = ClientCrowd(cli_server, TEAMS, **options)
    for _ in range(rolls):
        before, asked = cli_server.workers(), crowd.requests
        wait_until(lambda asked=asked: crowd.requests > asked + 20 or crowd.errors)
        cli_server.restart_workers()
        wait_until(lambda before=before: not before & cli_server.workers())
        assert len(cli_server.workers()) == 2
        assert not seen & cli_server.workers()
        seen |= cli_server.workers()
    told = crowd.stop()
    assert cli_server.stop() == 0
    assert told
    assert [each for each in cli_server.log() if each.get("status", 200) >= 400] == []
    assert [each for each in cli_server.log() if each["event"] not in EXPECTED] == []
    boards = cli_server.open_boards()
    board = boards.open("first")
    asked, fresh = check_board(board, told)
    assert len(told) == len(asked) == len(fresh)  # each one recorded, and once
    assert count_orphaned_uploads(board) == 0
    boards.close()


def test_workers_are_replaced_and_nobody_notices(cli_server):
    restart_under_load(cli_server, rolls=2)


@pytest.mark.slow
def test_workers_are_replaced_many_times_under_larger_files(cli_server):
    restart_under_load(cli_server, rolls=10, padding=3_000_000)


@pytest.mark.slow
def test_a_new_version_is_loaded_and_a_broken_one_is_not(address, tmp_path):
    code = tmp_path / "code"
    shutil.copytree(SOURCE, code, ignore=shutil.ignore_patterns("__pycache__"))
    with (
        CliServer(address, tmp_path, "--workers", "2", code=code) as cli_server,
        contextlib.ExitStack() as ends,
    ):
        cli_server.start()
        cli_server.wait_until_ready()
        line = ends.enter_context(contextlib.closing(connect(cli_server)))
        before = version_of(line)
        init = code / "ladderboard" / "_version.py"
        init.write_text('__version__ = "77.0"\n')
        cli_server.restart_workers()
        assert version_of(line) == before  # the old one has its last word on a connection it kept
        wait_until(lambda: version_of(line) == "77.0")
        # One that does not start changes nothing.
        app = code / "ladderboard" / "server" / "_app.py"
        app.write_text("raise SystemExit(3)\n")
        wait_until(lambda: len(cli_server.workers()) == 2)
        there = cli_server.workers()
        cli_server.signal(signal.SIGHUP)
        wait_until(lambda: cli_server.events("restart")[-1]["state"] == "given up")
        assert cli_server.workers() == there
        assert version_of(line) == "77.0"
        assert cli_server.stop() == 0


def version_of(line):
    line.request("GET", "/openapi.json")
    return json.loads(line.getresponse().read())["info"]["version"]


def test_a_worker_that_is_killed_is_replaced(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    first = cli_server.wait_for_workers()
    os.kill(min(first), signal.SIGKILL)
    wait_until(lambda: len(cli_server.workers()) == 2 and cli_server.workers() != first)
    (said,) = cli_server.events("worker")
    assert (said["state"], said["pid"], said["code"]) == ("ended", min(first), -signal.SIGKILL)
    assert cli_server.stop() == 0


@pytest.mark.slow
def test_a_parent_that_is_killed_leaves_nobody(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    left = cli_server.wait_for_workers()
    cli_server.signal(signal.SIGKILL)
    cli_server.wait()
    wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in left))


@pytest.mark.slow
def test_workers_that_do_not_start_are_tried_more_and_more_rarely(cli_server, postgres):
    cli_server.start()
    cli_server.wait_until_ready()
    first = cli_server.wait_for_workers()
    name = cli_server.database.rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    os.kill(min(first), signal.SIGKILL)
    wait_until(lambda: len(cli_server.events("worker")) >= 4)
    first, *waits = [
        each["wait"] for each in cli_server.events("worker") if each["state"] == "failed"
    ]
    assert waits[:2] == [2 * first, 4 * first]
    postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    line = connect(cli_server)
    with contextlib.closing(line):
        line.request("GET", "/healthz")
        assert line.getresponse().status == 200  # the other one was there all the time
    there = wait_until(lambda: len(cli_server.workers()) == 2 and cli_server.workers())
    cli_server.restart_workers()  # which begins when both answer
    wait_until(lambda: not there & cli_server.workers())
    assert cli_server.stop() == 0


def test_a_server_whose_workers_do_not_start_ends(address, tmp_path):
    code = tmp_path / "code"
    shutil.copytree(SOURCE, code, ignore=shutil.ignore_patterns("__pycache__"))
    app = code / "ladderboard" / "server" / "_app.py"
    broken = "import os\nassert '_LADDERBOARD_WORKER' not in os.environ\n"
    app.write_text(app.read_text() + broken)
    with CliServer(address, tmp_path, "--workers", "2", code=code) as cli_server:
        cli_server.start()
        cli_server.read_address()
        assert cli_server.wait() == 2
