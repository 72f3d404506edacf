"""Count the calls, modules and layers that one submission goes through.

The example board is served from a new SQLite file. A team sends two submissions to warm up, the
idle server is watched for a moment, and then a third submission, a better one, is traced: a CSV
file with ids, sent with a token over a connection that is already open.

Counted is what the server and its parser do from the first byte of the request until shortly
after the reply: every call of a function in src/ladderboard, in every thread. Not counted are
comprehensions, resumed coroutines and generators, functions that a library wrote (such as the
__init__ of a dataclass), and what an idle server does as well. Calls vary a little from run to
run, since noise is drawn until a draw is accepted.

A call switches module if the nearest function of ours below it on the stack is in another module.
It crosses layers if that is in another layer, and goes upwards if the layer called is above the
caller's in the import contract in pyproject.toml. Calls that an event loop or a thread pool makes
have no caller.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections import Counter
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src/ladderboard"
BOARD = ROOT / "examples/digits"
OFF, IDLE, SUBMISSION = range(3)  # phases
IDLE_SECONDS = 1.5  # the server looks after itself once a second
SETTLING_SECONDS = 0.2  # what follows a reply: the log, the parser's return to the pool


class Call(NamedTuple):
    """A function that was called, or one that went on after it had waited."""

    time: int
    process: str
    thread: str
    depth: int
    resumed: bool
    module: str
    function: str
    caller: str | None
    """The module of the function that called it."""

    @property
    def changes_module(self) -> bool:
        """Whether it was called from another module."""
        return self.caller not in {None, self.module}

    @property
    def changes_layer(self) -> bool:
        """Whether it was called from another layer."""
        return self.caller is not None and layer_of(self.caller) != layer_of(self.module)


def layer_of(module: str) -> str:
    """Return the layer of a module: the first part of its name."""
    return module.partition(".")[0]


def layer_ranks() -> dict[str, int]:
    """Return the rank of every layer in the import contract; the topmost has 0."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {name: rank for rank, row in enumerate(layers) for name in re.findall(r"\w+", row)}


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class _Environment:
    """A virtual environment with the libraries of this one, whose processes record calls."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True)
        self.python = folder / "bin/python"
        self._folder = folder / "trace"
        self._folder.mkdir()
        self._phase = self._folder / "phase"
        (packages,) = folder.glob("lib/python*/site-packages")
        hook = Path(__file__).with_name("_trace_hook.py")
        shutil.copy(hook, packages)
        libraries = [
            entry for entry in sys.path if Path(entry).is_dir() and Path(entry) != hook.parent
        ]
        start = f"import _trace_hook; _trace_hook.start({str(SOURCE)!r})"
        (packages / "trace.pth").write_text("\n".join([*libraries, start]) + "\n")

    @contextmanager
    def recording(self, phase: int) -> Iterator[None]:
        """Record calls for as long as the block lasts."""
        self._set_phase(phase)
        yield
        self._set_phase(OFF)

    def _set_phase(self, phase: int) -> None:
        # Processes have this file mapped: if it were empty for a moment, they would crash.
        with self._phase.open("r+b") as file:
            file.write(bytes([phase]))

    def calls(self) -> list[Call]:
        """Return what was recorded of the submission, in order; nothing that was seen idle, too."""
        rows, idle = [], set()
        for log in self._folder.glob("*.log"):
            program, *lines = log.read_bytes().rstrip(b"\0").splitlines()
            (path,) = json.loads(program)
            for phase, *row, root in map(json.loads, lines):
                if phase == IDLE:
                    idle.add((log, root))
                else:
                    rows.append((log, root, _module(path) or "server", row))
        calls = []
        for log, root, process, row in rows:
            if (log, root) not in idle:
                started, thread, depth, resumed, path, function, caller = row
                caller = caller and _module(caller)
                calls.append(
                    Call(started, process, thread, depth, resumed, _module(path), function, caller)
                )
        return sorted(calls, key=lambda call: call.time)


@contextmanager
def run_server(python: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Serve the board; yield the server's start event."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("LADDERBOARD_", "PYTHON"))}
    # One parser, or the traced submission might be the first that another one reads.
    environ["LADDERBOARD_SERVE_PARSERS"] = "1"
    args = ["serve", "--json", "--port", "0", "--database", folder / "boards.db", BOARD]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [python, "-m", "ladderboard", *args], stdout=subprocess.PIPE, stderr=log, env=environ
        )
    try:
        line = (server.stdout or sys.stdin).readline()
        if not line:
            raise SystemExit("The server did not start:\n" + (folder / "log").read_text())
        yield json.loads(line)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()


def _post(connection: socket.socket, path: str, token: str, kind: str, body: str) -> dict[str, Any]:
    """Send a request and return the reply; in one piece, so that every run receives the same."""
    content = body.encode()
    head = [f"POST /api/v1/boards/{BOARD.name}/{path} HTTP/1.1", "Host: 127.0.0.1"]
    head += [f"Authorization: Bearer {token}", f"Content-Type: {kind}"]
    head += [f"Content-Length: {len(content)}", "", ""]
    connection.sendall("\r\n".join(head).encode() + content)
    reply = HTTPResponse(connection)
    reply.begin()
    payload = reply.read()
    if reply.status != 201:
        raise SystemExit(f"The server refused {path}: {payload.decode()}")
    return json.loads(payload)


def trace() -> list[Call]:
    """Serve the board, trace a submission and return its calls in order."""
    with (BOARD / "holdout.csv").open() as file:
        rows = list(csv.DictReader(file))

    def predictions(shift: int) -> str:
        lines = (f"{row['id']},{(int(row['label']) + shift) % 10}\n" for row in rows)
        return "id,prediction\n" + "".join(lines)

    with tempfile.TemporaryDirectory(prefix="ladderboard-trace-") as name:
        folder = Path(name).resolve()
        environment = _Environment(folder / "venv")
        with run_server(environment.python, folder) as server:
            url = urlsplit(server["url"])
            with socket.create_connection((url.hostname, url.port)) as connection:
                team = {"name": "Traced"}
                team = _post(
                    connection, "teams", server["token"], "application/json", json.dumps(team)
                )
                for shift in (1, 2):
                    _post(connection, "submissions", team["token"], "text/csv", predictions(shift))
                time.sleep(SETTLING_SECONDS)
                with environment.recording(IDLE):
                    time.sleep(IDLE_SECONDS)
                with environment.recording(SUBMISSION):
                    _post(connection, "submissions", team["token"], "text/csv", predictions(0))
                    time.sleep(SETTLING_SECONDS)
        return environment.calls()


def summary(traced: Sequence[Call]) -> dict[str, Any]:
    """Return all numbers."""
    calls = [call for call in traced if not call.resumed]
    ranks = layer_ranks()
    upward = [
        call
        for call in calls
        if call.caller and ranks[layer_of(call.module)] < ranks[layer_of(call.caller)]
    ]
    modules = {call.module for call in calls}
    count = Counter(layer_of(call.module) for call in calls)
    return {
        "calls": len(calls),
        "functions": len({(call.module, call.function) for call in calls}),
        "modules": len(modules),
        "module_switches": sum(call.changes_module for call in calls),
        "layer_crossings": sum(call.changes_layer for call in calls),
        "upward_crossings": len(upward),
        "layers": {
            layer: {
                "modules": sum(layer_of(module) == layer for module in modules),
                "calls": number,
            }
            for layer, number in sorted(count.items(), key=lambda item: ranks[item[0]])
        },
        "processes": dict(Counter(call.process for call in calls)),
        "upward": dict(
            Counter(f"{call.caller} -> {call.module}:{call.function}" for call in upward)
        ),
    }


def report(numbers: dict[str, Any]) -> str:
    """Write the numbers for people."""
    names = ("calls", "functions", "modules", "module_switches", "layer_crossings")
    lines = [f"{name.replace('_', ' '):18}{numbers[name]:6}" for name in names]
    lines += [f"{'  of them upwards':18}{numbers['upward_crossings']:6}", ""]
    lines += [f"{'layer':18}modules  calls"]
    for layer, count in numbers["layers"].items():
        lines += [f"{layer:18}{count['modules']:7}{count['calls']:7}"]
    for title, name in (("calls in each process", "processes"), ("upward crossings", "upward")):
        lines += ["", title, *(f"{count:7}  {item}" for item, count in numbers[name].items())]
    return "\n".join(lines)


def call_tree(traced: Sequence[Call]) -> str:
    """Write the calls in order, indented, with a heading wherever another thread goes on."""
    lines, current = [], None
    for call in traced:
        if current != (call.process, call.thread):
            current = (call.process, call.thread)
            lines += [f"[{call.process}, {call.thread}]"]
        went_on = " (resumed)" if call.resumed else ""
        lines += [f"{'  ' * (call.depth + 1)}{call.module}:{call.function}{went_on}"]
    return "\n".join(lines)


def main() -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="script/trace-submission",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")
    parser.add_argument("--calls", action="store_true", help="print the call tree")
    options = parser.parse_args()
    traced = trace()
    if options.json:
        tree = {"tree": [call._asdict() for call in traced]} if options.calls else {}
        text = json.dumps(summary(traced) | tree, indent=2)
    else:
        text = call_tree(traced) if options.calls else report(summary(traced))
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
