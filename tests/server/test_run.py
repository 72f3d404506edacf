"""Serving as a process: what it prints, how it ends, and that a restart keeps everything."""

import json
import os
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
from ladderboard.server import Settings, serve
from support.server import SERVE_FIRST_BOARD
from support.server.live_server import make_predictions


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


@pytest.mark.parametrize("database", ["sqlite"])
def test_a_second_server_on_one_file_is_warned_about(start, url):
    def warnings_of(process):
        _, errors = process.communicate(timeout=60)
        lines = [json.loads(line) for line in errors.splitlines()]
        return [line["said"] for line in lines if line["event"] == "warning"]

    (first, *_), (second, *_) = start(), start()
    second.send_signal(signal.SIGTERM)
    (warning,) = warnings_of(second)
    assert warning.startswith("Another server uses boards.db. No data are at risk, but each counts")
    first.kill()  # its lock ends with it
    assert warnings_of(first) == []
    last, address, *_ = start()
    wait_for(address)
    last.send_signal(signal.SIGTERM)
    assert warnings_of(last) == []
    assert not Path(f"{url}.serving").exists()


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
            serve(Settings(database="boards.db", workers=2))
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


def test_addresses_of_databases(tmp_path, database):
    assert is_shared("postgresql+psycopg://a@b/c")
    assert not is_shared("sqlite:///boards.db")
    boards = open_boards(f"sqlite:///{tmp_path}/boards.db", create=True)
    boards.close()
    open_boards(tmp_path / "boards.db").close()
    for wrong in ("mysql://a/b", "", ":memory:", "sqlite:///"):
        with pytest.raises(InvalidSetting, match="database must be"):
            open_boards(wrong, create=True)
    assert "secret" not in repr(Settings(database="postgresql://me:secret@there/boards"))
