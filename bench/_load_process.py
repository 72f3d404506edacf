"""A fast HTTP client for bench/_load.py: requests are prepared, connections stay open.

Reads jobs as lines of JSON on standard input: port, targets (a path and a token each), n, seed,
first, count, connections. Answers each with a line: total seconds, milliseconds of each request,
and statuses. If n is 0, pages are read instead of submissions sent.
"""

from __future__ import annotations

import asyncio
import json
import sys
from time import perf_counter
from typing import Any

import numpy as np
import uvloop


def request(job: dict[str, Any], number: int) -> bytes:
    """Return a request with new predictions."""
    path, token = job["targets"][number % len(job["targets"])]
    if not job["n"]:
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    rng = np.random.default_rng([job["seed"], number])
    values = np.where(rng.random(job["n"]) < 0.3, b"1\n", b"0\n")
    body = b"prediction\n" + values.tobytes()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: text/csv",
        f"Content-Length: {len(body)}",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection(asyncio.Protocol):
    """Sends the next request when a response is complete."""

    def __init__(self, requests: list[bytes], times: list[float], statuses: list[int]) -> None:
        self._requests, self._times, self._statuses = requests, times, statuses
        self._head, self._missing = b"", -1  # bytes of the header, and missing ones of the body
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport: Any = transport
        self._next()

    def _next(self) -> None:
        if not self._requests:
            self._transport.close()
            self.done.set_result(None)
            return
        self._started = perf_counter()
        self._transport.write(self._requests.pop())

    def data_received(self, data: bytes) -> None:
        """Receive a part of a response; of a long body only the length counts."""
        if self._missing < 0:
            self._head, separator, data = (self._head + data).partition(b"\r\n\r\n")
            if not separator:
                return
            size = self._head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            self._missing = int(size)
        self._missing -= len(data)
        if self._missing <= 0:
            self._times.append(perf_counter() - self._started)
            self._statuses.append(int(self._head.split()[1]))
            self._head, self._missing = b"", -1
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report a lost connection to the waiting task."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server hung up"))


async def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job and return its times and statuses."""
    requests = [request(job, job["first"] + index) for index in range(job["count"])]
    times: list[float] = []
    statuses: list[int] = []
    loop = asyncio.get_running_loop()
    started = perf_counter()
    connections = [
        await loop.create_connection(
            lambda: Connection(requests, times, statuses), "127.0.0.1", job["port"]
        )
        for _ in range(job["connections"])
    ]
    await asyncio.gather(*(connection.done for _, connection in connections))
    return {
        "seconds": perf_counter() - started,
        "times": [round(1e3 * time, 3) for time in times],
        "statuses": sorted(set(statuses)),
    }


def main() -> None:
    """Run jobs until the input ends."""
    for line in sys.stdin:
        print(json.dumps(uvloop.run(run(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
