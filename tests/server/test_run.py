"""Serving as a process: what it prints, how it ends, and that a restart keeps everything."""

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
    """The address of an empty database."""
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
    """Return a function that starts a server; kill what still runs after the test."""
    processes = []

    def start_server(workers=1):
        command = [sys.executable, SERVE_FIRST_BOARD, url, str(workers)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        processes.append(process)
        lines = []
        while not lines or "http://" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        return (process, *lines[-1].split())

    yield start_server
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(url):
    for _ in range(600):
        try:
            return httpx.get(f"{url}/healthz")
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError


def children_of(pid):
    folder = Path("/proc")
    children = []
    for path in folder.glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == pid:
            children.append(int(path.parent.name))
    return children


def wait_until_gone(pids):
    """Wait a moment for processes to end, and return whether they have."""
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


def test_a_server_stops_cleanly_and_starts_again(start, database):
    stop = signal.SIGINT if database == "sqlite" else signal.SIGTERM
    server, url, token = start()
    assert token.startswith("lb_organiser_")
    wait_for(url)
    team = httpx.post(f"{url}/api/v1/boards/first/teams", json={"name": "Alpha"}).json()["token"]
    authorization = {"Authorization": f"Bearer {team}"}
    headers = {**authorization, "Content-Type": "text/csv"}
    submissions_url = f"{url}/api/v1/boards/first/submissions"
    body = httpx.post(
        submissions_url, content=make_predictions(30), headers=headers, timeout=60
    ).json()
    parsers = children_of(server.pid)
    server.send_signal(stop)
    out, _ = server.communicate(timeout=60)
    assert (server.returncode, out) == (0, "stopped\n")
    assert parsers
    assert wait_until_gone(parsers)
    second_server, *output = start()
    url = output.pop(0)
    assert output == []  # the token is printed only once
    wait_for(url)
    submissions_url = f"{url}/api/v1/boards/first/submissions"
    response = httpx.post(
        submissions_url, content=make_predictions(30), headers=headers, timeout=60
    )
    assert (response.status_code, response.json()["id"]) == (200, body["id"])
    second_server.send_signal(stop)
    second_server.communicate(timeout=60)
    assert second_server.returncode == 0


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
    headers = {"Authorization": f"Bearer {team}", "Content-Type": "text/csv"}
    submissions_url = f"{url}/api/v1/boards/first/submissions"
    for wrong in (30, 20, 10):
        assert (
            httpx.post(
                submissions_url, content=make_predictions(wrong), headers=headers, timeout=60
            ).status_code
            == 201
        )
    workers = children_of(server.pid)
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    assert server.returncode == 0
    assert wait_until_gone(workers)


class AttackClient:
    """An organiser who runs simulated attacks through whichever process answers."""

    answering_pid = None
    """The process that answered last, if ``process_of`` is given."""

    def __init__(self, url, token, process_of=None):
        self.process_of = process_of
        self.url, self.attack_url = url, f"{url}/boards/first/attack"
        self.cookies = httpx.Cookies()
        self.post("/session", self.get(f"{url}/login"), token=token)

    def call(self, method, address, **options):
        """Send a request on a new connection, so that any process may get it."""
        with httpx.Client(cookies=self.cookies, timeout=60) as client:
            response = client.request(method, address, **options)
            self.cookies = client.cookies
            if self.process_of is not None:
                self.answering_pid = self.process_of(_port_of(response))
            return response

    def get(self, address):
        return self.call("GET", address)

    def post(self, path, page, **data):
        csrf = re.search(r'name="csrf" value="([^"]+)"', page.text).group(1)
        return self.call("POST", f"{self.url}{path}", data={"csrf": csrf, **data})

    def begin(self):
        return self.post("/boards/first/attack", self.get(self.attack_url))

    def state(self):
        """Return the process that answered, and the state of the job."""
        response = self.get(f"{self.attack_url}/progress")
        return self.answering_pid, response.json()["state"]


def _port_of(response):
    """Return the local port of the connection that a response came on."""
    line = response.extensions["network_stream"].get_extra_info("socket")
    return line.getsockname()[1]


def wait_for_attack_workers(pids):
    """Return the attack workers among the children of these processes, once they run."""
    for _ in range(600):
        children = [child for pid in pids for child in children_of(pid)]
        workers = [pid for pid in children if b"_attack_worker" in command_line(pid)]
        if workers:
            return workers
        time.sleep(0.05)
    raise AssertionError


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


LARGE = {"questions": 2000}


def test_attack_jobs_end_when_the_server_is_killed(start):
    server, url, token = start()
    wait_for(url)
    organiser = AttackClient(url, token)
    allow_many_questions(url, token)
    assert organiser.begin().status_code == 303
    attack_workers = wait_for_attack_workers([server.pid])
    os.kill(server.pid, signal.SIGKILL)
    assert wait_until_gone(attack_workers)


def allow_many_questions(url, token):
    """Allow so many questions that attack jobs run until they are ended."""
    rules_url, headers = f"{url}/api/v1/boards/first/rules", {"Authorization": f"Bearer {token}"}
    assert httpx.patch(rules_url, json=LARGE, headers=headers, timeout=60).status_code == 200


@pytest.mark.slow
def test_several_processes_share_one_attack_job(start, database):
    if database == "sqlite":
        return
    server, url, token = start(workers=2)
    wait_for(url)
    organiser = AttackClient(url, token, lambda port: server_process(port, children_of(server.pid)))
    allow_many_questions(url, token)
    assert organiser.begin().status_code == 303
    states = set()
    while len({pid for pid, _ in states}) < 2:
        states.add(organiser.state())
    assert {state for _, state in states} == {"running"}
    assert {organiser.begin().status_code for _ in range(6)} == {409}
    attack_workers = wait_for_attack_workers(children_of(server.pid))
    assert len(attack_workers) == 1
    page = organiser.get(organiser.attack_url)
    assert organiser.post("/boards/first/attack/cancel", page).status_code == 303
    assert wait_until_gone(attack_workers)
    states = set()
    while len({pid for pid, _ in states}) < 2:
        states.add(organiser.state())
    assert {state for _, state in states} == {"cancelled"}
    assert organiser.begin().status_code == 303
    attack_workers = wait_for_attack_workers(children_of(server.pid))
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    assert server.returncode == 0
    assert wait_until_gone(attack_workers)


def test_addresses_of_databases(tmp_path, database):
    assert is_shared("postgresql+psycopg://a@b/c")
    assert not is_shared("sqlite:///boards.db")
    boards = open_boards(f"sqlite:///{tmp_path}/boards.db", create=True)
    boards.close()
    open_boards(tmp_path / "boards.db").close()
    for wrong in ("mysql://a/b", "", ":memory:", "sqlite:///"):
        with pytest.raises(InvalidSetting, match="database must be"):
            open_boards(wrong, create=True)
    assert "secret" not in repr(ServerConfig(database="postgresql://me:secret@there/boards"))
