"""Fixtures for all tests. Property tests are derandomised: a failure is reproducible."""

from __future__ import annotations

import functools
import gc
import signal
import ssl
import sys
from importlib.util import find_spec

import pytest
from hypothesis import settings

from ladderboard.tape import Tape

pytest.register_assert_rewrite("support")
collect_ignore = ["support"]

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("fast", settings.get_profile("fixed"), max_examples=30)


def pytest_configure(config):
    """Try fewer examples in the fast lane, collect no garbage yet, and restore SIGHUP.

    Looking for garbage takes a sixth of the time of collecting tests. nohup has processes ignore
    SIGHUP, and the servers that tests start would inherit that.
    """
    gc.disable()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    settings.load_profile("fast" if config.option.markexpr == "not slow" else "fixed")


def pytest_collection_finish():
    """Keep what was collected out of garbage collections, which saves a twentieth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _one_read_of_authorities():
    """Read each file of certificate authorities once; every httpx client reads one, for 25 ms."""
    create = ssl.create_default_context
    read_once = functools.cache(create)

    def create_default_context(*purpose, **authorities):
        return (create if purpose else read_once)(*purpose, **authorities)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create_default_context)
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_passphrases():
    """Encrypt with passphrases in no time; tests/ledger/test_vault.py takes the second it takes."""
    if find_spec("pyrage") is None:  # in the adapters' environments
        yield
        return
    import pyrage

    from support.quick_passphrases import encrypt_quickly

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyrage.passphrase, "encrypt", encrypt_quickly)
        yield


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


@pytest.fixture(scope="session")
def postgres():
    """Run one PostgreSQL server for all tests of this process; its data stay until the end."""
    from support.postgres import PostgresServer  # the adapters' environments have no psycopg

    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def disk(tmp_path):
    """Return a disk of eight megabytes."""
    from support.small_disk import SmallDisk

    small_disk = SmallDisk(tmp_path / "disk", 2**23)
    yield small_disk
    small_disk.unmount()


@pytest.fixture(scope="module")
def database():
    """Name the kind of database that boards are served from."""
    return "sqlite"


@pytest.fixture(scope="module")
def shared_server(request, database, tmp_path_factory):
    """Serve boards for all tests of a module, practically without rate limits."""
    from ladderboard.server import Rate
    from support.server.live_server import LiveServer, empty_storage

    unlimited = Rate(10**6, 1.0)
    limits = dict.fromkeys(("failures", "registrations", "invalid"), unlimited)
    with (
        empty_storage(database, request, tmp_path_factory.mktemp("server")) as storage,
        LiveServer(storage, **limits) as server,
    ):
        yield server


@pytest.fixture
def empty_server(shared_server):
    """A server without a board of this test yet; ``slug`` is the name for it."""
    shared_server.reset()
    return shared_server


@pytest.fixture
def live_server(empty_server):
    """A server with one board."""
    empty_server.create_board()
    return empty_server


@pytest.fixture
def isolated_home(tmp_path, monkeypatch):
    """Keep settings and receipts out of the home of the user who runs the tests."""
    for name in ("URL", "TOKEN"):
        monkeypatch.delenv(f"LADDERBOARD_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture(autouse=True)
def _no_idle_workers():
    """End joblib's workers with the test that started them; idle ones would end only later."""
    yield
    executors = sys.modules.get("joblib.externals.loky.reusable_executor")
    if executors is not None and executors._executor is not None:
        executors._executor.shutdown(wait=True, kill_workers=True)
