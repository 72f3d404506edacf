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

from support.server.live_server import make_folder

# What systemd does: the socket is at 3, and the environment says whose it is.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); "
    "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES='web'); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


SLOWER = pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)


@pytest.fixture(scope="session")
def shops(load):
    return load("_shop")


@pytest.fixture
def shop(shops, database, request, tmp_path):
    """A server on SQLite, or with two workers on PostgreSQL."""
    with shops.siege.database_of(database, request, tmp_path) as address:
        many = ["--workers", "2"] if database == "postgres" else []
        with shops.Shop(address, tmp_path, *many) as made:
            names = [f"team {at}" for at in range(4)]
            made.make(make_folder(questions=4000, teams=4, per_team=1000), names)
            yield made


@contextlib.contextmanager
def half_sent(shops, shop):
    """Send the first half of a submission; give the connection, and the other half."""
    body = shops.predictions(1)
    head = (
        "POST /api/v1/boards/first/submissions HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {shop.tokens['first', 'team 0']}\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", shop.port), timeout=120) as line:
        line.sendall(head.encode() + body[:1000])
        metrics = shops.siege.Client(shop)
        shops.until(lambda: under_way(metrics, shop))
        metrics.close()
        yield line, body[1000:]


def under_way(client, shop):
    """Tell whether somebody's body is on its way in; the one who asks is counted, too."""
    own = {"Authorization": f"Bearer {shop.organiser}", "Connection": "close"}
    _, said = client.call("GET", "/metrics", **own)
    client.close()
    name = "ladderboard_requests_under_way "
    (line,) = [each for each in said.decode().splitlines() if each.startswith(name)]
    return float(line.split()[-1]) > 1


def is_refused(shop):
    try:
        socket.create_connection(("127.0.0.1", shop.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def read_reply(line):
    """Read to the end; return the status, the headers and what was said."""
    with line.makefile("rb") as file:
        head, _, body = file.read().partition(b"\r\n\r\n")
    first, *rest = head.decode().lower().split("\r\n")
    return int(first.split()[1]), dict(each.split(": ", 1) for each in rest), json.loads(body)


def recorded(shop):
    boards = shop.open()
    with contextlib.closing(boards), boards.open("first").reading() as view:
        return view.at().asked


@pytest.mark.parametrize("sent", ["SIGTERM", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_an_upload_under_way_is_answered(shops, shop, sent):
    shop.start()
    shop.ready()
    with half_sent(shops, shop) as (line, rest):
        family = shop.family()
        if sent == "SIGTERM":
            shop.signal(signal.SIGTERM)
        else:
            os.killpg(shop.pid, signal.SIGINT)  # as a terminal does
        shops.until(lambda: is_refused(shop))
        line.sendall(rest)
        status, headers, said = read_reply(line)
    assert (status, headers["connection"]) == (201, "close")
    assert said["remaining"] == 999
    assert shop.wait() == 0
    assert not any(Path(f"/proc/{each}").exists() for each in family)
    assert recorded(shop) == 1


@pytest.mark.slow
@SLOWER
def test_a_second_signal_ends_it_at_once(shops, shop):
    shop.start()
    shop.ready()
    with half_sent(shops, shop) as (line, _):
        family = shop.family()
        shop.signal(signal.SIGTERM)
        shops.until(lambda: is_refused(shop))
        shop.signal(signal.SIGTERM)
        assert shop.wait() == -signal.SIGTERM
        with contextlib.suppress(ConnectionResetError):
            assert line.recv(1) == b""
    shops.until(lambda: not any(Path(f"/proc/{each}").exists() for each in family))
    assert recorded(shop) == 0
    # Nothing was half done.
    shop.start()
    shop.ready()
    with half_sent(shops, shop) as (line, rest):
        line.sendall(rest)
        shops.until(lambda: recorded(shop) == 1)
    assert shop.stop() == 0


@pytest.mark.slow
def test_an_upload_that_takes_too_long_is_told_so(shops, shop):
    shop.start()
    shop.ready()
    with half_sent(shops, shop) as (line, _):
        shop.signal(signal.SIGTERM)
        status, headers, said = read_reply(line)
    assert (status, said["code"], headers["retry-after"]) == (503, "busy", "5")
    assert shop.wait() == 0
    assert recorded(shop) == 0


@SLOWER
def test_a_socket_that_is_given_outlives_the_server(shops, shop):
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))
        given.listen(64)
        launch = [sys.executable, "-c", LAUNCH, str(given.fileno())]
        port = given.getsockname()[1]

        def start():
            shop.start(port=None, before=launch, pass_fds=[given.fileno()])
            shop.hear()
            assert shop.port == port

        start()
        crowd = shops.Crowd(shop, 4)
        for _ in range(2):
            asked = crowd.asked
            shops.until(lambda asked=asked: crowd.asked > asked + 20 or crowd.errors)
            assert shop.stop() == 0
            start()
        told = crowd.end()
    assert shop.stop() == 0
    check(shops, shop, told)


def check(shops, shop, told):
    assert told
    assert [each for each in shop.log() if each.get("status", 200) >= 400] == []
    boards = shop.open()
    with contextlib.closing(boards):
        asked, fresh = shops.siege.verify(boards.open("first"), told)
    assert len(told) == len(asked) == len(fresh)


@SLOWER
def test_one_process_becomes_the_next_version(shops, shop, tmp_path):
    shop.options = ()  # on PostgreSQL, too
    shop.code = tmp_path / "code"
    shutil.copytree(shops.SOURCE, shop.code, ignore=shutil.ignore_patterns("__pycache__"))
    shop.start()
    shop.ready()
    crowd = shops.Crowd(shop, 4)
    version = shop.code / "ladderboard" / "_version.py"
    for number in range(2):
        asked = crowd.asked
        shops.until(lambda asked=asked: crowd.asked > asked + 20 or crowd.errors)
        version.write_text(f'__version__ = "77.{number:0{number + 1}d}"\n')
        shop.signal(signal.SIGHUP)
        shop.signal(signal.SIGHUP)  # twice is no harm
        shop.hear()
        line = shops.line_to(shop)
        with contextlib.closing(line):
            line.request("GET", "/openapi.json")
            said = json.loads(line.getresponse().read())["info"]["version"]
        assert said == f"77.{number:0{number + 1}d}"
    told = crowd.end()
    assert shop.stop() == 0
    check(shops, shop, told)


@SLOWER
def test_a_terminal_that_is_closed_ends_it(shop):
    master, slave = pty.openpty()
    shop.start(stdin=slave)
    os.close(slave)
    shop.ready()
    os.close(master)
    shop.signal(signal.SIGHUP)
    assert shop.wait() == 0
