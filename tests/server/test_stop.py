"""A stopped server finishes its requests; a new one on the same socket goes on."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from support.server.cli_server import (
    SOURCE,
    ClientCrowd,
    CliServer,
    connect,
    random_predictions,
    wait_until,
)
from support.server.live_server import make_folder
from support.server.stress_server import StressClient, check_board, empty_database

# Like systemd: the socket is descriptor 3, and the environment names its owner.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); "
    "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES='web'); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


SLOWER = pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)


@pytest.fixture
def cli_server(database, request, tmp_path):
    """A server on SQLite, or with two workers on PostgreSQL."""
    with empty_database(database, request, tmp_path) as address:
        options = ["--workers", "2"] if database == "postgres" else []
        with CliServer(address, tmp_path, *options) as server:
            names = [f"team {index}" for index in range(4)]
            server.create_board(make_folder(questions=4000, teams=4, per_team=1000), names)
            yield server


@contextlib.contextmanager
def half_upload(cli_server):
    """Send the first half of a submission; yield the connection and the other half."""
    body = random_predictions(1)
    head = (
        "POST /api/v1/boards/first/submissions HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {cli_server.tokens['first', 'team 0']}\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", cli_server.port), timeout=120) as connection:
        connection.sendall(head.encode() + body[:1000])
        metrics = StressClient(cli_server)
        wait_until(lambda: upload_in_progress(metrics, cli_server))
        metrics.close()
        yield connection, body[1000:]


def upload_in_progress(client, cli_server):
    """Return whether an upload is in progress; the metrics request itself is counted, too."""
    headers = {"Authorization": f"Bearer {cli_server.organiser}", "Connection": "close"}
    _, metrics = client.call("GET", "/metrics", **headers)
    client.close()
    name = "ladderboard_requests_under_way "
    (line,) = [text for text in metrics.decode().splitlines() if text.startswith(name)]
    return float(line.split()[-1]) > 1


def is_refused(cli_server):
    try:
        socket.create_connection(("127.0.0.1", cli_server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def read_reply(connection):
    """Read to the end; return the status, the headers and the body."""
    with connection.makefile("rb") as file:
        head, _, body = file.read().partition(b"\r\n\r\n")
    status_line, *header_lines = head.decode().lower().split("\r\n")
    return (
        int(status_line.split()[1]),
        dict(header.split(": ", 1) for header in header_lines),
        json.loads(body),
    )


def submission_count(cli_server):
    boards = cli_server.open_boards()
    with contextlib.closing(boards), boards.open("first").reading() as view:
        return view.chain_state().asked


@pytest.mark.parametrize("signal_name", ["SIGTERM", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_an_upload_in_progress_is_answered(cli_server, signal_name):
    cli_server.start()
    cli_server.wait_until_ready()
    with half_upload(cli_server) as (connection, second_half):
        pids = cli_server.process_tree()
        if signal_name == "SIGTERM":
            cli_server.signal(signal.SIGTERM)
        else:
            os.killpg(cli_server.pid, signal.SIGINT)  # as a terminal does
        wait_until(lambda: is_refused(cli_server))
        connection.sendall(second_half)
        status, headers, body = read_reply(connection)
    assert (status, headers["connection"]) == (201, "close")
    assert body["remaining"] == 999
    assert cli_server.wait() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert submission_count(cli_server) == 1


@pytest.mark.slow
@SLOWER
def test_a_second_signal_stops_the_server_at_once(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    with half_upload(cli_server) as (connection, _):
        pids = cli_server.process_tree()
        cli_server.signal(signal.SIGTERM)
        wait_until(lambda: is_refused(cli_server))
        cli_server.signal(signal.SIGTERM)
        assert cli_server.wait() == -signal.SIGTERM
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert submission_count(cli_server) == 0
    # Nothing was left half done.
    cli_server.start()
    cli_server.wait_until_ready()
    with half_upload(cli_server) as (connection, second_half):
        connection.sendall(second_half)
        wait_until(lambda: submission_count(cli_server) == 1)
    assert cli_server.stop() == 0


@pytest.mark.slow
def test_an_upload_that_takes_too_long_gets_503(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    with half_upload(cli_server) as (connection, _):
        cli_server.signal(signal.SIGTERM)
        status, headers, body = read_reply(connection)
    assert (status, body["code"], headers["retry-after"]) == (503, "busy", "5")
    assert cli_server.wait() == 0
    assert submission_count(cli_server) == 0


@SLOWER
def test_an_inherited_socket_outlives_the_server(cli_server):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        launch = [sys.executable, "-c", LAUNCH, str(listener.fileno())]
        port = listener.getsockname()[1]

        def start():
            cli_server.start(port=None, launcher=launch, pass_fds=[listener.fileno()])
            cli_server.read_address()
            assert cli_server.port == port

        start()
        crowd = ClientCrowd(cli_server, 4)
        for _ in range(2):
            requests_before = crowd.requests
            wait_until(
                lambda requests_before=requests_before: (
                    crowd.requests > requests_before + 20 or crowd.errors
                )
            )
            assert cli_server.stop() == 0
            start()
        replies = crowd.stop()
    assert cli_server.stop() == 0
    check_replies(cli_server, replies)


def check_replies(cli_server, replies):
    assert replies
    assert [entry for entry in cli_server.log() if entry.get("status", 200) >= 400] == []
    boards = cli_server.open_boards()
    with contextlib.closing(boards):
        submissions, fresh = check_board(boards.open("first"), replies)
    assert len(replies) == len(submissions) == len(fresh)


@SLOWER
def test_sighup_loads_the_next_version(cli_server, tmp_path):
    cli_server.options = ()  # on PostgreSQL, too
    cli_server.code = tmp_path / "code"
    shutil.copytree(SOURCE, cli_server.code, ignore=shutil.ignore_patterns("__pycache__"))
    cli_server.start()
    cli_server.wait_until_ready()
    crowd = ClientCrowd(cli_server, 4)
    version = cli_server.code / "ladderboard" / "_version.py"
    for number in range(2):
        requests_before = crowd.requests
        wait_until(
            lambda requests_before=requests_before: (
                crowd.requests > requests_before + 20 or crowd.errors
            )
        )
        version.write_text(f'__version__ = "77.{number:0{number + 1}d}"\n')
        cli_server.signal(signal.SIGHUP)
        cli_server.signal(signal.SIGHUP)  # twice does no harm
        cli_server.read_address()
        connection = connect(cli_server)
        with contextlib.closing(connection):
            connection.request("GET", "/openapi.json")
            served_version = json.loads(connection.getresponse().read())["info"]["version"]
        assert served_version == f"77.{number:0{number + 1}d}"
    replies = crowd.stop()
    assert cli_server.stop() == 0
    assert list(cli_server.events("warning")) == []  # of another server on the same file
    check_replies(cli_server, replies)


@SLOWER
def test_closing_the_terminal_stops_the_server(cli_server):
    master, slave = pty.openpty()
    cli_server.start(stdin=slave)
    os.close(slave)
    cli_server.wait_until_ready()
    os.close(master)
    cli_server.signal(signal.SIGHUP)
    cli_server.signal(signal.SIGHUP)  # from the kernel and from the shell
    assert cli_server.wait() == 0
    (stopping,) = cli_server.events("stopping")
    assert "SIGHUP, which a closed terminal sends" in stopping["said"]


@SLOWER
def test_a_shutdown_says_what_it_waits_for_and_a_second_signal_ends_it(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    with half_upload(cli_server):
        cli_server.signal(signal.SIGINT)
        (stopping,) = wait_until(lambda: cli_server.events("stopping"))
        assert re.search(r"^Waiting up to \d+ s for .*open requests?; ", stopping["said"])
        assert stopping["said"].endswith("Ctrl-C again stops at once.")
        pids = cli_server.process_tree()
        started = time.monotonic()
        cli_server.signal(signal.SIGINT)
        assert cli_server.wait() == -signal.SIGINT
        assert time.monotonic() - started < 10
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@SLOWER
def test_a_server_under_nohup_ignores_sighup(cli_server):
    cli_server.start(launcher=["nohup"])
    cli_server.wait_until_ready()
    cli_server.signal(signal.SIGHUP)
    time.sleep(1)
    assert StressClient(cli_server).call("GET", "/healthz", Connection="close")[0].status == 200
    assert list(cli_server.events("restart")) == list(cli_server.events("stopping")) == []
    assert cli_server.stop() == 0
