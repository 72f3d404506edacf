"""EvalAI on loopback, a guard and a board."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.adapters.evalai import ChallengePhase, Worker, ask_guard
from ladderboard.server import listen_on_unix_socket
from support.adapters.evalai_server import CHALLENGE, PHASE, QUEUE, SPLIT, TOKEN, EvalAiServer
from support.server.guard_server import GuardServer
from support.server.live_server import make_folder

LABELS = np.arange(400) % 2


@pytest.fixture
def correct_labels(live_server):
    """Return a function that corrects the labels of fifteen public rows."""

    def change():
        table = make_folder(live_server.slug).table
        labels = table.labels.copy()
        labels[:15] ^= 1
        organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
        amendments = live_server.boards.open(live_server.slug).amendments
        corrected = replace(table, labels=labels)
        assert amendments.correct_labels(organiser, corrected, replay="none") == 0

    return change


@pytest.fixture
def serve():
    """Return a function that serves a guard on a free port or a socket, and returns its URL."""
    with contextlib.ExitStack() as ends:

        def start(guard, path=None, **options):
            listener = None if path is None else listen_on_unix_socket(path)
            return ends.enter_context(GuardServer(guard, listener, **options)).url

        yield start


@pytest.fixture
def evalai():
    """A running EvalAI."""
    with EvalAiServer() as server:
        yield server


@pytest.fixture
def guard(tmp_path):
    """A guard with ids, a plain Ladder and twenty questions."""
    return lb.Holdout.create(
        tmp_path / "guard.db",
        LABELS,
        ids=np.arange(400),
        questions=20,
        ladders=10,
        mechanism=lb.Ladder(step=0.02),
    )


@pytest.fixture
def scores():
    """A file of perfect scores."""
    return b"id,score\n" + b"".join(b"%d,1\n" % row for row in range(400))


@pytest.fixture
def guard_of_scores(tmp_path):
    """A guard of scores."""
    path = tmp_path / "scores.db"
    return lb.Holdout.create(path, ids=range(400), loss="score", questions=20, ladders=2)


@pytest.fixture
def predict():
    """Return a function that returns a file of predictions, with a number of errors in 400."""

    def make(wrong):
        values = LABELS ^ (np.arange(400) < wrong)
        rows = "".join(f"{i},{v}\n" for i, v in enumerate(values))
        return f"id,prediction\n{rows}".encode()

    return make


@pytest.fixture
def make_worker(evalai, guard):
    """Return a function that makes workers, which ask the guard by default."""

    def make(ask=None, **options):
        phases = {PHASE: ChallengePhase(SPLIT, ask or ask_guard(guard))}
        defaults = {"challenge": CHALLENGE, "queue": QUEUE, "token": TOKEN}
        return Worker(phases, **(defaults | {"server": evalai.url} | options))

    return make


@pytest.fixture
def worker(make_worker):
    """A worker that asks the guard."""
    return make_worker()
