"""A server that is stopped ends what it began; one that is started anew on its socket goes on."""

import contextlib
import json
import os
import pty
import shutil
import signal
import socket
import sys
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

# What systemd does: the socket is at 3, and the environment says whose it is.
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
        many = ["--workers", "2"] if database == "postgres" else []
        with CliServer(address, tmp_path, *many) as made:
            names = [f"team {at}" for at in range(4)]
            made.create_board(make_folder(questions=4000, teams=4, per_team=1000), names)
            yield made


@contextlib.contextmanager
def half_sent(cli_server):
    """Send the first half of a submission; give the connection, and the other half."""
    body = random_predictions(1)
    head = (
        "POST /api/v1/boards/first/submissions HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {cli_server.tokens['first', 'team 0']}\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", cli_server.port), timeout=120) as line:
        line.sendall(head.encode() + body[:1000])
        metrics = StressClient(cli_server)
        wait_until(lambda: under_way(metrics, cli_server))
        metrics.close()
        yield line, body[1000:]


def under_way(client, cli_server):
    """Tell whether somebody's body is on its way in; the one who asks is counted, too."""
    own = {"Authorization": f"Bearer {cli_server.organiser}", "Connection": "close"}
    _, said = client.call("GET", "/metrics", **own)
    client.close()
    name = "ladderboard_requests_under_way "
    (line,) = [each for each in said.decode().splitlines() if each.startswith(name)]
    return float(line.split()[-1]) > 1


def is_refused(cli_server):
    try:
        socket.create_connection(("127.0.0.1", cli_server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def read_reply(line):
    """Read to the end; return the status, the headers and what was said."""
    with line.makefile("rb") as file:
        head, _, body = file.read().partition(b"\r\n\r\n")
    first, *rest = head.decode().lower().split("\r\n")
    return int(first.split()[1]), dict(each.split(": ", 1) for each in rest), json.loads(body)


def recorded(cli_server):
    boards = cli_server.open_boards()
    with contextlib.closing(boards), boards.open("first").reading() as view:
        return view.chain_state().asked


@pytest.mark.parametrize("sent", ["SIGTERM", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_an_upload_under_way_is_answered(cli_server, sent):
    cli_server.start()
    cli_server.wait_until_ready()
    with half_sent(cli_server) as (line, rest):
        pids = cli_server.process_tree()
        if sent == "SIGTERM":
            cli_server.signal(signal.SIGTERM)
        else:
            os.killpg(cli_server.pid, signal.SIGINT)  # as a terminal does
        wait_until(lambda: is_refused(cli_server))
        line.sendall(rest)
        status, headers, said = read_reply(line)
    assert (status, headers["connection"]) == (201, "close")
    assert said["remaining"] == 999
    assert cli_server.wait() == 0
    assert not any(Path(f"/proc/{each}").exists() for each in pids)
    assert recorded(cli_server) == 1


@pytest.mark.slow
@SLOWER
def test_a_second_signal_ends_it_at_once(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    with half_sent(cli_server) as (line, _):
        pids = cli_server.process_tree()
        cli_server.signal(signal.SIGTERM)
        wait_until(lambda: is_refused(cli_server))
        cli_server.signal(signal.SIGTERM)
        assert cli_server.wait() == -signal.SIGTERM
        with contextlib.suppress(ConnectionResetError):
            assert line.recv(1) == b""
    wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in pids))
    assert recorded(cli_server) == 0
    # Nothing was half done.
    cli_server.start()
    cli_server.wait_until_ready()
    with half_sent(cli_server) as (line, rest):
        line.sendall(rest)
        wait_until(lambda: recorded(cli_server) == 1)
    assert cli_server.stop() == 0


@pytest.mark.slow
def test_an_upload_that_takes_too_long_is_told_so(cli_server):
    cli_server.start()
    cli_server.wait_until_ready()
    with half_sent(cli_server) as (line, _):
        cli_server.signal(signal.SIGTERM)
        status, headers, said = read_reply(line)
    assert (status, said["code"], headers["retry-after"]) == (503, "busy", "5")
    assert cli_server.wait() == 0
    assert recorded(cli_server) == 0


@SLOWER
def test_a_socket_that_is_given_outlives_the_server(cli_server):
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))
        given.listen(64)
        launch = [sys.executable, "-c", LAUNCH, str(given.fileno())]
        port = given.getsockname()[1]

        def start():
            cli_server.start(port=None, launcher=launch, pass_fds=[given.fileno()])
            cli_server.read_address()
            assert cli_server.port == port

        start()
        crowd = ClientCrowd(cli_server, 4)
        for _ in range(2):
            asked = crowd.requests
            wait_until(lambda asked=asked: crowd.requests > asked + 20 or crowd.errors)
            assert cli_server.stop() == 0
            start()
        told = crowd.stop()
    assert cli_server.stop() == 0
    check(cli_server, told)


def check(cli_server, told):
    assert told
    assert [each for each in cli_server.log() if each.get("status", 200) >= 400] == []
    boards = cli_server.open_boards()
    with contextlib.closing(boards):
        asked, fresh = check_board(boards.open("first"), told)
    assert len(told) == len(asked) == len(fresh)


@SLOWER
def test_one_process_becomes_the_next_version(cli_server, tmp_path):
    cli_server.options = ()  # on PostgreSQL, too
    cli_server.code = tmp_path / "code"
    shutil.copytree(SOURCE, cli_server.code, ignore=shutil.ignore_patterns("__pycache__"))
    cli_server.start()
    cli_server.wait_until_ready()
    crowd = ClientCrowd(cli_server, 4)
    version = cli_server.code / "ladderboard" / "_version.py"
    for number in range(2):
        asked = crowd.requests
        wait_until(lambda asked=asked: crowd.requests > asked + 20 or crowd.errors)
        version.write_text(f'__version__ = "77.{number:0{number + 1}d}"\n')
        cli_server.signal(signal.SIGHUP)
        cli_server.signal(signal.SIGHUP)  # twice is no harm
        cli_server.read_address()
        line = connect(cli_server)
        with contextlib.closing(line):
            line.request("GET", "/openapi.json")
            said = json.loads(line.getresponse().read())["info"]["version"]
        assert said == f"77.{number:0{number + 1}d}"
    told = crowd.stop()
    assert cli_server.stop() == 0
    check(cli_server, told)


@SLOWER
def test_a_terminal_that_is_closed_ends_it(cli_server):
    master, slave = pty.openpty()
    cli_server.start(stdin=slave)
    os.close(slave)
    cli_server.wait_until_ready()
    os.close(master)
    cli_server.signal(signal.SIGHUP)
    assert cli_server.wait() == 0
