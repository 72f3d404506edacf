"""Metrics: summed over the worker processes, and what an operator watches."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest

from ladderboard._version import __version__
from ladderboard.server._sandbox._pool import ParserPool
from support.postgres import PASSWORD

HEALTH = 'ladderboard_requests_total{method="GET",route="/healthz",status="200"}'
TOOK = 'ladderboard_request_seconds_count{method="GET",route="/healthz"}'


def read_series(text):
    """Return all series of a scrape, by name and labels."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


class TwoWorkerServer:
    """A server of two worker processes, requested on new connections."""

    def __init__(self, process, errors, config):
        self.process, self.errors, self.config = process, errors, config
        output = ""
        while "lb_organiser_" not in output:
            output += process.stdout.readline()
        self.url = re.search(r"http://[^\s;]+", output)[0]
        self.token = re.search(r"lb_organiser_\S+", output)[0]

    def get(self, path):
        """Send a request on a new connection, so that either worker may answer."""
        return httpx.get(f"{self.url}{path}", headers=self.headers, timeout=30)

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def scrape(self):
        response = self.get("/metrics")
        assert response.status_code == 200
        assert abs(parsedate_to_datetime(response.headers["date"]).timestamp() - time.time()) < 5
        return read_series(response.text)

    def scrape_until(self, name, expected, *, lowest=0.0):
        """Scrape until a series has a value; it never decreases and never exceeds it."""
        for _ in range(200):
            value = self.scrape().get(name, 0.0)
            assert lowest <= value <= expected
            if value == expected:
                return
            lowest = value
            time.sleep(0.05)
        raise AssertionError((name, value, expected))

    def worker_pids(self):
        """Return the worker processes."""
        pid = self.process.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(part) for part in text.split()]

    def lines(self):
        """Return the entries of the log; a line that is not JSON fails the test."""
        return [json.loads(line) for line in self.errors.read_text().splitlines()]


@pytest.fixture(scope="module")
def two_worker_server(postgres, tmp_path_factory):
    name, folder = f"run_{secrets.token_hex(6)}", tmp_path_factory.mktemp("served")
    postgres.run(f"CREATE DATABASE {name}")
    url = postgres.url().replace("/postgres", f"/{name}")
    errors, config = folder / "errors", folder / "ladderboard.toml"
    config.write_text("[serve]\nthreads = 4\n")
    command = [sys.executable, "-m", "ladderboard", "serve", "--database", url]
    with errors.open("w") as file:
        process = subprocess.Popen(
            [*command, "--workers", "2", "--port", "0", "--config", config],
            stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True,
            env={**os.environ, "LADDERBOARD_SERVE_PROT": "1"},
        )  # fmt: skip
    server = TwoWorkerServer(process, errors, config)
    while True:
        try:
            if server.scrape().get("ladderboard_workers", 2) == 2:
                break
        except httpx.TransportError:
            time.sleep(0.05)
    yield server
    process.terminate()
    process.communicate(timeout=60)
    assert server.lines()[-1]["event"] == "stop"


def test_counters_are_summed_over_workers_and_outlive_them(two_worker_server):
    with ThreadPoolExecutor(8) as pool:  # so that both workers answer some
        assert {
            response.status_code for response in pool.map(two_worker_server.get, ["/healthz"] * 40)
        } == {200}
    for _ in range(6):
        two_worker_server.scrape_until(HEALTH, 40)
        two_worker_server.scrape_until(TOOK, 40)
    values_before = two_worker_server.scrape()
    for victim in two_worker_server.worker_pids():
        os.kill(victim, signal.SIGKILL)
    two_worker_server.scrape_until("ladderboard_workers_restarted_total", 2)
    two_worker_server.scrape_until(HEALTH, 40, lowest=40)
    for _ in range(10):
        two_worker_server.get("/healthz")
    two_worker_server.scrape_until(HEALTH, 50, lowest=40)
    two_worker_server.scrape_until("ladderboard_workers", 2)
    values_after = two_worker_server.scrape()
    counters = [name for name in values_before if re.search("_total|_bucket|_sum|_count", name)]
    assert len(counters) > 20
    assert all(values_after[counter] >= values_before[counter] for counter in counters)


def test_every_line_of_the_log_is_json(two_worker_server):
    started = next(line for line in two_worker_server.lines() if line["event"] == "start")
    expected = {
        "database": "postgresql",
        "workers": 2,
        "listening": two_worker_server.url,
        "version": __version__,
    }
    assert expected.items() <= started.items()
    with socket.create_connection(
        ("127.0.0.1", int(two_worker_server.url.rpartition(":")[2]))
    ) as connection:
        connection.sendall(b"nothing that a server understands\r\n\r\n")
        assert b"400" in connection.recv(1000)
    two_worker_server.config.write_text("[serve]\nthreads = 'many'\n")
    two_worker_server.process.send_signal(signal.SIGHUP)  # the new workers cannot start
    deadline = time.monotonic() + 60
    while not any(line.get("state") == "given up" for line in two_worker_server.lines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    two_worker_server.config.write_text("[serve]\nthreads = 4\n")
    assert two_worker_server.get("/healthz").status_code == 200
    messages = " ".join(line.get("said", "") for line in two_worker_server.lines())
    assert "LADDERBOARD_SERVE_PROT" in messages
    assert "LADDERBOARD_SERVE_PORT?" in messages  # the suggestion
    assert "threads" in messages
    assert PASSWORD not in two_worker_server.errors.read_text()


@pytest.mark.parametrize("database", ["sqlite"])
def test_free_disk_space_and_restarted_parsers_are_reported(make_server):
    parsers = ParserPool(1)
    live_server = make_server(parsers=parsers)

    def scrape():
        return read_series(live_server.call("GET", "/metrics", live_server.organiser).text)

    metrics = scrape()
    disk = os.statvfs(live_server.boards.storage.path.parent)
    free = metrics['ladderboard_disk_free_bytes{of="database"}']
    assert free == pytest.approx(disk.f_bavail * disk.f_frsize, rel=0.2)
    assert metrics['ladderboard_disk_free_bytes{of="spool"}'] > 0
    assert metrics["ladderboard_parsers_restarted_total"] == 0
    (parser,) = parsers._parsers
    os.kill(parser.pid, signal.SIGKILL)
    while scrape()["ladderboard_parsers_restarted_total"] == 0:
        time.sleep(0.02)
    assert scrape()["ladderboard_parsers_restarted_total"] == 1
