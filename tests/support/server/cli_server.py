"""`ladderboard serve` as a process, and a crowd of clients that never retry."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from support.server.stress_server import StressClient, StressServer, server_process, start_clients

SOURCE = Path(__file__).parents[3] / "src"


class CliServer(StressServer):
    """A server started with `ladderboard serve`; ``code`` is the folder of the package."""

    organiser = None

    def __init__(self, database, folder, *options, code=SOURCE):
        super().__init__(database, folder)
        self.options, self.code = options, code

    def command(self):
        return [sys.executable, "-m", "ladderboard", "serve", "--json", *self.options]

    def start(self, *, port=0, launcher=(), **options):
        """Start the server; ``launcher`` comes before the command, ``options`` go to Popen."""
        command = [*launcher, *self.command()]
        command += ["--port", str(port)] if port is not None else []
        environment = {**os.environ, "PYTHONPATH": str(self.code)}
        environment["LADDERBOARD_DATABASE"] = self.database
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=environment,
                start_new_session=True, **options,
            )  # fmt: skip
        return self

    @property
    def pid(self):
        return self._process.pid

    def read_address(self):
        """Wait for the line that is printed when the server listens; set port and organiser."""
        line = self._process.stdout.readline().decode()
        assert line, self._log.read_text()[-5000:]
        printed = json.loads(line)
        self.port = int(printed["url"].rpartition(":")[2])
        self.organiser = printed["token"] or self.organiser  # printed at the first start only

    def wait_until_ready(self):
        """Wait until the server answers requests."""
        self.read_address()
        reply, _ = StressClient(self).call("GET", "/healthz", Connection="close")
        assert reply.status == 200

    def wait_for_workers(self, count=2):
        """Wait until this many worker processes have answered; return them."""
        answered = set()
        while len(answered) < count:
            client = StressClient(self)
            assert client.call("GET", "/healthz")[0].status == 200
            answered.add(server_process(client.local_port, self.workers()))
            client.close()
        assert len(self.workers()) == count
        return self.workers()

    def workers(self):
        """Return the ids of its child processes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return {int(pid) for pid in children.split()}

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self):
        code = self._process.wait(timeout=120)
        self._process.stdout.close()
        return code

    def events(self, event):
        """Return the log's lines of one event; the last line may be incomplete and is ignored."""
        lines = self._log.read_text().split("\n")[:-1]
        parsed = [json.loads(line) for line in lines if line.startswith("{")]
        return [fields for fields in parsed if fields.get("event") == event]

    def restart_workers(self):
        """Replace all workers; wait until that is done."""
        before = len(self.events("restart"))
        self.signal(signal.SIGHUP)
        wait_until(lambda: len(self.events("restart")) >= before + 2)
        assert [line["state"] for line in self.events("restart")[before:]] == ["begun", "done"]


def wait_until(condition, seconds=120):
    """Wait until a condition holds, and return its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


def random_predictions(*seed):
    """Return a CSV file of random predictions for a seed."""
    bits = np.random.default_rng(seed).integers(2, size=400)
    return ("id,prediction\n" + "".join(f"{i},{v}\n" for i, v in enumerate(bits))).encode()


class ClientCrowd:
    """Clients that keep their connections and never retry, until ``stop`` is called."""

    def __init__(self, server, count, slug="first", padding=0):
        self.requests, self._stop, self._slug, self._padding = 0, threading.Event(), slug, padding
        self.clients, self._threads, self.errors = start_clients(server, count, self._work)

    def _work(self, client, number):
        paths = [f"/boards/{self._slug}", f"/api/v1/boards/{self._slug}/leaderboard", "/"]
        step = 0
        while not self._stop.is_set():
            step += 1
            time.sleep(0.7 if number == 0 else 0.06)  # the first pauses longer
            if number and step % 3 == 0:
                body = random_predictions(number, step) + b"\n" * self._padding
                reply = client.submit(self._slug, f"team {number}", body, f"{number}-{step}")
                assert reply is None or reply.status == 201, reply
            received = client.call("GET", paths[step % 3])
            assert received is None or received[0].status == 200, received
            self.requests += 1

    def stop(self):
        """Let all clients finish; fail on any error or lost connection. Return all replies."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        assert [client.connections_lost for client in self.clients] == [0] * len(self.clients)
        return [reply for client in self.clients for reply in client.replies]


def connect(server):
    """Return an HTTP connection that is kept open."""
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
