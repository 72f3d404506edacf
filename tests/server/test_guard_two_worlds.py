"""Two worlds over HTTP: where the mechanism ignores the risk, no byte depends on the labels."""

import hashlib
import io
import logging
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.ledger import LedgerEnvironment
from ladderboard.mechanisms import Mechanism, Step
from support.salts import SaltSource, SecretSearch, iter_bytes, record_salt_uses

KEY = hashlib.sha256(b"a noise key").digest()
LABELS = np.random.default_rng(2).integers(2, size=(2, 60))
MODELS = np.random.default_rng(1).integers(2, size=(5, 60))


class Count(NamedTuple):
    best: float
    asked: int


@dataclass(frozen=True)
class Deaf(Mechanism):
    """Says the same whatever it hears, unless it is told to listen."""

    name: ClassVar[str] = "deaf"
    state_type: ClassVar[Any] = Count
    listens: bool = False

    def begin(self, setup, draws):
        return Count(1.0, 0)

    def advance(self, setup, state, observation, draws):
        best = observation.risk if self.listens else state.best - 0.125
        return Step(Count(best, state.asked + 1), best, None, best < state.best)


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def session(serve, path, labels, mechanism, caplog, salt):
    """Return every byte that came out, and every line that was logged."""
    world = LedgerEnvironment(clock=lambda: 1_700_000_000, salt=salt)
    guard = lb.Holdout.create(
        path, labels, questions=4, ladders=2, mechanism=mechanism, key=KEY, environment=world
    )
    served = serve(guard)
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        said = [
            served.call(),
            *(served.ask(npy(each)) for each in MODELS[:2]),
            served.ask(npy(MODELS[0])),
            served.ask(npy(MODELS[2]), "?ladder=b"),
            served.ask(b"id,prediction\n1,0\n1,9\n"),
            served.ask(npy(MODELS[0][:-1])),
            served.ask(npy(np.array(["x"] * 60))),
            served.ask(npy(MODELS[0]), "?training=0.5"),
            served.call(path="/api/v1/guard/meter?ladder=b"),
            *(served.ask(npy(each)) for each in MODELS[3:]),
            served.call(),
            served.call(path="/nowhere"),
        ]
    lines = [(each.name, each.levelname, each.getMessage()) for each in caplog.records]
    return said, lines


@pytest.mark.parametrize(("listens", "same"), [(False, True), (True, False)])
def test_every_answer_and_every_line_is_the_same(
    serve, tmp_path, caplog, monkeypatch, listens, same
):
    seen = []
    for world, labels in enumerate(LABELS):
        uses = record_salt_uses(monkeypatch, hide=True)  # heads and commitments are hashes of salts
        path = tmp_path / f"{world}.db"
        seen.append(session(serve, path, labels, Deaf(listens), caplog, SaltSource()))
        assert {"holdout", "key", "secret", "submission"} == set().union(*uses.domains.values())
        assert SecretSearch([KEY, *uses.domains]).find(iter_bytes(seen[world])) == set()
    first, second = seen
    assert [status for status, _, _ in first[0]] == [
        *(200, 201, 201, 200, 201, 422, 422, 422, 400, 200, 201, 409, 200, 404)
    ]
    assert first[1] == second[1]  # the log never tells, not even what a mechanism does
    assert len(first[1]) == 10
    assert (first[0] == second[0]) is same
