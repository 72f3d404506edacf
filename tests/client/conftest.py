"""Clients of a live server, with temporary folders for settings and receipts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from inspect import isasyncgen

import pytest

from ladderboard.client import AsyncClient, Client


@pytest.fixture(autouse=True)
def home(isolated_home):
    """The folder of a client's settings and receipts."""
    return isolated_home


@pytest.fixture
def token(live_server):
    """The token of a team."""
    return live_server.join("Ada")[1]


@pytest.fixture
def client(live_server, token):
    """A client of that team."""
    with Client(live_server.url, token) as client_:
        yield client_


@pytest.fixture
def no_retry_delay(monkeypatch):
    """Shorten the wait between retries."""
    monkeypatch.setattr("ladderboard.client._transport._FIRST_PAUSE", 0.001)


class Sync:
    """Calls methods of a Client."""

    kind = Client

    def __call__(self, url, token, verb, *args, options=None, **named):
        with Client(url, token, **(options or {})) as client:
            result = getattr(client, verb)(*args, **named)
            return list(result) if isinstance(result, Iterator) else result


class Async:
    """Calls the same methods of an AsyncClient."""

    kind = AsyncClient

    def __call__(self, url, token, verb, *args, options=None, **named):
        async def call():
            async with AsyncClient(url, token, **(options or {})) as client:
                result = getattr(client, verb)(*args, **named)
                return [item async for item in result] if isasyncgen(result) else await result

        return asyncio.run(call())


@pytest.fixture
def call(request):
    """Call a method of a client; a test of both is parametrised with "sync" and "async"."""
    return {"sync": Sync, "async": Async}[getattr(request, "param", "sync")]()
