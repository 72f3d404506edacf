"""Fixtures for all tests. Property tests are derandomised: a failure stays until it is mended."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from ladderboard.tape import Tape

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("fixed")


class ScriptedTape(Tape):
    """A tape that plays back given draws: row q holds the draws of question q."""

    def __init__(self, rows):
        super().__init__(seed=0)
        self.rows = rows

    def draw(self, laws, *, ladder, question, context=b""):
        assert len(self.rows[question]) == len(laws)
        return tuple(self.rows[question])


@pytest.fixture
def scripted():
    """Make a tape from a list of rows."""
    return ScriptedTape


def _server_class():
    """Tests are no package: the helper is loaded by its path."""
    place = Path(__file__).with_name("_postgres.py")
    spec = importlib.util.spec_from_file_location("_ladderboard_test_postgres", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Server


@pytest.fixture(scope="session")
def postgres_server():
    """Return the class of PostgreSQL servers, to start one with settings of its own."""
    return _server_class()


@pytest.fixture(scope="session")
def postgres(postgres_server):
    """Run one PostgreSQL server for all tests of this process; the data stay in it till the end."""
    server = postgres_server()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _no_idle_workers():
    """End joblib's workers with the test that had them made: idle ones end by themselves, later."""
    yield
    executors = sys.modules.get("joblib.externals.loky.reusable_executor")
    if executors is not None and executors._executor is not None:
        executors._executor.shutdown(wait=True, kill_workers=True)
