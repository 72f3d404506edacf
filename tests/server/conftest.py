"""Fixtures that serve guards and boards over HTTP in a thread of the test process."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.board import _submissions
from ladderboard.server import _webhook_sender
from ladderboard.server._sandbox._process import ParserProcess
from support.salts import SaltSource, record_salt_uses
from support.server.guard_server import GuardServer
from support.server.live_server import InlineParsers, LiveServer, empty_storage
from support.server.organiser_browser import OrganiserBrowser
from support.server.recording_server import RecordingServer
from support.server.webhooks import Receiver
from support.two_worlds.board_session import run_session
from support.two_worlds.mechanisms import NOISE, BlindLadder

# The fast lane runs these on PostgreSQL too, since they depend on the database. Pages, roles and
# files do not; script/test --all runs everything on both.
ON_BOTH_DATABASES = {
    "test_api_submissions", "test_api_teams", "test_backup", "test_load",
    "test_lost_database", "test_many_boards", "test_run", "test_webhooks",
}  # fmt: skip

LABELS = np.random.default_rng(0).integers(2, size=200)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Keep most tests on PostgreSQL out of the fast lane."""
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if (
            params.get("database") == "postgres"
            and item.path.parent == Path(__file__).parent
            and item.path.stem not in ON_BOTH_DATABASES
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def team(live_server):
    """A team of the board: its id and its token."""
    return live_server.join("Alpha")


@pytest.fixture
def labels():
    """The labels of the guard."""
    return LABELS


@pytest.fixture
def guard(tmp_path):
    """A guard with a plain Ladder and ten questions."""
    return lb.Holdout.create(
        tmp_path / "guard.db", LABELS, questions=10, ladders=5, mechanism=lb.Ladder(step=0.02)
    )


@pytest.fixture
def serve_guard():
    """Return a function that serves a guard until the test ends."""
    with contextlib.ExitStack() as exit_stack:

        def start(guard, listener=None, **options):
            return exit_stack.enter_context(GuardServer(guard, listener, **options))

        yield start


@pytest.fixture
def guard_server(serve_guard, guard):
    """The guard behind HTTP."""
    return serve_guard(guard)


@pytest.fixture
def kill_parsers(monkeypatch):
    """Return a function that kills the next parsers as soon as they have received a body."""
    send_body = ParserProcess.send_body

    def kill(count, number=signal.SIGKILL):
        signals = [number] * count

        def send_body_and_kill(parser, *args, **kwargs):
            if not signals:
                return send_body(parser, *args, **kwargs)
            os.kill(parser.pid, signal.SIGSTOP)
            reply = send_body(parser, *args, **kwargs)
            os.kill(parser.pid, signals.pop())
            os.kill(parser.pid, signal.SIGCONT)
            return reply

        monkeypatch.setattr(ParserProcess, "send_body", send_body_and_kill)

    return kill


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(request):
    """The kind of database: each test runs once per kind."""
    return request.param


@pytest.fixture
def make_server(request, database, tmp_path):
    """Return a function that serves boards from an empty database."""
    with contextlib.ExitStack() as exit_stack:

        def make(**options):
            storage = exit_stack.enter_context(empty_storage(database, request, tmp_path))
            live_server = LiveServer(storage, **options)
            live_server.start()
            exit_stack.callback(live_server.stop)
            return live_server

        yield make


@pytest.fixture
def run_world(request, tmp_path, monkeypatch, caplog):
    """Return a function that runs a session in a world and returns the recording server."""
    paths = (tmp_path / f"run {number}" for number in itertools.count())
    # What was authorized stays fresh: otherwise it would depend on the machine how often labels
    # that were corrected meanwhile are noticed in the transaction only, which uses more salts.
    monkeypatch.setattr(_submissions, "monotonic", lambda: 0.0)

    def run(
        world, kind="sqlite", *, mechanism=BlindLadder, hide=True, seed=b"", script="run_everything"
    ):
        path, salt_uses = next(paths), record_salt_uses(monkeypatch, hide=hide)
        path.mkdir()
        with empty_storage(kind, request, path) as storage:
            parsers = (
                None if script == "run_everything" else InlineParsers()
            )  # they start much faster
            salts = SaltSource(seed)
            server = RecordingServer(storage, path, mechanism(**NOISE), salts, parsers)
            server.salt_uses = salt_uses
            return run_session(server, world, caplog, script=script)

    return run


@pytest.fixture
def open_organiser_page(empty_server):
    """Return a function that opens the organiser's page with a token."""
    with contextlib.ExitStack() as exit_stack:

        def make(token):
            browser = OrganiserBrowser(empty_server, token)
            exit_stack.callback(browser.client.close)
            return browser

        yield make


@pytest.fixture
def organiser_page(live_server, open_organiser_page):
    """The organiser's page of a board, opened by the organiser of all boards."""
    return open_organiser_page(live_server.organiser)


@pytest.fixture
def browser(live_server):
    """A client that keeps cookies, as a browser does."""
    with live_server.browser() as client:
        yield client


@pytest.fixture
def start_receiver():
    """Return a function that starts a receiver of webhooks."""
    with contextlib.ExitStack() as exit_stack:

        def start(*arguments):
            receiver = Receiver(*arguments)
            exit_stack.callback(receiver.stop)
            return receiver

        yield start


@pytest.fixture
def receiver(start_receiver):
    """A receiver of webhooks."""
    return start_receiver()


@pytest.fixture
def webhook_server(make_server, monkeypatch):
    """A server that may call receivers on loopback, looks often what is due, and has a board."""
    monkeypatch.setattr(_webhook_sender, "_TICK_SECONDS", 0.1)
    live_server = make_server(webhook_private=True, url="https://boards.example.org")
    live_server.create_board()
    return live_server
