"""Both verifiers recompute a gate's verdicts, and refuse those that do not follow."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.bounds import LookPrices, PairedTest
from ladderboard.errors import BrokenLedger
from ladderboard.verify import verify_bundle
from support.verify.second_verifier import run_second_verifier

N = 300
BITS = np.random.default_rng(3).integers(0, 2, N)
CLASSES = np.random.default_rng(4).integers(0, 3, N)
NUMBERS = np.random.default_rng(5).random(N)
SETTINGS = {
    "sign": (BITS, {"classes": [0, 1]}),
    "convex": (CLASSES, {"classes": [0, 1, 2], "worse": True}),
    "bets": (NUMBERS, {"loss": lb.loss("absolute", range=(0, 1)), "worse": True}),
}


def play(path, form, **options):
    """Return a gate after an hour of candidates, good and bad."""
    labels, settings = SETTINGS[form]
    gate = lb.Gate.create(path, labels, looks=30, **settings, **options)
    rng = np.random.default_rng(7)

    def model(share):
        return np.where(rng.random(N) < share, rng.permutation(labels), labels)

    gate.promote(model(0.6))
    for share, margin in ((0.55, 0.0), (0.1, 0.05), (0.6, 0.1), (0.95, 0.2), (0.5, 0.3)):
        gate.check(model(share), margin=margin)
    gate.promote(model(0.3))
    gate.check(model(0.3), margin=0.25)
    return gate


def close(gate, path):
    gate.close_for_good()
    gate.reveal(path, labels=True)
    return path


@pytest.mark.parametrize("form", SETTINGS)
def test_both_verifiers_agree(form, tmp_path):
    gate = play(tmp_path / "gate.db", form)
    assert gate.status().test == form
    assert {"better", "cannot_tell"} <= {record.outcome for record in gate.status().history}
    bundle = close(gate, tmp_path / "bundle")
    assert str(verify_bundle(bundle)) == "verified: 6 verdicts"
    assert "6 looks: the chain and the tape hold" in run_second_verifier(bundle)


def test_both_verifiers_follow_a_restored_copy_and_a_guard(tmp_path):
    gate = play(tmp_path / "gate.db", "sign", guard=True, mechanism=lb.Ladder(step=0.1))
    gate.backup(tmp_path / "copy")
    gate.close()
    gate = lb.Gate.restore(tmp_path / "gate.db", 2, copy=tmp_path / "copy")
    lb.Holdout.open(tmp_path / "gate.db").ask(BITS)
    assert gate.check(BITS).look == 9
    bundle = close(gate, tmp_path / "bundle")
    assert str(verify_bundle(bundle)) == "verified: 1 release and 7 verdicts"
    assert "7 looks: the chain and the tape hold" in run_second_verifier(bundle)


def always_better(self, evidence, nats, margin):
    return "better"


def twice_the_weight(self, look, verdicts=(), *, lost=0):
    return ORIGINAL_NATS(self, look, verdicts, lost=lost) - math.log(2)


def verdicts_for_free(self, look, verdicts=(), *, lost=0):
    return ORIGINAL_NATS(self, look, (), lost=lost)


ORIGINAL_NATS = LookPrices.nats


@pytest.mark.parametrize(
    ("target", "name", "forgery", "message", "second"),
    [
        (PairedTest, "outcome", always_better, "verdict does not follow", "verdict does not"),
        (LookPrices, "nats", twice_the_weight, "price does not follow", "price is not"),
        (LookPrices, "nats", verdicts_for_free, "price does not follow", "price is not"),
    ],
)
@pytest.mark.parametrize("form", ["sign", "bets"])
def test_a_dishonest_gate_is_caught(
    form, target, name, forgery, message, second, tmp_path, monkeypatch
):
    monkeypatch.setattr(target, name, forgery)
    bundle = close(play(tmp_path / "gate.db", form), tmp_path / "bundle")
    monkeypatch.undo()
    with pytest.raises(BrokenLedger, match=message):
        verify_bundle(bundle)
    assert second in run_second_verifier(bundle)
