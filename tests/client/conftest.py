"""Clients of a live server, with folders of their own for what they keep."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from inspect import isasyncgen

import pytest

from ladderboard.client import AsyncClient, Client


@pytest.fixture(autouse=True)
def home(isolated_home):
    """Where a client keeps settings and receipts."""
    return isolated_home


@pytest.fixture
def token(live_server):
    """The token of a team."""
    return live_server.join("Ada")[1]


@pytest.fixture
def client(live_server, token):
    """A client of that team."""
    with Client(live_server.url, token) as made:
        yield made


@pytest.fixture
def no_retry_delay(monkeypatch):
    """Wait shortly between tries."""
    monkeypatch.setattr("ladderboard.client._transport._FIRST_PAUSE", 0.001)


class Sync:
    """Calls verbs of a client."""

    kind = Client

    def __call__(self, url, token, verb, *given, how=None, **named):
        with Client(url, token, **(how or {})) as client:
            said = getattr(client, verb)(*given, **named)
            return list(said) if isinstance(said, Iterator) else said


class Async:
    """Calls the same verbs where they are awaited."""

    kind = AsyncClient

    def __call__(self, url, token, verb, *given, how=None, **named):
        async def call():
            async with AsyncClient(url, token, **(how or {})) as client:
                said = getattr(client, verb)(*given, **named)
                return [each async for each in said] if isasyncgen(said) else await said

        return asyncio.run(call())


@pytest.fixture(params=[Sync, Async], ids=["sync", "async"])
def call(request):
    """Call a verb of either client."""
    return request.param()
