"""Scores submitted to a served guard."""

from contextlib import ExitStack

import pytest

import ladderboard as lb
from ladderboard.adapters.lm_eval import read_samples
from ladderboard.errors import InvalidPredictions, InvalidSetting
from support.server.guard_server import GuardServer


@pytest.fixture
def serve():
    """Return a function that serves a guard until the test ends, and returns a connection to it."""
    with ExitStack() as ends:

        def start(guard):
            server = ends.enter_context(GuardServer(guard))
            return ends.enter_context(lb.Holdout.connect(server.url))

        yield start


def test_a_log_asked_of_a_served_guard(serve, data, tmp_path):
    (log,) = (data / "lm_eval").glob("samples_sums_2*.jsonl")
    scores = read_samples(log)
    settings = {"questions": 5, "mechanism": "exact"}
    served = serve(lb.Holdout.create(tmp_path / "a.db", ids=scores.ids, loss="score", **settings))
    assert scores.ask(served, ladder="first").released == 1 - scores.mean
    other = serve(lb.Holdout.create(tmp_path / "b.db", ids=["a"], loss="score", **settings))
    with pytest.raises(InvalidPredictions, match="None of the ids is in the holdout"):
        scores.ask(other)
    labelled = serve(lb.Holdout.create(tmp_path / "c.db", [0, 1] * 6, ids=scores.ids, **settings))
    with pytest.raises(InvalidSetting, match="This guard takes predictions"):
        scores.ask(labelled)
    assert (other.remaining, labelled.remaining) == (5, 5)


def test_the_history_is_read_only_once(serve, data, tmp_path, monkeypatch):
    (log,) = (data / "lm_eval").glob("samples_sums_2*.jsonl")
    scores = read_samples(log)
    settings = {"loss": "score", "questions": 5, "ladders": 4}
    served = serve(lb.Holdout.create(tmp_path / "a.db", ids=scores.ids, **settings))
    calls, status = [], type(served).status
    monkeypatch.setattr(type(served), "status", lambda self: calls.append(1) or status(self))
    for index in range(3):
        scores.ask(served, ladder=f"run {index}")
    scores.ask(served.ladder("other"))
    assert (len(calls), served.remaining) == (1, 1)
