"""Servers for the length of a block, and a process that sends requests to them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Target = tuple[str, str | None]


class RunningServer(NamedTuple):
    """A running server: its port and process id."""

    port: int
    process: int


@contextmanager
def start_server(*args: str | Path) -> Iterator[RunningServer]:
    """Run a server for as long as the block lasts; its log is discarded."""
    command = [sys.executable, *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        for line in process.stdout or ():
            if match := re.search(rb"http://[^:/]*:(\d+)", line):
                yield RunningServer(int(match[1]), process.pid)
                break
        else:
            raise SystemExit("a server did not start")
    finally:
        process.terminate()
        process.communicate()


class LoadGenerator:
    """Sends requests over sixteen connections, from its own process; every submission is new.

    Parameters
    ----------
    n
        The number of predictions of a submission; 0 to read pages instead.
    """

    connections = 16

    def __init__(self, n: int) -> None:
        self._n, self._first = n, 0
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("_load_process.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send_requests(self, port: int, targets: Sequence[Target], count: int) -> dict[str, Any]:
        """Send requests to the targets in turn; return the times and statuses."""
        job = {"port": port, "targets": targets, "n": self._n, "seed": os.getpid()}
        job |= {"first": self._first, "count": count, "connections": self.connections}
        self._first += count
        print(json.dumps(job), file=self._process.stdin, flush=True)
        result: dict[str, Any] = json.loads((self._process.stdout or sys.stdin).readline())
        if result["statuses"] != ([201] if self._n else [200]):
            raise SystemExit(f"refused: {result['statuses']}")
        return result

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
