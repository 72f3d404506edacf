"""ServerConfig as a process: what it prints, how it ends, and that everything is there again."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from ladderboard.board import is_shared, open_boards
from ladderboard.errors import InvalidSetting
from ladderboard.server import ServerConfig
from support.server import SERVE_FIRST_BOARD
from support.server.live_server import make_predictions
from support.server.stress_server import server_process


@pytest.fixture
def url(database, tmp_path, request):
    """Give the address of an empty database."""
    if database == "sqlite":
        return str(tmp_path / "boards.db")
    server = request.getfixturevalue("postgres")
    name = f"run_{secrets.token_hex(6)}"
    server.run(f"CREATE DATABASE {name}")
    return (
        server.url().replace("/postgres", f"/{name}").replace("postgresql:", "postgresql+psycopg:")
    )


@pytest.fixture
def start(url):
    """Start servers, and end what is left of them."""
    left = []

    def begin(workers=1):
        command = [sys.executable, SERVE_FIRST_BOARD, url, str(workers)]
        done = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        left.append(done)
        lines = []
        while not lines or "http://" not in lines[-1]:
            lines.append(done.stdout.readline())
            assert lines[-1], done.stderr.read()
        return (done, *lines[-1].split())

    yield begin
    for each in left:
        if each.poll() is None:
            os.killpg(each.pid, signal.SIGKILL)
        each.communicate()


def wait_for(url):
    for _ in range(600):
        try:
            return httpx.get(f"{url}/healthz")
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError


def children_of(pid):
    folder = Path("/proc")
    found = []
    for each in folder.glob("[0-9]*/stat"):
        try:
            parent = int(each.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == pid:
            found.append(int(each.parent.name))
    return found


def gone(pids):
    """Tell whether processes are no more, given a moment."""
    for _ in range(200):
        if not any(Path(f"/proc/{each}").exists() for each in pids):
            return True
        time.sleep(0.05)
    return False


def test_a_server_ends_cleanly_and_begins_again(start, database):
    stop = signal.SIGINT if database == "sqlite" else signal.SIGTERM
    server, url, token = start()
    assert token.startswith("lb_organiser_")
    wait_for(url)
    team = httpx.post(f"{url}/api/v1/boards/first/teams", json={"name": "Alpha"}).json()["token"]
    mine = {"Authorization": f"Bearer {team}"}
    csv = {**mine, "Content-Type": "text/csv"}
    place = f"{url}/api/v1/boards/first/submissions"
    first = httpx.post(place, content=make_predictions(30), headers=csv, timeout=60).json()
    parsers = children_of(server.pid)
    server.send_signal(stop)
    out, _ = server.communicate(timeout=60)
    assert (server.returncode, out) == (0, "stopped\n")
    assert parsers
    assert gone(parsers)
    again, *told = start()
    url = told.pop(0)
    assert told == []  # the token was told once
    wait_for(url)
    place = f"{url}/api/v1/boards/first/submissions"
    said = httpx.post(place, content=make_predictions(30), headers=csv, timeout=60)
    assert (said.status_code, said.json()["id"]) == (200, first["id"])
    again.send_signal(stop)
    again.communicate(timeout=60)
    assert again.returncode == 0


def test_several_processes_serve_one_postgres(start, database):
    if database == "sqlite":
        with pytest.raises(InvalidSetting, match="workers must be 1 on SQLite"):
            ServerConfig(database="boards.db", workers=2)
        return
    server, url, _ = start(workers=2)
    wait_for(url)
    for _ in range(200):
        if len(children_of(server.pid)) >= 2:
            break
        time.sleep(0.05)
    team = httpx.post(f"{url}/api/v1/boards/first/teams", json={"name": "Alpha"}).json()["token"]
    csv = {"Authorization": f"Bearer {team}", "Content-Type": "text/csv"}
    place = f"{url}/api/v1/boards/first/submissions"
    for wrong in (30, 20, 10):
        assert (
            httpx.post(place, content=make_predictions(wrong), headers=csv, timeout=60).status_code
            == 201
        )
    workers = children_of(server.pid)
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    assert server.returncode == 0
    assert gone(workers)


class Organiser:
    """Somebody who plays games against the board, through whichever process answers."""

    answered = None
    """The process that answered last, where ``process_of`` can tell."""

    def __init__(self, url, token, process_of=None):
        self.process_of = process_of
        self.url, self.place = url, f"{url}/boards/first/attack"
        self.cookies = httpx.Cookies()
        self.post("/session", self.see(f"{url}/login"), token=token)

    def call(self, method, place, **more):
        """Ask on a connection of its own, so that any of the processes may get it."""
        with httpx.Client(cookies=self.cookies, timeout=60) as client:
            said = client.request(method, place, **more)
            self.cookies = client.cookies
            if self.process_of is not None:
                self.answered = self.process_of(_port_of(said))
            return said

    def see(self, place):
        return self.call("GET", place)

    def post(self, place, page, **data):
        word = re.search(r'name="csrf" value="([^"]+)"', page.text).group(1)
        return self.call("POST", f"{self.url}{place}", data={"csrf": word, **data})

    def begin(self):
        return self.post("/boards/first/attack", self.see(self.place))

    def state(self):
        """Return which process answered, and how the games stand."""
        said = self.see(f"{self.place}/progress")
        return self.answered, said.json()["state"]


def _port_of(said):
    """Return the port at this end of the connection that an answer came on."""
    line = said.extensions["network_stream"].get_extra_info("socket")
    return line.getsockname()[1]


def players_of(pids):
    """Return the processes that play for some of these, once their own program runs."""
    for _ in range(600):
        found = [child for each in pids for child in children_of(each)]
        playing = [each for each in found if b"_attack_worker" in told(each)]
        if playing:
            return playing
        time.sleep(0.05)
    raise AssertionError


def told(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


LARGE = {"questions": 2000}


def test_games_end_when_the_server_is_killed(start):
    server, url, token = start()
    wait_for(url)
    organiser = Organiser(url, token)
    amend(url, token)
    assert organiser.begin().status_code == 303
    playing = players_of([server.pid])
    os.kill(server.pid, signal.SIGKILL)
    assert gone(playing)


def amend(url, token):
    """Allow so many questions that games go on until they are ended."""
    place, own = f"{url}/api/v1/boards/first/rules", {"Authorization": f"Bearer {token}"}
    assert httpx.patch(place, json=LARGE, headers=own, timeout=60).status_code == 200


@pytest.mark.slow
def test_several_processes_know_of_one_game(start, database):
    if database == "sqlite":
        return
    server, url, token = start(workers=2)
    wait_for(url)
    organiser = Organiser(url, token, lambda port: server_process(port, children_of(server.pid)))
    amend(url, token)
    assert organiser.begin().status_code == 303
    said = set()
    while len({who for who, _ in said}) < 2:
        said.add(organiser.state())
    assert {state for _, state in said} == {"running"}
    assert {organiser.begin().status_code for _ in range(6)} == {409}
    playing = players_of(children_of(server.pid))
    assert len(playing) == 1
    page = organiser.see(organiser.place)
    assert organiser.post("/boards/first/attack/cancel", page).status_code == 303
    assert gone(playing)
    said = set()
    while len({who for who, _ in said}) < 2:
        said.add(organiser.state())
    assert {state for _, state in said} == {"cancelled"}
    assert organiser.begin().status_code == 303
    playing = players_of(children_of(server.pid))
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    assert server.returncode == 0
    assert gone(playing)


def test_addresses_of_databases(tmp_path, database):
    assert is_shared("postgresql+psycopg://a@b/c")
    assert not is_shared("sqlite:///boards.db")
    made = open_boards(f"sqlite:///{tmp_path}/boards.db", create=True)
    made.close()
    open_boards(tmp_path / "boards.db").close()
    for wrong in ("mysql://a/b", "", ":memory:", "sqlite:///"):
        with pytest.raises(InvalidSetting, match="database must be"):
            open_boards(wrong, create=True)
    assert "secret" not in repr(ServerConfig(database="postgresql://me:secret@there/boards"))
