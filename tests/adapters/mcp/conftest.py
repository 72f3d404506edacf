"""Served guards, and agents that use them over stdin and stdout."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import numpy as np
import pytest
from mcp import Client, StdioServerParameters

import ladderboard as lb
from ladderboard.adapters.mcp import make_server, open_toolset
from ladderboard.server import listen_on_unix_socket
from support.server.guard_server import GuardServer

SOURCE = str(Path(lb.__file__).parents[1])
LABELS = np.random.default_rng(0).integers(2, size=200)


class RestartableGuard:
    """A guard behind a Unix socket, which can be stopped and started again."""

    def __init__(self, guard, path, **options):
        self.guard, self.path, self.options = guard, path, options
        self.url = f"unix:{path}"
        self._server = None

    def start(self):
        """Serve it."""
        self._server = GuardServer(self.guard, listen_on_unix_socket(self.path), **self.options)
        self._server.start()

    def stop(self):
        """Stop serving it."""
        if self._server is not None:
            self._server.stop()
            self._server = None


@pytest.fixture
def labels():
    return LABELS


@pytest.fixture
def serve(tmp_path_factory):
    """Give a function that serves a guard until the test ends."""
    with contextlib.ExitStack() as ends:

        def start(guard, **how):
            served = RestartableGuard(
                guard, tmp_path_factory.mktemp("socket") / "guard.sock", **how
            )
            served.start()
            ends.callback(served.stop)
            return served

        yield start


@pytest.fixture
def served(serve, tmp_path):
    """A guard with a plain Ladder and ten questions, served."""
    place = tmp_path / "owner"
    place.mkdir()
    mechanism = lb.Ladder(step=0.02)
    settings = {"questions": 10, "ladders": 2, "mechanism": mechanism}
    return serve(lb.Holdout.create(place / "guard.db", LABELS, **settings))


def command(*words, **environment):
    """Return how the program is started, as the configuration of a host has it."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "ladderboard", "mcp", *map(str, words)],
        env={"PYTHONPATH": SOURCE, **environment},
    )


@pytest.fixture
def run_over_stdio():
    """Give a function that lets an agent, a coroutine function, use the SDK's real client."""

    def run(agent, *words, mode="auto", **environment):
        async def main():
            with anyio.fail_after(120):
                async with Client(command(*words, **environment), mode=mode) as client:
                    return await agent(client)

        return anyio.run(main)

    return run


@pytest.fixture
def run_in_process():
    """Give a function that does the same without a process between, which is sooner done."""

    def run(agent, target, **how):
        async def main():
            toolset = open_toolset(target, **how)
            with anyio.fail_after(120), contextlib.closing(toolset):
                async with Client(make_server(toolset)) as client:
                    return await agent(client)

        return anyio.run(main)

    return run


class Pipe:
    """The program with bare pipes; keeps every byte that it says."""

    def __init__(self, *words, program=None, **environment):
        how = command(*words, **environment)
        self.process = subprocess.Popen(
            program or [how.command, *how.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], **how.env},
        )
        self.said, self.number = [], 0

    def send(self, line):
        """Send a line as it is."""
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def request(self, method, params, number=None):
        """Send a request without waiting for what is said."""
        self.number += 1
        number = self.number if number is None else number
        wanted = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.send(json.dumps(wanted).encode())

    def answer(self):
        """Return the next line that is said, read."""
        line = self.process.stdout.readline()
        self.said.append(line)
        return json.loads(line)

    def open(self):
        """Shake hands."""
        who = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}
        self.request("initialize", hello)
        greeted = self.answer()
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        return greeted

    def call(self, tool, /, **arguments):
        """Call a tool, and return its result."""
        self.request("tools/call", {"name": tool, "arguments": arguments})
        return self.answer()["result"]

    def end(self):
        """Hang up; return the exit code, all of stdout and all of stderr."""
        self.process.stdin.close()
        self.said.append(self.process.stdout.read())
        errors = self.process.stderr.read()
        code = self.process.wait(timeout=60)
        return code, b"".join(self.said), errors


@pytest.fixture
def open_pipe():
    """Give a function that starts the program with bare pipes."""
    made = []

    def start(*words, **how):
        made.append(Pipe(*words, **how))
        return made[-1]

    yield start
    for process in (each.process for each in made):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
