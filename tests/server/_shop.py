"""`ladderboard serve` as a program of its own, and customers who never ask twice."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

_spec = importlib.util.spec_from_file_location("_shop_siege", Path(__file__).with_name("_siege.py"))
siege = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = siege
_spec.loader.exec_module(siege)

SOURCE = Path(__file__).parents[2] / "src"


class Shop(siege.Keep):
    """A server that is signalled; ``code`` is where the package is loaded from."""

    organiser = None

    def __init__(self, database, folder, *options, code=SOURCE):
        super().__init__(database, folder)
        self.options, self.code = options, code

    def command(self):
        return [sys.executable, "-m", "ladderboard", "serve", "--json", *self.options]

    def start(self, *, port=0, before=(), **more):
        """Start it; ``before`` stands before the command."""
        command = [*before, *self.command()]
        command += ["--port", str(port)] if port is not None else []
        surroundings = {**os.environ, "PYTHONPATH": str(self.code)}
        surroundings["LADDERBOARD_DATABASE"] = self.database
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=surroundings,
                start_new_session=True, **more,
            )  # fmt: skip
        return self

    @property
    def pid(self):
        return self._process.pid

    def hear(self):
        """Read what it says when it listens."""
        line = self._process.stdout.readline().decode()
        assert line, self._log.read_text()[-5000:]
        said = json.loads(line)
        self.port = int(said["url"].rpartition(":")[2])
        self.organiser = said["token"] or self.organiser  # which is told once

    def ready(self):
        """Wait until it answers."""
        self.hear()
        reply, _ = siege.Client(self).call("GET", "/healthz", Connection="close")
        assert reply.status == 200

    def full(self, count=2):
        """Wait until so many processes answer; return them."""
        seen = set()
        while len(seen) < count:
            line = siege.Client(self)
            assert line.call("GET", "/healthz")[0].status == 200
            seen.add(siege.server_process(line.local_port, self.workers()))
            line.close()
        assert len(self.workers()) == count
        return self.workers()

    def workers(self):
        """Return the processes that it looks after."""
        found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return {int(each) for each in found}

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self):
        code = self._process.wait(timeout=120)
        self._process.stdout.close()
        return code

    def events(self, event):
        """Return the lines of one kind; another one may be half written."""
        lines = self._log.read_text().split("\n")[:-1]
        found = [json.loads(each) for each in lines if each.startswith("{")]
        return [each for each in found if each.get("event") == event]

    def roll(self):
        """Replace all workers, and wait until that is done."""
        before = len(self.events("restart"))
        self.signal(signal.SIGHUP)
        until(lambda: len(self.events("restart")) >= before + 2)
        assert [each["state"] for each in self.events("restart")[before:]] == ["begun", "done"]


def until(what):
    """Wait for something, not for ever; return it."""
    for _ in range(2400):
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError


def predictions(*seed):
    """Return a model's file; each seed has its own."""
    bits = np.random.default_rng(seed).integers(2, size=400)
    return ("id,prediction\n" + "".join(f"{i},{v}\n" for i, v in enumerate(bits))).encode()


class Crowd:
    """Clients that keep their connections and never try again, until they are told to stop."""

    def __init__(self, shop, count, slug="first", larger=0):
        self.asked, self._stop, self._slug, self._larger = 0, threading.Event(), slug, larger
        self.clients, self._threads, self.errors = siege.press(shop, count, self._work)

    def _work(self, client, number):
        paths = [f"/boards/{self._slug}", f"/api/v1/boards/{self._slug}/leaderboard", "/"]
        at = 0
        while not self._stop.is_set():
            at += 1
            time.sleep(0.7 if number == 0 else 0.03)  # one thinks before asking again
            if number and at % 3 == 0:
                body = predictions(number, at) + b"\n" * self._larger
                said = client.submit(self._slug, f"team {number}", body, f"{number}-{at}")
                assert said is None or said.status == 201, said
            found = client.call("GET", paths[at % 3])
            assert found is None or found[0].status == 200, found
            self.asked += 1

    def end(self):
        """Let everybody finish; nobody may have seen anything go wrong. Return what was told."""
        self._stop.set()
        for each in self._threads:
            each.join()
        if self.errors:
            raise self.errors[0]
        assert [client.cut for client in self.clients] == [0] * len(self.clients)
        return [each for client in self.clients for each in client.told]


def line_to(shop):
    """Return a connection that is kept."""
    return http.client.HTTPConnection("127.0.0.1", shop.port, timeout=120)
