"""Servers that are run for a while, and a process that calls them."""

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

__all__ = ["Callers", "Running", "running"]

Target = tuple[str, str | None]


class Running(NamedTuple):
    """A server that runs."""

    port: int
    process: int


@contextmanager
def running(*words: str | Path) -> Iterator[Running]:
    """Run a server for as long as the block lasts; its log goes nowhere."""
    command = [sys.executable, *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        for line in process.stdout or ():
            if found := re.search(rb"http://[^:/]*:(\d+)", line):
                yield Running(int(found[1]), process.pid)
                break
        else:
            raise SystemExit("a server did not start")
    finally:
        process.terminate()
        process.communicate()


class Callers:
    """Sixteen connections in a process of their own; every submission is a new one.

    Parameters
    ----------
    n
        How many predictions a submission has; 0 to read pages instead.
    """

    connections = 16

    def __init__(self, n: int) -> None:
        self._n, self._first = n, 0
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("_caller.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def press(self, port: int, targets: Sequence[Target], count: int) -> dict[str, Any]:
        """Send so many requests to paths in turn, with a token each; return what it took."""
        job = {"port": port, "targets": targets, "n": self._n, "seed": os.getpid()}
        job |= {"first": self._first, "count": count, "connections": self.connections}
        self._first += count
        print(json.dumps(job), file=self._process.stdin, flush=True)
        said: dict[str, Any] = json.loads((self._process.stdout or sys.stdin).readline())
        if said["statuses"] != ([201] if self._n else [200]):
            raise SystemExit(f"refused: {said['statuses']}")
        return said

    def close(self) -> None:
        """End it."""
        self._process.communicate()
