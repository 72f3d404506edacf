"""Clients of a live server, with folders of their own for what they keep."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterator
from inspect import isasyncgen
from pathlib import Path

import pytest

from ladderboard.client import AsyncClient, Client


def _load(folder, name):
    """Tests are no package: a helper is loaded by its path."""
    place = Path(__file__).parents[1] / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_ladderboard_test_{folder}{name}", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def halls():
    """Give the module that serves boards."""
    return _load("server", "_hall")


@pytest.fixture(scope="session")
def proxies():
    """Give the module of faulty proxies."""
    return _load("client", "_proxy")


@pytest.fixture(scope="session")
def predict(halls):
    """Give predictions as a file, with so many wrong on each split."""
    return halls.predict


@pytest.fixture(scope="module")
def shared_hall(request, halls, tmp_path_factory):
    """Serve boards for all tests of a module, without limits on what goes wrong."""
    many = halls.Rate(10**6, 1.0)
    with halls.storage_of("sqlite", request, tmp_path_factory.mktemp("hall")) as storage:
        hall = halls.Hall(storage, failures=many, registrations=many, invalid=many)
        hall.start()
        yield hall
        hall.stop()


@pytest.fixture
def empty_hall(shared_hall):
    """A server, and the name of a board that is yet to be made."""
    shared_hall.renew()
    return shared_hall


@pytest.fixture
def hall(empty_hall):
    """A server with one board."""
    empty_hall.board()
    return empty_hall


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Keep settings and receipts out of whoever's home runs the tests."""
    for name in ("URL", "TOKEN"):
        monkeypatch.delenv(f"LADDERBOARD_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def token(hall):
    """The token of a team."""
    return hall.join("Ada")[1]


@pytest.fixture
def client(hall, token):
    """A client of that team."""
    with Client(hall.url, token) as made:
        yield made


@pytest.fixture
def quick(monkeypatch):
    """Wait shortly between tries."""
    monkeypatch.setattr("ladderboard.client._retries._FIRST", 0.001)


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
