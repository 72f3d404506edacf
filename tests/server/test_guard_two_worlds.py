"""Two worlds over HTTP: if the mechanism ignores the risk, no byte depends on the labels."""

import hashlib
import logging
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.ledger import LedgerEnvironment
from ladderboard.mechanisms import Mechanism, Step
from support.salts import SaltSource, SecretSearch, iter_bytes, record_salt_uses
from support.server.guard_server import to_npy

KEY = hashlib.sha256(b"a noise key").digest()
LABELS = np.random.default_rng(2).integers(2, size=(2, 60))
MODELS = np.random.default_rng(1).integers(2, size=(5, 60))


class Count(NamedTuple):
    best: float
    asked: int


@dataclass(frozen=True)
class RiskBlind(Mechanism):
    """Releases the same whatever the risk, unless it is told to use it."""

    name: ClassVar[str] = "deaf"
    state_type: ClassVar[Any] = Count
    uses_risk: bool = False

    def begin(self, setup, draws):
        return Count(1.0, 0)

    def advance(self, setup, state, observation, draws):
        best = observation.risk if self.uses_risk else state.best - 0.125
        return Step(Count(best, state.asked + 1), best, None, best < state.best)


def run_session(serve_guard, path, labels, mechanism, caplog, salt):
    """Return every reply and every logged line."""
    environment = LedgerEnvironment(clock=lambda: 1_700_000_000, salt=salt)
    guard = lb.Holdout.create(
        path, labels, questions=4, ladders=2, mechanism=mechanism, key=KEY, environment=environment
    )
    guard_server = serve_guard(guard)
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        replies = [
            guard_server.call(),
            *(guard_server.ask(to_npy(model)) for model in MODELS[:2]),
            guard_server.ask(to_npy(MODELS[0])),
            guard_server.ask(to_npy(MODELS[2]), "?ladder=b"),
            guard_server.ask(b"id,prediction\n1,0\n1,9\n"),
            guard_server.ask(to_npy(MODELS[0][:-1])),
            guard_server.ask(to_npy(np.array(["x"] * 60))),
            guard_server.ask(to_npy(MODELS[0]), "?training=0.5"),
            guard_server.call(path="/api/v1/guard/meter?ladder=b"),
            *(guard_server.ask(to_npy(model)) for model in MODELS[3:]),
            guard_server.call(),
            guard_server.call(path="/nowhere"),
        ]
    lines = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    return replies, lines


@pytest.mark.parametrize(("uses_risk", "same"), [(False, True), (True, False)])
def test_replies_and_log_lines_are_the_same_in_both_worlds(
    serve_guard, tmp_path, caplog, monkeypatch, uses_risk, same
):
    sessions = []
    for world, labels in enumerate(LABELS):
        uses = record_salt_uses(monkeypatch, hide=True)  # heads and commitments are hashes of salts
        path = tmp_path / f"{world}.db"
        sessions.append(
            run_session(serve_guard, path, labels, RiskBlind(uses_risk), caplog, SaltSource())
        )
        assert {"holdout", "key", "secret", "submission"} == set().union(*uses.domains.values())
        assert SecretSearch([KEY, *uses.domains]).find(iter_bytes(sessions[world])) == set()
    first, second = sessions
    assert [status for status, _, _ in first[0]] == [
        *(200, 201, 201, 200, 201, 422, 422, 422, 400, 200, 201, 409, 200, 404)
    ]
    assert first[1] == second[1]  # the log never differs, even if the mechanism does
    assert len(first[1]) == 10
    assert (first[0] == second[0]) is same
