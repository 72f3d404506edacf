"""One client in several threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx

from ladderboard.client import Client


def test_concurrent_threads_share_the_connections(live_server, token, monkeypatch):
    """Otherwise each would open its own, and all but the last would stay open."""
    clients = []

    class CountingClient(httpx.Client):
        def __init__(self, **options):
            together.wait(timeout=60)  # all have seen that there is none yet
            clients.append(self)
            super().__init__(**options)

    together = threading.Barrier(4)
    monkeypatch.setattr("ladderboard.client._client.httpx.Client", CountingClient)
    with Client(live_server.url, token) as client, ThreadPoolExecutor(4) as pool:
        teams = list(pool.map(client.team, [live_server.slug] * 4))
    assert len({team.id for team in teams}) == 1
    assert len(clients) == 4
    assert all(client_.is_closed for client_ in clients)
