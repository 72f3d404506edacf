"""A remote gate gives the same verdicts and refusals as a local one."""

import pickle

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BudgetSpent, GuardUnreachable, InvalidPredictions, InvalidSetting
from support.server.guard_server import GuardServer

N = 300
LABELS = np.random.default_rng(0).integers(2, size=N)


def wrong_on(count, start=0):
    rows = np.arange(N)
    return np.where((rows >= start) & (rows < start + count), 1 - LABELS, LABELS)


@pytest.fixture
def gate(tmp_path):
    gate = lb.Gate.create(tmp_path / "gate.db", LABELS, looks=3, margin=0.05)
    gate.promote(wrong_on(80))
    return gate


def test_verdicts_are_those_of_the_gate(gate):
    with GuardServer(gate) as server:
        remote = lb.Gate.connect(server.url)
        verdict = remote.check(wrong_on(10))
        assert (verdict.outcome, verdict.look, verdict.remaining) == ("better", 1, 2)
        again = remote.check(wrong_on(10).tolist())
        assert again == gate.check(wrong_on(10))
        assert again.again
        assert remote.check(wrong_on(60, 30), margin=0.3).margin == 0.3
        assert remote.status() == gate.status()
        assert (remote.head, remote.remaining, remote.takes) == (gate.head, 1, "predictions")
        assert pickle.loads(pickle.dumps(remote)).check(wrong_on(10)).again
        remote.close()


def test_refusals_are_those_of_the_gate(gate):
    with GuardServer(gate) as server:
        remote = lb.Gate.connect(server.url)
        with pytest.raises(InvalidPredictions):
            remote.check(LABELS[:5])
        with pytest.raises(InvalidSetting, match="margin"):
            remote.check(LABELS, margin=2)
        with pytest.raises(GuardUnreachable, match="--promote"):
            remote.promote(LABELS)
        for count in (1, 2, 3):
            remote.check(wrong_on(count))
        with pytest.raises(BudgetSpent):
            remote.check(wrong_on(4))
        assert gate.status().incumbent == 1
        remote.close()


def test_clients_promote_if_the_owner_allows_it(gate):
    with GuardServer(gate, promote=True) as server:
        remote = lb.Gate.connect(server.url)
        assert remote.promote(wrong_on(10)) == 2
        assert remote.check(wrong_on(10)).differing == 0
        remote.close()


def test_a_connection_is_closed_after_a_block(gate):
    with GuardServer(gate) as server, lb.Gate.connect(server.url) as remote:
        assert remote.check(wrong_on(10)).better


def test_a_guard_is_not_a_gate(gate, tmp_path):
    guard = lb.Holdout.create(tmp_path / "guard.db", LABELS, questions=5)
    with GuardServer(guard) as server, pytest.raises(GuardUnreachable):
        lb.Gate.connect(server.url).check(LABELS)
