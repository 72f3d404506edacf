"""Metrics: summed over the processes that serve, and what an operator watches."""

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


def values(text):
    """Return all series of a scrape, by name and labels."""
    lines = [each for each in text.splitlines() if not each.startswith("#")]
    return {name: float(value) for name, _, value in (each.rpartition(" ") for each in lines)}


class Served:
    """A server of two worker processes, each asked on new connections."""

    def __init__(self, process, errors, config):
        self.process, self.errors, self.config = process, errors, config
        said = ""
        while "lb_organiser_" not in said:
            said += process.stdout.readline()
        self.url = re.search(r"http://[^\s;]+", said)[0]
        self.token = re.search(r"lb_organiser_\S+", said)[0]

    def get(self, path):
        """Ask on a new connection, so that either worker may answer."""
        return httpx.get(f"{self.url}{path}", headers=self.headers, timeout=30)

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def scrape(self):
        said = self.get("/metrics")
        assert said.status_code == 200
        assert abs(parsedate_to_datetime(said.headers["date"]).timestamp() - time.time()) < 5
        return values(said.text)

    def scrape_until(self, name, wanted, *, least=0.0):
        """Scrape until a series has a value; it never goes down, and never beyond."""
        for _ in range(200):
            found = self.scrape().get(name, 0.0)
            assert least <= found <= wanted
            if found == wanted:
                return
            least = found
            time.sleep(0.05)
        raise AssertionError((name, found, wanted))

    def workers(self):
        """Return the worker processes."""
        own = self.process.pid
        text = Path(f"/proc/{own}/task/{own}/children").read_text()
        return [int(each) for each in text.split()]

    def lines(self):
        """Return what is in the log; whatever is no JSON fails the test."""
        return [json.loads(each) for each in self.errors.read_text().splitlines()]


@pytest.fixture(scope="module")
def served(postgres, tmp_path_factory):
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
    made = Served(process, errors, config)
    while True:
        try:
            if made.scrape().get("ladderboard_workers", 2) == 2:
                break
        except httpx.TransportError:
            time.sleep(0.05)
    yield made
    process.terminate()
    process.communicate(timeout=60)
    assert made.lines()[-1]["event"] == "stop"


def test_counters_are_summed_over_workers_and_outlive_them(served):
    with ThreadPoolExecutor(8) as pool:  # so that both workers answer some
        assert {each.status_code for each in pool.map(served.get, ["/healthz"] * 40)} == {200}
    for _ in range(6):
        served.scrape_until(HEALTH, 40)
        served.scrape_until(TOOK, 40)
    before = served.scrape()
    for victim in served.workers():
        os.kill(victim, signal.SIGKILL)
    served.scrape_until("ladderboard_workers_restarted_total", 2)
    served.scrape_until(HEALTH, 40, least=40)
    for _ in range(10):
        served.get("/healthz")
    served.scrape_until(HEALTH, 50, least=40)
    served.scrape_until("ladderboard_workers", 2)
    after = served.scrape()
    counters = [each for each in before if re.search("_total|_bucket|_sum|_count", each)]
    assert len(counters) > 20
    assert all(after[each] >= before[each] for each in counters)


def test_every_line_of_the_log_is_json(served):
    started = next(each for each in served.lines() if each["event"] == "start")
    told = {"database": "postgresql", "workers": 2, "listening": served.url, "version": __version__}
    assert told.items() <= started.items()
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2]))) as line:
        line.sendall(b"nothing that a server understands\r\n\r\n")
        assert b"400" in line.recv(1000)
    served.config.write_text("[serve]\nthreads = 'many'\n")
    served.process.send_signal(signal.SIGHUP)  # the new workers cannot start
    deadline = time.monotonic() + 60
    while not any(line.get("state") == "given up" for line in served.lines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    served.config.write_text("[serve]\nthreads = 4\n")
    assert served.get("/healthz").status_code == 200
    said = " ".join(each.get("said", "") for each in served.lines())
    assert "LADDERBOARD_SERVE_PROT is set and means nothing" in said
    assert "threads" in said
    assert PASSWORD not in served.errors.read_text()


@pytest.mark.parametrize("database", ["sqlite"])
def test_free_disk_is_told_and_a_parser_that_died_is_counted(make_server):
    parsers = ParserPool(1)
    live_server = make_server(parsers=parsers)

    def scrape():
        return values(live_server.call("GET", "/metrics", live_server.organiser).text)

    found = scrape()
    disk = os.statvfs(live_server.boards.storage.path.parent)
    free = found['ladderboard_disk_free_bytes{of="database"}']
    assert free == pytest.approx(disk.f_bavail * disk.f_frsize, rel=0.2)
    assert found['ladderboard_disk_free_bytes{of="spool"}'] > 0
    assert found["ladderboard_parsers_restarted_total"] == 0
    (parser,) = parsers._parsers
    os.kill(parser.pid, signal.SIGKILL)
    while scrape()["ladderboard_parsers_restarted_total"] == 0:
        time.sleep(0.02)
    assert scrape()["ladderboard_parsers_restarted_total"] == 1
