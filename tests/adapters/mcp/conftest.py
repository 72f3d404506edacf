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
    """Return a function that serves a guard until the test ends."""
    with contextlib.ExitStack() as cleanup:

        def start(guard, **options):
            served = RestartableGuard(
                guard, tmp_path_factory.mktemp("socket") / "guard.sock", **options
            )
            served.start()
            cleanup.callback(served.stop)
            return served

        yield start


@pytest.fixture
def served(serve, tmp_path):
    """A guard with a plain Ladder and ten questions, served."""
    folder = tmp_path / "owner"
    folder.mkdir()
    mechanism = lb.Ladder(step=0.02)
    settings = {"questions": 10, "ladders": 2, "mechanism": mechanism}
    return serve(lb.Holdout.create(folder / "guard.db", LABELS, **settings))


def command(*args, **environment):
    """Return the command that starts the program, as in a host's configuration."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "ladderboard", "mcp", *map(str, args)],
        env={"PYTHONPATH": SOURCE, **environment},
    )


@pytest.fixture
def run_over_stdio():
    """Return a function that runs an agent, a coroutine function, with the SDK's real client."""

    def run(agent, *args, mode="auto", **environment):
        async def main():
            with anyio.fail_after(120):
                async with Client(command(*args, **environment), mode=mode) as client:
                    return await agent(client)

        return anyio.run(main)

    return run


@pytest.fixture
def run_in_process():
    """Return a function that does the same in this process, which is faster."""

    def run(agent, target, **options):
        async def main():
            toolset = open_toolset(target, **options)
            with anyio.fail_after(120), contextlib.closing(toolset):
                async with Client(make_server(toolset)) as client:
                    return await agent(client)

        return anyio.run(main)

    return run


class Pipe:
    """The program with bare pipes; keeps every byte of its output."""

    def __init__(self, *args, program=None, **environment):
        parameters = command(*args, **environment)
        self.process = subprocess.Popen(
            program or [parameters.command, *parameters.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], **parameters.env},
        )
        self.output, self.number = [], 0

    def send(self, line):
        """Send a line as it is."""
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def request(self, method, params, number=None):
        """Send a request without waiting for the response."""
        self.number += 1
        number = self.number if number is None else number
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.send(json.dumps(message).encode())

    def answer(self):
        """Return the next message."""
        line = self.process.stdout.readline()
        self.output.append(line)
        return json.loads(line)

    def open(self):
        """Initialize the connection."""
        client_info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info}
        self.request("initialize", params)
        response = self.answer()
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        return response

    def call(self, tool, /, **arguments):
        """Call a tool, and return its result."""
        self.request("tools/call", {"name": tool, "arguments": arguments})
        return self.answer()["result"]

    def end(self):
        """Close stdin; return the exit code, all of stdout and all of stderr."""
        self.process.stdin.close()
        self.output.append(self.process.stdout.read())
        errors = self.process.stderr.read()
        code = self.process.wait(timeout=60)
        return code, b"".join(self.output), errors


@pytest.fixture
def open_pipe():
    """Return a function that starts the program with bare pipes."""
    pipes = []

    def start(*args, **options):
        pipes.append(Pipe(*args, **options))
        return pipes[-1]

    yield start
    for process in (pipe.process for pipe in pipes):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
