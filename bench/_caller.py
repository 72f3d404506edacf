"""A cheap client for bench/server.py: requests are made beforehand, connections stay open.

Reads jobs as lines of JSON on standard input: port, targets (a path and a token each), n, seed,
first, count, connections; answers each with a line: seconds in all, milliseconds of each request,
and statuses. Where n is 0 nothing is sent: pages are read.
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
    """Return a request whose predictions nobody has sent before."""
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
    """Sends one request after another, as answers come."""

    def __init__(self, left: list[bytes], times: list[float], seen: list[int]) -> None:
        self._left, self._times, self._seen = left, times, seen
        self._got = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport: Any = transport
        self._next()

    def _next(self) -> None:
        if not self._left:
            self._transport.close()
            self.done.set_result(None)
            return
        self._begun = perf_counter()
        self._transport.write(self._left.pop())

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer."""
        self._got += data
        head, mark, body = self._got.partition(b"\r\n\r\n")
        if not mark:
            return
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) >= size:
            self._times.append(perf_counter() - self._begun)
            self._seen.append(int(head.split()[1]))
            self._got = b""
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server hung up"))


async def run(job: dict[str, Any]) -> dict[str, Any]:
    """Send what a job says, and return how long it took."""
    left = [request(job, job["first"] + at) for at in range(job["count"])]
    times: list[float] = []
    seen: list[int] = []
    loop = asyncio.get_running_loop()
    begun = perf_counter()
    made = [
        await loop.create_connection(
            lambda: Connection(left, times, seen), "127.0.0.1", job["port"]
        )
        for _ in range(job["connections"])
    ]
    await asyncio.gather(*(each.done for _, each in made))
    return {
        "seconds": perf_counter() - begun,
        "times": [round(1e3 * time, 3) for time in times],
        "statuses": sorted(set(seen)),
    }


def main() -> None:
    """Do jobs until there are no more."""
    for line in sys.stdin:
        print(json.dumps(uvloop.run(run(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
