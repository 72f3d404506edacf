"""What bridges lead to and from: EvalAI on loopback, a guard, a board, Codabench's folders."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.adapters.evalai import Phase, Worker, on_ladders
from ladderboard.server import listen_on_path, listen_on_port, serve_guard
from support.server.live_server import make_folder

LABELS = np.arange(400) % 2


@pytest.fixture(scope="session")
def them(helper):
    """Give the module of EvalAIs."""
    return helper("adapters/bridges/_evalai")


@pytest.fixture(scope="session")
def codabench(helper):
    """Give the module that runs programs as Codabench does."""
    return helper("adapters/bridges/_codabench")


@pytest.fixture
def correct(live_server):
    """Give a function that corrects labels: those of fifteen public rows were wrong."""

    def change():
        table = make_folder(live_server.slug).table
        labels = table.labels.copy()
        labels[:15] ^= 1
        organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
        amendments = live_server.boards.open(live_server.slug).amendments
        corrected = replace(table, labels=labels)
        assert amendments.correct_labels(organiser, corrected, again="none") == 0

    return change


@pytest.fixture
def serve():
    """Give a function that serves a guard, on a free port or a socket's path."""
    with contextlib.ExitStack() as ends:

        def start(guard, path=None, **how):
            listener = listen_on_port(port=0) if path is None else listen_on_path(path)
            servers = []
            how["started"] = servers.append
            thread = threading.Thread(target=serve_guard, args=(guard, listener), kwargs=how)
            thread.start()
            while not servers or not servers[0].started:
                assert thread.is_alive()
                time.sleep(0.01)

            def stop():
                servers[0].should_exit = True
                thread.join()

            ends.callback(stop)
            return listener.url

        yield start


@pytest.fixture
def evalai(them):
    """A running EvalAI."""
    with them.EvalAI() as running:
        yield running


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
    """Scores as a file, all of them perfect: what whoever scores itself would hand in."""
    return b"id,score\n" + b"".join(b"%d,1\n" % each for each in range(400))


@pytest.fixture
def of_scores(tmp_path):
    """A guard of scores."""
    path = tmp_path / "scores.db"
    return lb.Holdout.create(path, ids=range(400), loss="score", questions=20, ladders=2)


@pytest.fixture
def predict():
    """Give predictions as a file, so many of the 400 wrong."""

    def make(wrong):
        values = LABELS ^ (np.arange(400) < wrong)
        rows = "".join(f"{i},{v}\n" for i, v in enumerate(values))
        return f"id,prediction\n{rows}".encode()

    return make


@pytest.fixture
def make_worker(them, evalai, guard):
    """Give a function that makes workers; it asks the guard if nothing else is said."""

    def make(ask=None, **more):
        phases = {them.PHASE: Phase(them.SPLIT, ask or on_ladders(guard))}
        how = {"challenge": them.CHALLENGE, "queue": them.QUEUE, "token": them.TOKEN}
        return Worker(phases, **(how | {"server": evalai.url} | more))

    return make


@pytest.fixture
def worker(make_worker):
    """A worker that asks the guard."""
    return make_worker()
